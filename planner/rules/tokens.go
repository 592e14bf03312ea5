package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// maxTokens bounds how much of a question is read; a longer one is planned by its beginning.
const maxTokens = 600

// token is a word, number or punctuation mark of the question.
type token struct {
	text  string
	lower string
	stems []string // of its parts: "three-day" has two; none for punctuation
	start int      // byte offsets in the question
	end   int
}

func (t token) punct() bool { return len(t.stems) == 0 }

// stop reports whether the token carries no topic.
func (t token) stop() bool {
	return t.punct() || search.IsStopWord(t.lower) || t.is("i'd") || search.IsStopWord(strings.ReplaceAll(t.lower, "'", ""))
}

// capital reports whether the token begins with an upper-case letter.
func (t token) capital() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return unicode.IsUpper(r)
}

// possessive reports whether the token ends with 's, which lower leaves out.
func (t token) possessive() bool {
	return strings.HasSuffix(strings.ReplaceAll(t.text, "’", "'"), "'s")
}

// is reports whether the token is one of the words.
func (t token) is(words ...string) bool {
	for _, w := range words {
		if t.lower == w {
			return true
		}
	}
	return false
}

// tokenize splits text at white space and strips the punctuation around words, which become tokens
// of their own. Punctuation inside of a word (3.5, a@b.c, mother-in-law) stays.
func tokenize(text string) []token {
	var out []token
	for i := 0; i < len(text) && len(out) < maxTokens; {
		r, n := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			i += n
			continue
		}
		end := strings.IndexFunc(text[i:], unicode.IsSpace)
		if end < 0 {
			end = len(text)
		} else {
			end += i
		}
		out = appendChunk(out, text, i, end)
		i = end
	}
	return out[:min(len(out), maxTokens)] // one run of punctuation may be many tokens
}

func appendChunk(out []token, text string, start, end int) []token {
	for start < end {
		r, n := utf8.DecodeRuneInString(text[start:end])
		if unicode.IsLetter(r) || unicode.IsDigit(r) || leadsWord(text[start:end]) {
			break
		}
		out = append(out, newToken(text, start, start+n))
		start += n
	}
	var tail []token
	for start < end {
		r, n := utf8.DecodeLastRuneInString(text[start:end])
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("%°²³€£$/#+", r) && n+start < end || r == '.' && dotted(text[start:end]) {
			break
		}
		tail = append(tail, newToken(text, end-n, end))
		end -= n
	}
	if start < end {
		out = appendWord(out, text, start, end)
	}
	for i := len(tail) - 1; i >= 0; i-- {
		out = append(out, tail[i])
	}
	return out
}

// dotted reports whether the last dot of s belongs to it: initials and titles ("C.J.", "Mr.").
func dotted(s string) bool {
	w := strings.ToLower(strings.TrimSuffix(s, "."))
	return personTitles[w] || len(w) == 1 && w[0] >= 'a' && w != "i" && unicode.IsUpper(rune(s[0])) || len(w) == 3 && w[1] == '.' && unicode.IsLetter(rune(w[0]))
}

var personTitles = set("mr mrs ms dr prof st jr sr vs v no")

// leadsWord reports whether the punctuation s begins with belongs to the word: signs, currencies,
// paths.
func leadsWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	next, _ := utf8.DecodeRuneInString(s[n:])
	switch r {
	case '$', '€', '£', '¥', '₹':
		return unicode.IsDigit(next)
	case '-', '+', '.':
		return unicode.IsDigit(next)
	case '/', '~', '#', '@', '_':
		return unicode.IsLetter(next) || unicode.IsDigit(next) || next == '/'
	}
	return false
}

// appendWord adds text[start:end], split where brackets, quotation marks or commas join two words.
func appendWord(out []token, text string, start, end int) []token {
	if strings.Contains(text[start:end], "://") {
		return append(out, newToken(text, start, end))
	}
	if i := strings.IndexByte(text[start:end], '.'); i >= 3 && monthNames[strings.ToLower(text[start:start+i])] > 0 && digitAt(text, start+i+1) {
		out = append(out, newToken(text, start, start+i))
		return appendChunk(out, text, start+i+1, end)
	}
	for i, r := range text[start:end] {
		at := start + i
		split := strings.ContainsRune("()[]{}\"“”<>|;=", r) || r == '\'' && i > 0 && !letterAfter(text, at+1)
		if r == ',' {
			split = !digitAt(text, at-1) || !thousands(text[at+1:end])
		}
		if split && i > 0 {
			out = append(out, newToken(text, start, at), newToken(text, at, at+utf8.RuneLen(r)))
			return appendChunk(out, text, at+utf8.RuneLen(r), end)
		}
	}
	return append(out, newToken(text, start, end))
}

// letterAfter reports whether a letter follows, as it does after an apostrophe.
func letterAfter(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsLetter(r)
}

func digitAt(text string, i int) bool {
	return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9'
}

// thousands reports whether s continues a number after a comma: exactly three digits, then no digit.
func thousands(s string) bool {
	return len(s) >= 3 && digitAt(s, 0) && digitAt(s, 1) && digitAt(s, 2) && !digitAt(s, 3)
}

func newToken(text string, start, end int) token {
	t := token{text: text[start:end], start: start, end: end}
	t.lower = strings.ToLower(strings.ReplaceAll(t.text, "’", "'"))
	t.lower = strings.TrimSuffix(t.lower, "'s")
	for _, w := range search.Words(t.text) {
		t.stems = append(t.stems, search.Stem(w))
	}
	if len(t.stems) == 2 && strings.Contains(t.text, "-") {
		t.stems = append(t.stems, search.Stem(strings.ReplaceAll(t.lower, "-", "")))
	}
	return t
}
