package values

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// token is a run of letters, a run of digits, a quotation or one other rune.
type token struct {
	start, end int
	kind       byte   // 'w', 'd', 'q' or 'p'
	fold       string // lower case without diacritics
	upper      bool   // begins with a capital letter
	gap        bool   // white space or the beginning of the text precedes
	stop       bool   // a sentence begins here
}

// fold writes a word in lower case without diacritics.
func fold(word string) string {
	word = strings.ToLower(word)
	if strings.IndexFunc(word, func(c rune) bool { return c > unicode.MaxASCII }) < 0 {
		return word
	}
	var b strings.Builder
	for _, c := range norm.NFKD.String(word) {
		switch {
		case c == 'ß':
			b.WriteString("ss")
		case c == '’':
			b.WriteByte('\'')
		case !unicode.Is(unicode.Mn, c):
			b.WriteRune(c)
		}
	}
	return b.String()
}

func kindOf(c rune) byte {
	switch {
	case c >= '0' && c <= '9':
		return 'd'
	case unicode.IsLetter(c), unicode.Is(unicode.Mn, c):
		return 'w'
	case unicode.IsSpace(c):
		return ' '
	}
	return 'p'
}

// tokenize splits text; a quotation is one token.
func tokenize(text string, quotes []span) []token {
	var out []token
	gap, stop := true, true
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		kind, end := kindOf(c), i+n
		if len(quotes) > 0 && i == quotes[0].start {
			kind, end, quotes = 'q', quotes[0].end, quotes[1:]
		}
		for kind == 'w' || kind == 'd' {
			next, n := utf8.DecodeRuneInString(text[end:])
			if n == 0 || kindOf(next) != kind {
				break
			}
			end += n
		}
		if kind == ' ' {
			gap, stop = true, stop || c == '\n'
			i = end
			continue
		}
		t := token{start: i, end: end, kind: kind, gap: gap, stop: stop, upper: unicode.IsUpper(c)}
		if kind != 'q' {
			t.fold = fold(text[i:end])
		}
		out = append(out, t)
		// A stop ends a sentence if white space follows; a stop inside of "a.b" does not.
		stop = kind == 'p' && (strings.ContainsRune(".!?…", c) && kindAt(text, end) == ' ' || stop)
		gap, i = false, end
	}
	return out
}

// kindAt is the kind of the rune at a position; the end of the text is white space.
func kindAt(text string, i int) byte {
	if i >= len(text) {
		return ' '
	}
	c, _ := utf8.DecodeRuneInString(text[i:])
	return kindOf(c)
}

type span struct{ start, end int }

// quoteMarks maps what opens a quotation to what closes it.
var quoteMarks = map[rune]string{
	'"': `"`, '“': "”“", '„': "“”\"", '«': "»", '»': "«", '‹': "›", '\'': "'", '‘': "’'", '’': "’", '‚': "‘’", '`': "`",
}

// quotations finds what stands in quotation marks, with the marks. A mark that is never closed is none.
func quotations(text string) []span {
	var out []span
	unclosed := map[rune]bool{}
	before := ' '
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		closing, ok := quoteMarks[c]
		opens := ok && !unclosed[c] && kindAt(text, i+n) != ' ' && kindOf(before) != 'w' && kindOf(before) != 'd'
		if end := 0; opens {
			if end = closingMark(text, i+n, closing); end > i+n {
				_, last := utf8.DecodeRuneInString(text[end:])
				out = append(out, span{i, end + last})
				before, i = c, end+last
				continue
			} else if end < 0 {
				unclosed[c] = true
			}
		}
		before, i = c, i+n
	}
	return out
}

// closingMark returns where a quotation ends, -1 if it does not. A mark between letters is an apostrophe, and so is one
// after an s when there is a better one in the same sentence: 'the players' names'.
func closingMark(text string, from int, marks string) int {
	weak, before := -1, ' '
	for i := from; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		single := strings.ContainsRune("'’‘", c)
		next := kindAt(text, i+n)
		switch {
		case single && weak >= 0 && before == ' ', weak >= 0 && strings.ContainsRune(".!?\n", c):
			return weak // another quotation or sentence begins
		case !strings.ContainsRune(marks, c), single && (next == 'w' || next == 'd'):
		case single && before == 's' && next == ' ' && i+n < len(text):
			if weak < 0 {
				weak = i
			}
		default:
			return i
		}
		before, i = c, i+n
	}
	return weak
}
