package texts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b", "a b", "a b"},
		{"", "a", "{+a+}"},
		{"a", "", "[-a-]"},
		{"a b c", "a x c", "a [-b -]{+x +}c"},
		{"a b c d", "c d a b", "[-a b -]c [-d-]{+d a b+}"},
	} {
		split := func(text string) []string { return strings.SplitAfter(text, " ") }
		var got strings.Builder
		for _, p := range texts.Compare(split(c.a), split(c.b)) {
			got.WriteString(map[string]string{texts.Removed: "[-", texts.Added: "{+"}[p.Change] + p.Text +
				map[string]string{texts.Removed: "-]", texts.Added: "+}"}[p.Change])
		}
		if got.String() != c.want {
			t.Errorf("Compare(%q, %q) = %s, want %s", c.a, c.b, got.String(), c.want)
		}
	}
	long := slices.Repeat([]string{"x", "y"}, 2000) // beyond the bound, the middle counts as replaced
	got := texts.Compare(append([]string{"a"}, long...), append([]string{"a", "b"}, slices.Repeat([]string{"y", "x"}, 2000)...))
	if len(got) != 3 || got[0].Text != "a" || got[1].Change != texts.Removed || got[2].Change != texts.Added {
		t.Errorf("got %d pieces, want the common beginning and one replacement", len(got))
	}
}
