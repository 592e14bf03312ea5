package rules

import (
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// What the words around a value say about a parameter.
const (
	inName      = 3.0  // one is in the parameter's name, divided by how many names have it
	likeName    = 2.25 // one is related to the name
	inAbout     = 1.2  // one is in the description, divided as well
	ofTool      = 0.75 // in the description, and about the tool
	nextWord    = 0.75 // times this for each word between
	nextPhrase  = 0.6  // times this for a comma or preposition between
	inside      = 0.6  // the word is in the value
	afterNumber = 1.3  // it follows a number
	afterText   = 0.65 // it follows a text
)

// cue weighs the words around a part of the question against a parameter: "a radius of 5" speaks for radius, "for 5 years"
// for time_in_years. Nearer words count more, words before more than words after, and those in the value less.
func (l *filler) cue(q param, start, end int) float64 {
	words := l.a.words
	at, _ := slices.BinarySearchFunc(words, start, func(w word, at int) int { return w.start - at })
	best, weight, edge := 0.0, 1.0, start
	for i, content := at-1, 0; i >= 0 && content < 4 && at-i < 9; i-- {
		between := l.a.text[words[i].end:max(edge, words[i].end)]
		edge = words[i].start
		if strings.ContainsAny(between, ".?!;") || i < at-1 && words[i+1].numeral() || list("relative")[words[i].lower] {
			break
		}
		if strings.Contains(between, ",") {
			weight *= nextPhrase
		}
		best = max(best, weight*l.names(q, words[i]))
		switch {
		case words[i].weight > 0:
			content++
			weight *= nextWord
		case words[i].lower != "of" && list("placeCues")[words[i].lower]: // "cuisine in Seattle"
			weight *= nextPhrase
		}
	}
	weight = afterNumber
	if start < len(l.a.text) && !unicode.IsDigit(rune(l.a.text[start])) {
		weight = afterText // "the tennis player": the word after a name says less than the one before
	}
	for i, after := at, 0; i < len(words) && after < 4; i++ {
		if words[i].end <= end { // the unit of a number, or "Hotel Paradise" for a hotel
			best, edge = max(best, inside*l.names(q, words[i])), words[i].end
			continue
		}
		gap := strings.Trim(l.a.text[min(max(edge, end), words[i].start):words[i].start], " \"'")
		if gap != "" || words[i].lower == "and" || words[i].lower == "or" || words[i].numeral() {
			break
		}
		best, edge = max(best, weight*l.names(q, words[i])), words[i].end
		weight *= nextWord
		after++
	}
	return best
}

// names is how well one word of the question names a parameter. A word that several parameters have in common says little.
func (l *filler) names(q param, w word) (best float64) {
	if w.numeral() || w.weight == 0 {
		return 0
	}
	like := func(s string) bool {
		return !search.RequestVerb(w.lower) && slices.ContainsFunc(q.stems, func(n string) bool {
			return shortens(n, s) || len(n) >= 5 && shortens(s, n) || search.Related(s, n) && l.f.shared[s] == 0
		})
	}
	for _, s := range w.stems {
		switch {
		case q.named(s):
			best = max(best, inName/float64(max(1, l.f.shared[s])))
		case q.about[s] && l.f.words[s]:
			best = max(best, ofTool)
		case q.about[s]:
			best = max(best, inAbout/float64(l.f.describing(s)))
		case like(s):
			best = max(best, likeName)
		}
	}
	return best
}

// describing is how many parameters' descriptions have a stem.
func (f *profile) describing(stem string) (n int) {
	for _, q := range f.params {
		if q.about[stem] {
			n++
		}
	}
	return max(n, 1)
}

// shortens reports whether a is a shortened b, as in "temp" and "temperature".
func shortens(a, b string) bool { return len(a) >= 3 && len(b) > len(a) && b[:len(a)] == a }
