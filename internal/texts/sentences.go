package texts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences splits at line ends and at '.', '?', '!' and ';' that end a sentence, not a number, an abbreviation or a
// name.
func Sentences(text string) []string {
	var out []string
	start := 0
	quotes := Quotes{}
	for i, r := range text {
		inside := quotes.Inside(text, i, r)
		end := false
		switch r {
		case '\n', ';', '。', '？', '！', '؟':
			end = r != ';' || !inside
		case '?', '!':
			end = !inside && followedBySpace(text, i)
		case '.':
			end = !inside && followedBySpace(text, i) && !abbreviation(text[start:i])
		}
		if end {
			if s := strings.TrimSpace(text[start : i+utf8.RuneLen(r)]); s != "" {
				out = append(out, s)
			}
			start = i + utf8.RuneLen(r)
			quotes = Quotes{}
		}
	}
	if s := strings.TrimSpace(text[start:]); s != "" {
		out = append(out, s)
	}
	return out
}

func followedBySpace(text string, i int) bool {
	rest := text[i+1:]
	if rest == "" {
		return true
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsSpace(r) || r == '"' || r == '\'' || r == ')'
}

// abbreviation reports whether the text ends with a word after which a dot does not end a sentence.
func abbreviation(text string) bool {
	if i := strings.LastIndexFunc(text, unicode.IsSpace); i >= 0 {
		_, size := utf8.DecodeRuneInString(text[i:])
		text = text[i+size:]
	}
	w := strings.ToLower(strings.TrimLeft(text, "(\"'"))
	first, size := utf8.DecodeRuneInString(w)
	return abbreviations[w] || size > 0 && size == len(w) && unicode.IsLetter(first) && w != "i"
}

var abbreviations = set(`mr mrs ms dr prof st jr sr vs etc e.g i.e eg ie no inc ltd co corp approx dept est fig min max
	u.s u.k a.m p.m`)

// Quotes tracks quotation marks and brackets while a text is read from left to right.
type Quotes struct {
	close rune
	depth int
}

// Inside consumes the rune at text[i] and reports whether it is inside quotation marks or brackets.
func (q *Quotes) Inside(text string, i int, r rune) bool {
	switch {
	case q.close != 0:
		if r == q.close && (r != '\'' || !letterAt(text, i+1)) {
			q.close = 0
		}
		return true
	case r == '"':
		q.close = closingMark(text, i, '"')
	case r == '“':
		q.close = closingMark(text, i, '”')
	case r == '\'' && !letterBefore(text, i):
		q.close = closingMark(text, i, '\'')
	case r == '(' || r == '[' || r == '{':
		q.depth++
	case (r == ')' || r == ']' || r == '}') && q.depth > 0:
		q.depth--
	}
	return q.depth > 0 || q.close != 0
}

// maxQuoted limits the distance to a closing mark.
const maxQuoted = 400

func closingMark(text string, i int, mark rune) rune {
	if rest := Prefix(text[i+1:], maxQuoted); strings.ContainsRune(rest, mark) {
		return mark
	}
	return 0
}

func letterAt(text string, i int) bool {
	if i >= len(text) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsLetter(r)
}

func letterBefore(text string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return i > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
