package search

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed thesaurus.txt
var thesaurusText string

func parseThesaurus(text string) map[string][]string {
	s := map[string][]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		for i := range words {
			words[i] = Stem(words[i])
		}
		for _, a := range words {
			for _, b := range words {
				if a != b {
					s[a] = append(s[a], b)
				}
			}
		}
	}
	return s
}

// Thesaurus knows which stems mean nearly the same. It is immutable.
type Thesaurus struct{ related map[string][]string }

// NewThesaurus returns the thesaurus that searches use.
func NewThesaurus() *Thesaurus { return &Thesaurus{parseThesaurus(thesaurusText)} }

// Related reports whether two stems (see [Stem]) are the same or in one group.
func (t *Thesaurus) Related(a, b string) bool { return a == b || slices.Contains(t.related[a], b) }
