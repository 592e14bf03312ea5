package lines_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/lines"
)

// readAll returns all lines of r, "too long" for those over the bound, and the error that ended them.
func readAll(r io.Reader, size, most int) (all []string, err error) {
	in := lines.New(r, size, most)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			all = append(all, "too long")
		case err != nil && len(line) > 0:
			return append(all, "rest "+string(line)), err
		case err != nil:
			return all, err
		default:
			all = append(all, string(in.Keep(line)))
		}
	}
}

// chunks reads a few bytes at a time.
type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.n)]) }

func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "\n", "a\n", "a\r\nb\n", "a", "\r\n\r\n", strings.Repeat("x", 70_000) + "\ny\n", "a\x00b\n\xff\n", "\r", "\ufeffa\nb\n", "\ufeff", "\ufeff\ufeff\n\ufeff\n"} {
		f.Add([]byte(s), uint16(0))
		f.Add([]byte(s), uint16(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, chunk uint16) {
		var r io.Reader = bytes.NewReader(text)
		if chunk > 0 {
			r = &chunks{r, int(chunk)}
		}
		got, err := readAll(r, 64, 1<<20)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("got %v, want the end", err)
		}
		if want := plainLines(text, 1<<20); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		text = append(bytes.ReplaceAll(text, []byte("\r"), nil), '\n')
		got, _ = readAll(bytes.NewReader(text), 16, 5)
		if want := plainLines(text, 5); !slices.Equal(got, want) {
			t.Errorf("with a bound of 5: got %q, want %q", got, want)
		}
	})
}

// plainLines reads lines in the plainest way.
func plainLines(text []byte, most int) (all []string) {
	in := bufio.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	for {
		line, err := in.ReadString('\n')
		if err != nil && line != "" {
			all = append(all, "rest "+line)
		}
		if err != nil {
			return all
		}
		if line = strings.TrimRight(line, "\r\n"); len(line) > most {
			line = "too long"
		}
		all = append(all, line)
	}
}

// A line that is too long is an error before its end is there, so that an endless one is not waited for.
func TestEndlessLine(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = w.Write([]byte("0123456789")) }()
	if _, err := lines.New(r, 16, 5).Next(); !errors.Is(err, lines.ErrTooLong) {
		t.Errorf("got %v, want %v", err, lines.ErrTooLong)
	}
}

// Kept lines stay as they are, whether they fit the buffer or not.
func TestKeep(t *testing.T) {
	var want []string
	for n := range 200 {
		want = append(want, strings.Repeat(string(rune('a'+n%26)), 1+n*3))
	}
	in := lines.New(strings.NewReader(strings.Join(want, "\n")+"\n"), 64, 1000)
	var kept [][]byte
	for range want {
		line, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, in.Keep(line))
	}
	for i := range want {
		if string(kept[i]) != want[i] {
			t.Errorf("line %d: got %q, want %q", i, kept[i], want[i])
		}
	}
}
