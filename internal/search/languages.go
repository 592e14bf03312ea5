package search

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/spanish"

	"github.com/agenticnexus/agenticnexus/internal/segment"
)

//go:embed lexicon.txt
var lexiconText string

// lexicon maps the stems of a language to those of English words, or to none for a word without a topic. It is parsed
// on first use.
var lexicon = sync.OnceValue(readLexicon)

// lexiconLanguages is the order of the languages in the lexicon.
var lexiconLanguages = []string{"de", "fr", "es"}

// readLexicon reads lines such as "file: datei | fichier | archivo".
func readLexicon() map[string]map[string][]string {
	out := map[string]map[string][]string{"de": {}, "fr": {}, "es": {}}
	for line := range strings.Lines(lexiconText) {
		english, others, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		var stems []string
		for w := range strings.FieldsSeq(english) {
			stems = append(stems, Stem(w))
		}
		for i, words := range strings.Split(others, "|") {
			lang := lexiconLanguages[i]
			for w := range strings.FieldsSeq(words) {
				key := snowball(w, lang)
				out[lang][key] = append(out[lang][key], stems...)
			}
		}
	}
	return out
}

// StemsIn returns the stems that a word of a language ("de", "fr", "es") may have in a catalog: its own and those of
// its English translations. For other languages it returns [Stem]. empty reports that the word has no topic.
func StemsIn(word, language string) (stems []string, empty bool) {
	word = strings.ToLower(word)
	known := lexicon()[language]
	if known == nil {
		return []string{Stem(word)}, IsStopWord(word)
	}
	own := snowball(word, language)
	english, listed := known[own]
	return append([]string{own}, english...), listed && len(english) == 0
}

// snowball returns the unaccented stem of a word in its language.
func snowball(word, language string) string {
	env := snowballstem.NewEnv(strings.ToLower(word))
	switch language {
	case "de":
		german.Stem(env)
	case "fr":
		french.Stem(env)
	case "es":
		spanish.Stem(env)
	}
	return strings.Join(segment.Words(env.Current()), "")
}
