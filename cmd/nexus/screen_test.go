package main

import (
	"strings"
	"testing"
)

// TestScreen_Answer checks that only what Markdown marks as strong is bold, and that texts of servers do not command.
func TestScreen_Answer(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, tc := range []struct{ colour, text, want string }{
		{"", "**get_sum**: 7", "\x1b[1mget_sum\x1b[22m: 7\n"},
		{"", "- **Ann Lee** (a: **b**)", "- \x1b[1mAnn Lee\x1b[22m (a: \x1b[1mb\x1b[22m)\n"},
		{"", "2**3**4, f(**a, **b), ** x **, # title", "2**3**4, f(**a, **b), ** x **, # title\n"},
		{"", "**\x1b[2Jx**", "\x1b[1m␛[2Jx\x1b[22m\n"},
		{"1", "**get_sum**: 7", "get_sum: 7\n"},
	} {
		t.Setenv("NO_COLOR", tc.colour)
		var out strings.Builder
		if err := (screen{&out}).answer(tc.text); err != nil || out.String() != tc.want {
			t.Errorf("answer(%q): got %q, %v; want %q", tc.text, out.String(), err, tc.want)
		}
	}
}
