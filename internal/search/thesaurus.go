package search

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed thesaurus.txt
var thesaurusText string

// thesaurus maps stems to near synonyms. It is parsed on first use.
var thesaurus = sync.OnceValue(func() map[string][]string {
	s := map[string][]string{}
	for line := range strings.Lines(thesaurusText) {
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
})

// Related reports whether two stems (see [Stem]) are equal or in one group of the thesaurus.
func Related(a, b string) bool { return a == b || slices.Contains(thesaurus()[a], b) }
