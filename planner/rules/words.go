package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// maxWords bounds how much of a question is read; a longer one is planned by its beginning.
const maxWords = 600

// word is a word of the question. Stems are what it may be called in a catalog: its own, and those of its translations.
type word struct {
	start, end int // bytes of the question
	text       string
	lower      string
	stems      []string
	weight     float64 // how much it says about the topic, 0 to 1
}

// is reports whether the word has one of the stems.
func (w word) is(stems map[string]bool) bool {
	return slices.ContainsFunc(w.stems, func(s string) bool { return stems[s] })
}

// has reports whether the word has the stem.
func (w word) has(stem string) bool { return slices.Contains(w.stems, stem) }

// readWords splits text[from:to] into words at everything that cannot stand inside of a word or number.
func readWords(text string, from, to int, lang string) []word {
	var out []word
	inside := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("_'’", r)
	}
	for i := from; i < to && len(out) < maxWords; {
		r, n := utf8.DecodeRuneInString(text[i:to])
		if !inside(r) || r == '\'' || r == '’' {
			i += n
			continue
		}
		end := i + n
		for end < to {
			r, n := utf8.DecodeRuneInString(text[end:to])
			if !inside(r) {
				break
			}
			end += n
		}
		out = append(out, newWord(text, i, end, lang))
		i = end
	}
	return out
}

func newWord(text string, start, end int, lang string) word {
	w := word{start: start, end: end, text: strings.TrimRight(text[start:end], "'’")}
	w.lower = strings.ToLower(strings.ReplaceAll(w.text, "’", "'"))
	if lang == "fr" { // the article belongs to the next word: "l'issue"
		if i := strings.IndexByte(w.lower, '\''); i > 0 && i <= 2 {
			w.lower = w.lower[i+1:]
		}
	}
	for _, part := range search.Words(w.text) {
		w.stems = append(w.stems, search.Stem(part))
	}
	stems, empty := search.StemsIn(strings.ReplaceAll(strings.TrimSuffix(w.lower, "'s"), "'", ""), lang)
	w.stems = unique(append(w.stems, stems...))
	w.weight = weigh(w)
	if empty || introducing[w.lower] || len(search.Words(w.text)) == 0 {
		w.weight = 0
	}
	return w
}

// weigh says how much a word tells about the topic of a question.
func weigh(w word) float64 {
	switch {
	case w.is(commonVerbs), w.is(genericWords):
		return 0.4
	case search.RequestVerb(w.lower):
		return 0.8
	}
	return 1
}

func wordSet(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

func stemSet(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[search.Stem(w)] = true
	}
	return out
}

// introducing words stand before a value and carry no topic.
var introducing = wordSet("called named titled entitled saying stating located using given following")

// genericWords say little about what a tool is for.
var genericWords = stemSet(`information info data detail details list lists name names number numbers result results type types item items value
values user users given specific provide based tool function api service system available certain various retrieve id ids current latest new
request query following example option options different multiple single content set way find search get show tell`)

// commonVerbs are what most tools do.
var commonVerbs = stemSet(`get find search show list give tell retrieve fetch obtain provide return check look need make create add update set calculate
compute use determine identify perform run start see view know generate read`)
