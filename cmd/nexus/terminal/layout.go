package terminal

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// style is a set of attributes.
type style uint8

// Attributes, each at its bit.
const (
	bold style = 1 << iota
	dim
	italic
	underline
	cyan
)

// sequence returns the escape sequence that begins a style.
func (s style) sequence() string {
	out := "\x1b[0"
	for bit, code := range []int{1, 2, 3, 4, 36} {
		if s&(1<<bit) != 0 {
			out += ";" + strconv.Itoa(code)
		}
	}
	return out + "m"
}

// glyph is a character without control characters except line ends.
type glyph struct {
	char  rune
	style style
}

// columns returns the columns of the character: two for wide ones of East Asia and pictures, none for marks.
func (g glyph) columns() int {
	if g.char < 0x300 {
		return 1
	}
	if unicode.In(g.char, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if kind := width.LookupRune(g.char).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// line is a part of the output. Only wrap takes those with line ends.
type line []glyph

// styled returns untrusted text as a line.
func styled(s string, st style) (out line) {
	for _, char := range strings.ReplaceAll(Harmless(s), "\t", "    ") {
		out = append(out, glyph{char, st})
	}
	return out
}

func (l line) columns() (n int) {
	for _, g := range l {
		n += g.columns()
	}
	return n
}

// padded returns the line with spaces up to columns, so many of them in front.
func (l line) padded(columns, front int) line {
	return slices.Concat(spaces(front), l, spaces(columns-front-l.columns()))
}

func spaces(n int) line { return styled(strings.Repeat(" ", max(n, 0)), 0) }

// String returns the line with escape sequences.
func (l line) String() string {
	var out strings.Builder
	var now style
	for _, g := range l {
		if g.style != now {
			out.WriteString(g.style.sequence())
		}
		now = g.style
		out.WriteRune(g.char)
	}
	if now != 0 {
		out.WriteString(style(0).sequence())
	}
	return out.String()
}

// text returns the line without styles.
func (l line) text() string {
	var out strings.Builder
	for _, g := range l {
		out.WriteRune(g.char)
	}
	return out.String()
}

// wrap breaks text at line ends, and wider lines at spaces and in front of wide characters. A longer word is broken
// only if breakWords is set.
func wrap(text line, columns int, breakWords bool) (lines []line) {
	for rest := true; rest; {
		whole := text
		end := slices.IndexFunc(text, func(g glyph) bool { return g.char == '\n' })
		if rest = end >= 0; rest {
			whole, text = text[:end], text[end+1:]
		}
		for {
			n := fit(whole, columns, breakWords)
			lines = append(lines, trimmed(whole[:n]))
			if whole = whole[n:]; len(whole) == 0 {
				break
			}
		}
	}
	return lines
}

// fit returns how many characters stand on one line, with the spaces after them.
func fit(text line, columns int, breakWords bool) int {
	used, last, words := 0, 0, false
	for i, g := range text {
		space := g.char == ' '
		if words && !space && (text[i-1].char == ' ' || g.columns() == 2) {
			last = i
		}
		if used += g.columns(); used > columns && !space {
			if last > 0 {
				return last
			}
			if breakWords && i > 0 {
				return i
			}
		}
		words = words || !space
	}
	return len(text)
}

// trimmed returns a line without spaces at its end.
func trimmed(l line) line {
	for len(l) > 0 && l[len(l)-1].char == ' ' {
		l = l[:len(l)-1]
	}
	return l
}

// after returns lines behind a prefix of the first; the others are indented as far, or have it, too.
func after(prefix line, each bool, lines []line) []line {
	for i := range lines {
		lines[i] = trimmed(slices.Concat(prefix, lines[i]))
		if !each {
			prefix, each = spaces(prefix.columns()), true
		}
	}
	return lines
}

// Harmless replaces control characters, except tabs and line ends, by their Unicode symbols.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', !unicode.IsControl(r):
			return r
		case r < ' ':
			return '␀' + r
		case r == 0x7f:
			return '␡'
		default:
			return unicode.ReplacementChar
		}
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// Columns returns the columns of a text of one line.
func Columns(s string) int { return styled(s, 0).columns() }

// Cut returns the beginning of a text of one line that has at most so many columns, with an ellipsis if it was longer.
func Cut(s string, columns int) string {
	used, end := 0, 0
	for i, char := range s {
		if used < columns {
			end = i // leaves room for the ellipsis
		}
		if used += (glyph{char: char}).columns(); used > columns {
			return s[:end] + "…"
		}
	}
	return s
}

// Bold returns untrusted text of one line in bold.
func Bold(s string) string { return styled(s, bold).String() }
