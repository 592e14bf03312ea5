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
	gap, stop  bool   // white space precedes; a sentence begins
}

func (t token) size() int { return t.end - t.start }

// folding replaces what has no diacritic to drop.
var folding = strings.NewReplacer("ß", "ss", "’", "'")

// fold writes a text in lower case without diacritics.
func fold(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) {
			return -1
		}
		return c
	}, norm.NFKD.String(strings.ToLower(text)))
	return folding.Replace(text)
}

// kindAt is the kind of the rune at a position; white space and the ends of the text are ' '.
func kindAt(text string, i int) byte {
	c, n := utf8.DecodeRuneInString(text[min(max(i, 0), len(text)):])
	switch {
	case n == 0 || i < 0 || unicode.IsSpace(c):
		return ' '
	case c >= '0' && c <= '9':
		return 'd'
	case unicode.IsLetter(c) || unicode.Is(unicode.Mn, c):
		return 'w'
	}
	return 'p'
}

// tokenize splits text; a quotation is one token.
func tokenize(text string, quotes [][2]int) (out []token) {
	gap, stop := true, true
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		t := token{start: i, end: i + n, kind: kindAt(text, i), upper: unicode.IsUpper(c), gap: gap, stop: stop}
		if len(quotes) > 0 && i == quotes[0][0] {
			t.kind, t.end, quotes = 'q', quotes[0][1], quotes[1:]
		}
		for (t.kind == 'w' || t.kind == 'd') && kindAt(text, t.end) == t.kind {
			_, n := utf8.DecodeRuneInString(text[t.end:])
			t.end += n
		}
		if i = t.end; t.kind == ' ' {
			gap, stop = true, stop || c == '\n'
			continue
		}
		if t.kind != 'q' {
			t.fold = fold(text[t.start:t.end])
		}
		out = append(out, t)
		gap, stop = false, t.kind == 'p' && (strings.ContainsRune(".!?…", c) && kindAt(text, i) == ' ' || stop)
	}
	return out
}

// quoteMarks maps what opens a quotation to what closes it.
var quoteMarks = map[rune]string{
	'"': `"`, '“': "”“", '„': "“”\"", '«': "»", '»': "«", '‹': "›", '\'': "'", '‘': "’'", '‚': "‘’", '`': "`",
}

// quotations finds what stands in quotation marks, with the marks. A mark between letters is an apostrophe, and so is
// one after an s where another one closes the quotation. A double mark after a space that is never closed opens a quotation
// of the rest of the line; another one is none.
func quotations(text string) (out [][2]int) {
	unclosed := map[rune]bool{}
	for i, before := 0, byte(' '); i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		end := i + n
		if marks, ok := quoteMarks[c]; ok && !unclosed[c] && kindAt(text, end) != ' ' && before != 'w' && before != 'd' {
			if stop := closing(text[end:], marks); stop > 0 {
				_, last := utf8.DecodeRuneInString(text[end+stop:])
				end += stop + last
				out = append(out, [2]int{i, end})
			} else if rest := strings.TrimRight(text[end:], ".!?\n "); stop < 0 && strings.ContainsRune("\"“", c) && before == ' ' &&
				!strings.Contains(rest, "\n") {
				end += len(rest)
				out = append(out, [2]int{i, end})
			} else {
				unclosed[c] = stop < 0
			}
		}
		before, i = kindAt(text, i), end
	}
	return out
}

func closing(text, marks string) int {
	first := -1
	for i, before := 0, ' '; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		next, single := kindAt(text, i+n), strings.ContainsRune("'’‘", c)
		if first >= 0 && (single && before == ' ' || strings.ContainsRune(".!?\n", c)) {
			return first
		}
		if strings.ContainsRune(marks, c) && !(single && (next == 'w' || next == 'd')) {
			if !single || before != 's' || next != ' ' || first >= 0 && next == ' ' {
				return i
			}
			first = i
		}
		before, i = c, i+n
	}
	return first
}
