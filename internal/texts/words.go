package texts

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord limits the bytes of one word. Longer words are identifiers that are not useful in a search.
const maxWord = 64

// Words splits text into lower-case words: at every character other than letters and digits, at the capitals of
// camelCase, and between letters and digits (but "s3", "mp3" and "3d" stay whole). It removes accents. Scripts
// without spaces, and Korean, whose words have endings, yield overlapping pairs of characters.
func Words(text string) []string {
	var words []string
	for run := range runs(text) {
		words = appendRun(words, run)
	}
	return words
}

// runs yields the runs of letters, digits and apostrophes of a text.
func runs(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			r, n := utf8.DecodeRuneInString(text)
			if !wordRune(r) {
				text = text[n:]
				continue
			}
			end := strings.IndexFunc(text, func(r rune) bool { return !wordRune(r) && r != '\'' && r != '’' })
			if end < 0 {
				end = len(text)
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// appendRun adds the words of one run of letters, digits and apostrophes.
func appendRun(words []string, run string) []string {
	ascii := true
	for i := 0; i < len(run); i++ {
		if run[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if !ascii {
		run = foldAccents(run)
	}
	if !ascii || strings.Contains(run, "'") {
		run = trimPossessive(run)
	}
	rs := []rune(run)
	lower := "" // lower-case ASCII run; its words share this memory
	if ascii && !strings.Contains(run, "'") {
		lower = strings.ToLower(run)
	}
	start := 0
	for i := 1; i <= len(rs); i++ {
		switch {
		case i < len(rs) && !boundary(rs, start, i):
			continue
		case lower == "":
			words = appendWord(words, rs[start:i])
		case i-start <= maxWord:
			words = append(words, lower[start:i])
		}
		start = i
	}
	return words
}

// boundary reports whether a new word starts at rs[i], if the current one started at start.
func boundary(rs []rune, start, i int) bool {
	prev, cur := rs[i-1], rs[i]
	switch {
	case dense(prev) != dense(cur):
		return true
	case unicode.IsUpper(cur):
		// "fooBar", and the last capital of "HTTPServer" but not of "URLs".
		if unicode.IsLower(prev) {
			return true
		}
		rest := rs[i+1:]
		plural := len(rest) == 1 && rest[0] == 's' || len(rest) > 1 && rest[0] == 's' && !unicode.IsLower(rest[1])
		return unicode.IsUpper(prev) && len(rest) > 0 && unicode.IsLower(rest[0]) && !plural || unicode.IsDigit(prev)
	case unicode.IsDigit(cur) && unicode.IsLetter(prev):
		return i-start > 2
	case unicode.IsLetter(cur) && unicode.IsDigit(prev):
		return i-start > 1
	}
	return false
}

// dense reports whether the script of r yields pairs of characters. The mark of long vowels is common to two scripts.
func dense(r rune) bool {
	return r >= 0x0E00 && (r == 'ー' || unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai))
}

func appendWord(words []string, rs []rune) []string {
	if dense(rs[0]) {
		if len(rs) == 1 {
			return append(words, string(rs))
		}
		for i := 0; i+2 <= len(rs); i++ {
			words = append(words, string(rs[i:i+2]))
		}
		return words
	}
	w := strings.ToLower(string(rs))
	w = strings.ReplaceAll(w, "'", "")
	if w == "" || len(w) > maxWord {
		return words
	}
	return append(words, w)
}

// trimPossessive removes "'s" and other contracted endings, and trailing quotation marks.
func trimPossessive(s string) string {
	s = strings.ReplaceAll(s, "’", "'")
	s = strings.TrimRight(s, "'")
	for _, ending := range []string{"'s", "'d", "'ll", "'ve", "'re", "'m"} {
		if head, ok := strings.CutSuffix(s, ending); ok {
			return head
		}
	}
	return s
}

// foldAccents removes accents, but not the marks of Japanese, and replaces characters of full, half and other widths.
func foldAccents(s string) string {
	const voiced, semiVoiced = '\u3099', '\u309A'
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if !unicode.Is(unicode.Mn, r) || r == voiced || r == semiVoiced {
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}
