package main

import (
	"io"
	"os"
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

// screen writes untrusted texts to a terminal. It replaces control characters by visible symbols. Each Write must have
// complete characters.
type screen struct{ w io.Writer }

// Write implements io.Writer.
func (s screen) Write(b []byte) (int, error) {
	if _, err := io.WriteString(s.w, harmless(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// harmless replaces control characters, except tabs and line ends, by their Unicode symbols.
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
