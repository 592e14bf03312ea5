package suggest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/suggest"
)

func TestOf(t *testing.T) {
	tools := []string{"read_file", "read_graph", "write_file", "Calculate", strings.Repeat("x", 65)}
	for _, tc := range []struct {
		name  string
		names []string
		limit int
		want  []string
	}{
		{"read_fiel", tools, 3, []string{"read_file"}},
		{"read_grap", tools, 3, []string{"read_graph", "read_file"}},
		{"read_grap", tools, 1, []string{"read_graph"}},
		{"calculate", tools, 1, []string{"Calculate"}},
		{"frobnicate", tools, 3, nil},
		{"", tools, 3, nil},
		{"ab", []string{"something_else", "abc", "b", "abcd"}, 3, []string{"abc", "b"}}, // one letter more or less, not two
		{"foo", []string{"log", "fob"}, 2, []string{"fob"}},
		{"form", []string{"foal", "from"}, 2, []string{"from", "foal"}}, // a swap is one change
		{"abcd", []string{"bacx", "badc"}, 2, []string{"bacx", "badc"}},
		{strings.Repeat("x", 64), []string{strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65)}, 3,
			[]string{strings.Repeat("x", 64), strings.Repeat("x", 63)}},
		{strings.Repeat("x", 65), []string{strings.Repeat("x", 64)}, 3, nil}, // beyond what is compared
		{strings.Repeat("x", 66), tools, 3, nil},
	} {
		if got := suggest.Of(tc.name, tc.names, tc.limit); !slices.Equal(got, tc.want) {
			t.Errorf("Of(%q, %q, %d): got %v, want %v", tc.name, tc.names, tc.limit, got, tc.want)
		}
	}
}
