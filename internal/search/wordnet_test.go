package search

import (
	"maps"
	"regexp"
	"strings"
	"testing"
)

// Every stem of the table is found, and every line has the form that the search reads.
func TestWordnet(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+( [a-z]+[1-9])+$`)
	lines, last := 0, ""
	for line := range strings.Lines(wordnet) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		stem, related, _ := strings.Cut(line, " ")
		if !form.MatchString(line) || stem <= last {
			t.Fatalf("line %q after %q", line, last)
		}
		if got := wordnetLine(stem); got != related {
			t.Errorf("%s: got %q, want %q", stem, got, related)
		}
		lines, last = lines+1, stem
	}
	if lines < 10_000 {
		t.Errorf("got %d stems", lines)
	}
	for _, stem := range []string{"", "a", "zzz", "bu", "buyy", "工具"} {
		if got := wordnetLine(stem); got != "" {
			t.Errorf("%q: got %q", stem, got)
		}
	}
	if related := maps.Collect(wordnetRelated(Stem("buy"))); related[Stem("purchase")] != 0.5 {
		t.Errorf("buy: got %v, want purchase among them", related)
	}
}
