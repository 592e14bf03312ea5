package short_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

func TestText(t *testing.T) {
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"ééé", 3, "é…"}, {"é", 0, "…"}, {"", 0, ""}, {"\xff\xff", 1, "\xff…"},
	} {
		if got := short.Text(row.text, row.limit); got != row.want {
			t.Errorf("Text(%q, %d): got %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func TestPrefix(t *testing.T) {
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"éa", 1, ""}, {"éa", 2, "é"}, {"\x80\x80", 1, ""},
	} {
		if got := short.Prefix(row.text, row.limit); got != row.want {
			t.Errorf("Prefix(%q, %d): got %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{" a\r\n\tb\x00c\u2028d\u0085 ", 20, "a b c d"},
		{"a\xffb", 20, "ab"},
		{"one two three", 7, "one two…"},
		{strings.Repeat(" ", 1000) + "x", 10, "…"},
		{"\x1b[31mred", 20, "[31mred"},
		{strings.Repeat(" ", 77) + "abc", 10, "abc"},   // 80 bytes are read
		{strings.Repeat(" ", 77) + "abcd", 10, "abc…"}, // and no more
		{strings.Repeat("a ", 5) + strings.Repeat(" ", 80), 9, "a a a a a…"},
	} {
		if got := short.Line(row.text, row.limit); got != row.want {
			t.Errorf("Line(%q, %d): got %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\nb", 1)
	f.Add("\xff\xf0é", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		got := short.Line(text, limit)
		if !utf8.ValidString(got) || len(got) > limit+len("…") || strings.ContainsAny(got, "\r\n\x00\u2028\u2029\u0085") {
			t.Errorf("Line(%q, %d): got %q", text, limit, got)
		}
	})
}
