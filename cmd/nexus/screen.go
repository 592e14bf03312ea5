package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
)

const usualColumns = 80 // of a terminal that does not tell

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
	if _, err := io.WriteString(s.w, terminal.Harmless(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// styled returns the terminal of standard output, for texts laid out by package terminal, and its columns. It reports
// false if there is none, or if the user or the terminal wants plain text.
func (w *world) styled() (out io.Writer, columns int, ok bool) {
	s, ok := w.stdout.(screen)
	if kind := os.Getenv("TERM"); !ok || kind == "" || kind == "dumb" || os.Getenv("NO_COLOR") != "" {
		return nil, 0, false
	}
	if columns, ok = width(s); !ok {
		columns = usualColumns
	}
	return s.w, columns, true
}
