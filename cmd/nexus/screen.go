package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// width returns the columns of the terminal that w writes to.
func width(w io.Writer) (columns int, ok bool) {
	if s, wrapped := w.(screen); wrapped {
		w = s.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	return columns, err == nil && columns > 0
}

// screen is a terminal to which texts of servers are written: their control characters are shown and not obeyed.
// Each Write is whole characters.
type screen struct{ w io.Writer }

// Write implements io.Writer.
func (s screen) Write(b []byte) (int, error) {
	if _, err := io.WriteString(s.w, harmless(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// emphasis is what Markdown marks as strong. "2**3" and "**kwargs" are none.
var emphasis = regexp.MustCompile(`(?m)(^|[\s(])\*\*([^\s*](?:[^*\n]*[^\s*])?)\*\*`)

// answer writes a text with what Markdown marks as strong in bold, or without the marks where colours are unwanted.
func (s screen) answer(text string) error {
	strong := "$1\x1b[1m$2\x1b[22m"
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		strong = "$1$2"
	}
	_, err := io.WriteString(s.w, emphasis.ReplaceAllString(harmless(text), strong)+"\n")
	return err
}

// harmless writes control characters, but for tabs and the ends of lines, as the symbols for them.
func harmless(s string) string {
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
