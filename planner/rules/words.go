package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/segment"
)

// maxWords bounds how much of a question is read; a longer one is planned by its beginning.
const maxWords = 600

// word is a word of the question. Stems are what it may be called in a catalog: its own, and those of its translations.
type word struct {
	start, end int // bytes of the question
	lower      string
	stems      []string
	weight     float64 // how much it says about the topic, 0 to 1
}

func (w word) has(stem string) bool { return slices.Contains(w.stems, stem) }

// numeral reports whether a word is a number, perhaps with a unit.
func (w word) numeral() bool {
	return w.lower[0] >= '0' && w.lower[0] <= '9' && !strings.ContainsFunc(w.lower, func(r rune) bool { return r >= 'a' })
}

// pronoun reports whether a word stands for what was said before.
func (w word) pronoun() bool { return list("pronouns")[w.lower] }

var wordShape = lazy(`[\pL\pN\pM_][\pL\pN\pM_'’]*`)

// readWords splits text[from:to] into words.
func readWords(text string, from, to int, lang string) []word {
	var out []word
	for _, at := range wordShape().FindAllStringIndex(text[from:to], maxWords) {
		out = append(out, newWord(text, from+at[0], from+at[1], lang))
	}
	return out
}

func newWord(text string, start, end int, lang string) word {
	own := strings.TrimRight(text[start:end], "'’")
	w := word{start: start, end: start + len(own), lower: strings.ToLower(strings.ReplaceAll(own, "’", "'")), weight: 1}
	if i := strings.IndexByte(w.lower, '\''); lang == "fr" && i > 0 && i <= 2 {
		w.lower = w.lower[i+1:] // the article belongs to the next word: "l'issue"
	}
	parts := segment.Words(own)
	for _, part := range parts {
		w.stems = append(w.stems, search.Stem(part))
	}
	stems, empty := search.StemsIn(strings.ReplaceAll(strings.TrimSuffix(w.lower, "'s"), "'", ""), lang)
	w.stems = unique(append(w.stems, stems...))
	switch {
	case empty || list("introducing")[w.lower] || len(parts) == 0:
		w.weight = 0
	case list("common").any(w.stems) || list("generic").any(w.stems):
		w.weight = 0.4
	case search.RequestVerb(w.lower):
		w.weight = 0.8
	}
	return w
}

// unique drops what stands twice.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
