package intent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	word   kind = iota // letters
	value              // has digits or inner punctuation: "4711", "notes.txt", "a@b.de"
	quote              // a whole quotation
	pause              // comma, dash, bracket
	break_             // semicolon
	colon
	stop // end of a sentence, in text or by layout
)

// token is a word, value, quotation or punctuation mark. A contraction is two tokens: "don't" is "do", "not".
type token struct {
	lower      string
	start, end int
	kind       kind
	class      class // of a word, in the language of the sentence
	capital    bool
}

// is reports whether the token is of one of the classes.
func (t token) is(c class) bool { return t.class&c != 0 }

// closers maps an opening quotation mark to those that may close it.
var closers = map[rune]string{'"': "\"", '“': "”“\"", '”': "”", '„': "“”\"", '«': "»", '»': "«", '‹': "›", '›': "‹",
	'`':  "`",
	'\'': "'", '‘': "’", '‚': "‘’", '’': "’"}

// apostrophes are the quotation marks that also stand inside and at the end of words.
const apostrophes = "'‘‚’"

type scanner struct {
	text   string
	out    []token
	failed map[rune]bool // opening marks that have nothing to close them from here on
}

func tokenize(text string) []token {
	s := scanner{text: text, failed: map[rune]bool{}}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if end := s.quotation(i, r, n); end > 0 {
			s.add(quote, i, end)
			i = end
			continue
		}
		switch {
		case r == '>' && (i == 0 || text[i-1] == '\n' || text[i-1] == '>'): // a quoted line of a mail
			end := i + len(text[i:])
			if line := strings.IndexByte(text[i:], '\n'); line >= 0 {
				end = i + line
			}
			s.add(quote, i, end)
			i = end
		case r == '\n':
			i = s.newline(i)
		case unicode.IsSpace(r):
			i += n
		case strings.ContainsRune(".!?…。！？", r):
			s.add(stop, i, i+n)
			i += n
		case r == ';':
			s.add(break_, i, i+n)
			i += n
		case r == ':':
			s.add(colon, i, i+n)
			i += n
		case unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/~#@_$€£+%\\", r) ||
			(r == '-' || r == '*') && i+1 < len(text) && text[i+1] > ' ' && text[i+1] != '-':
			i = s.chunk(i)
		case strings.ContainsRune("-–—,()[]{}|、，", r):
			s.add(pause, i, i+n)
			i += n
		default:
			i += n // other marks say nothing
		}
	}
	return s.out
}

func (s *scanner) add(k kind, start, end int) {
	r, _ := utf8.DecodeRuneInString(s.text[start:])
	lower := strings.ReplaceAll(strings.ToLower(s.text[start:end]), "’", "'")
	s.out = append(s.out, token{lower: lower, start: start, end: end, kind: k, capital: unicode.IsUpper(r)})
}

// newline ends a sentence before an empty line, a list item, a quoted line or a capital letter. It returns where to go on.
func (s *scanner) newline(i int) int {
	end := i
	for end < len(s.text) && (s.text[end] == '\n' || s.text[end] == '\r' || s.text[end] == ' ' || s.text[end] == '\t') {
		end++
	}
	rest := s.text[end:]
	r, _ := utf8.DecodeRuneInString(rest)
	item := len(rest) - len(strings.TrimLeft(rest[:min(len(rest), 4)], "-*•0123456789.)"))
	isItem := item > 0 && strings.HasPrefix(rest[item:], " ")
	after := len(s.out) > 0 && listed("negators", s.out[len(s.out)-1].lower) // a line that is broken after "do not" goes on
	empty := strings.Count(s.text[i:end], "\n") > 1
	if len(s.out) > 0 && (empty || isItem || unicode.IsUpper(r) && !after || r == '>') {
		s.add(stop, i, i+1)
	}
	if isItem {
		return end + item
	}
	return end
}

// quotation returns the end of the quotation that begins at i, or 0 if none does. One that is never closed takes the rest
// of the text, unless it may be an apostrophe or a unit.
func (s *scanner) quotation(i int, r rune, n int) int {
	before, _ := utf8.DecodeLastRuneInString(s.text[:i])
	soft := strings.ContainsRune(apostrophes, r)
	if closers[r] == "" || s.failed[r] || (soft || r == '"') && (unicode.IsLetter(before) && soft || unicode.IsDigit(before)) {
		return 0
	}
	if strings.HasPrefix(s.text[i:], "```") {
		if end := strings.Index(s.text[i+3:], "```"); end >= 0 {
			return i + 3 + end + 3
		}
		return len(s.text)
	}
	for j := i + n; j < len(s.text); {
		c, size := utf8.DecodeRuneInString(s.text[j:])
		if strings.ContainsRune(closers[r], c) {
			next, _ := utf8.DecodeRuneInString(s.text[j+size:])
			if !soft || !unicode.IsLetter(next) && !unicode.IsDigit(next) {
				return j + size
			}
		}
		j += size
	}
	s.failed[r] = true
	if soft {
		return 0
	}
	return len(s.text)
}

// chunk adds the word or value at i and returns its end. Dots, commas and colons inside of a value belong to it.
func (s *scanner) chunk(i int) int {
	end, inner := i, false
	for end < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[end:])
		next, _ := utf8.DecodeRuneInString(s.text[end+n:])
		more := unicode.IsLetter(next) || unicode.IsDigit(next)
		digits := end > i && s.text[end-1] >= '0' && s.text[end-1] <= '9' && unicode.IsDigit(next)
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
		case strings.ContainsRune("'’", r) && end > i && more || r == '-' && end > i && more:
		case unicode.IsDigit(r) || strings.ContainsRune("/~#@_$€£+%\\=&*", r) || r == '-' && end == i:
			inner = true
		case r == '.' && (more || next == '/' || next == '\\') || r == ':' && (digits || next == '/' || next == '\\'),
			r == ',' && digits, r == '?' && more && strings.Contains(s.text[i:end], "://"):
			inner = true
		case r == '.' && abbreviated(s.text[i:end], s.text[end+1:]):
			inner = true
		default:
			s.addChunk(i, end, inner)
			return end
		}
		end += n
	}
	s.addChunk(i, end, inner)
	return end
}

// abbreviated reports whether the dot after s belongs to it, as in "e.g." and "3. Mai".
func abbreviated(s, rest string) bool {
	lower := strings.ToLower(s)
	rest = strings.TrimLeft(rest[:min(len(rest), 8)], " ")
	if rest == "" {
		return false
	}
	if strings.Trim(s, "0123456789") == "" {
		month := []rune(strings.ToLower(rest))
		return len(s) <= 2 && listed("germanMonths", string(month[:min(3, len(month))]))
	}
	if lower == "no" || lower == "nr" {
		return rest[0] <= '9'
	}
	return listed("abbreviations", lower) || len(lower) == 1 && s != lower
}

// maxContraction bounds the length of what is taken apart.
const maxContraction = 60

// addChunk adds text[start:end], taken apart where it is a contraction.
func (s *scanner) addChunk(start, end int, inner bool) {
	lower := strings.ReplaceAll(strings.ToLower(s.text[start:end]), "’", "'")
	if inner || end-start > maxContraction || len(lower) != len(strings.ReplaceAll(s.text[start:end], "’", "'")) {
		k := word
		if inner {
			k = value
		}
		s.add(k, start, end)
		return
	}
	half := func(first string, cut int, second string) {
		s.add(word, start, cut)
		s.out[len(s.out)-1].lower = first
		s.add(word, cut, end)
		s.out[len(s.out)-1].lower = second
	}
	stem, ok := strings.CutSuffix(lower, "n't")
	if !ok {
		stem = means("unmarked", lower)
		ok = stem != ""
	}
	if ok && stem != "" {
		first := stem
		if full := means("changed", stem); full != "" {
			first = full
		}
		half(first, start+len(stem), "not")
		return
	}
	if before, after, ok := strings.Cut(lower, "'"); ok && before != "" {
		at := start + len(before)
		_, mark := utf8.DecodeRuneInString(s.text[at:])
		switch full := means("contracted", after); {
		case full != "" && (after != "s" || listed("shortened", before)):
			half(before, at, full)
			return
		case listed("elided", before):
			s.add(word, start, at)
			s.addChunk(at+mark, end, false)
			return
		}
	}
	if at := strings.LastIndexByte(lower, '-'); at > 1 && listed("attached", lower[at+1:]) && at < end-start {
		s.addChunk(start, start+at, false)
		s.add(word, start+at+1, end)
		return
	}
	s.add(word, start, end)
	if lower == "u" {
		s.out[len(s.out)-1].lower = "you"
	}
}

// sentenceEnd returns the index after the sentence that begins at start, with its stops.
func sentenceEnd(tokens []token, start int) int {
	i := start
	for i < len(tokens) && tokens[i].kind != stop {
		i++
	}
	for i < len(tokens) && tokens[i].kind == stop {
		i++
	}
	return i
}
