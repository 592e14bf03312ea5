package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// propers finds names: runs of capitalised words, with the small words that join them ("Bank of
// England") and numbers that end them ("iPhone 12"). A word that is capital only because it opens a
// sentence belongs to a name only if another capital follows.
func (r reading) propers(taken []bool) []mention {
	var out []mention
	for i := 0; i < len(r.tokens); i++ {
		if taken[i] || !r.nameWord(i) {
			continue
		}
		start := i
		if r.opensSentence(i) && (r.common(i) || i+1 >= len(r.tokens) || !r.nameWord(i+1)) {
			if r.common(i) {
				continue
			}
		}
		end := r.nameEnd(i, taken)
		out = append(out, mention{kind: kindProper, start: start, end: end, text: strings.TrimSuffix(strings.TrimSuffix(r.between(start, end), "'s"), "’s")})
		i = end - 1
	}
	return out
}

func (r reading) nameWord(i int) bool {
	t := r.tokens[i]
	return !t.punct() && t.capital() && !t.is("i", "i'm", "i'd", "i've", "i'll", "id", "ids", "uuid", "url", "ip") && !(t.stop() && r.opensSentence(i))
}

// opensSentence reports whether token i is the first word of a sentence or of a quotation.
func (r reading) opensSentence(i int) bool {
	if i == 0 {
		return true
	}
	p := r.tokens[i-1]
	return p.text == "." || p.text == "?" || p.text == "!" || p.text == ":" || p.text == "\"" && i == 1 || strings.Contains(r.text[p.end:r.tokens[i].start], "\n")
}

// common reports whether the capital of a sentence's first word says nothing.
func (r reading) common(i int) bool {
	t := r.tokens[i]
	return t.stop() || search.RequestVerb(t.lower) || openers[t.lower]
}

var openers = set(`what which who whom whose where when why how is are was were do does did can could would should will may might have has had
please hi hello hey dear also and or but so then next first finally additionally furthermore lastly secondly thirdly if given using based considering suppose assume let
today tomorrow yesterday now here there yes no thanks`)

// nameEnd returns the token after the name that begins at i.
func (r reading) nameEnd(i int, taken []bool) int {
	end := i + 1
	for end < len(r.tokens) && !taken[end] {
		t := r.tokens[end]
		switch {
		case r.nameWord(end) && !t.is("i") && !r.opensSentence(end):
			end++
		case allDigits(t.text) && len(t.text) < 4 && !r.tokens[end-1].is("no", "number"):
			end++
		case nameJoiners[t.lower] && end+1 < len(r.tokens) && !taken[end+1] && r.nameWord(end+1):
			end += 2
		case t.is("of") && end+2 < len(r.tokens) && r.tokens[end+1].is("the") && r.nameWord(end+2) && !taken[end+2]:
			end += 3
		default:
			return end
		}
	}
	return end
}

var nameJoiners = set("of de la del da di van von der den el al bin & du des le y")

// phrases finds runs of content words in what is left, and single nouns joined by "of".
func (r reading) phrases(taken []bool) []mention {
	var out []mention
	for i := 0; i < len(r.tokens); i++ {
		if taken[i] || r.tokens[i].stop() {
			continue
		}
		end := i + 1
		for end < len(r.tokens) && !taken[end] && !r.tokens[end].stop() {
			end++
		}
		out = append(out, mention{kind: kindPhrase, start: i, end: end, text: r.between(i, end)})
		i = end
	}
	return out
}

// uncapitalised finds the places that are known by name in a question without any capitals: who writes "weather in new
// york" writes all names so. A place stands after a preposition, a conjunction, or the place that it adds to.
func (r reading) uncapitalised(taken []bool) []mention {
	if slices.ContainsFunc(r.tokens, func(t token) bool { return t.capital() && !t.is("i") }) {
		return nil
	}
	var out []mention
	for i := 1; i < len(r.tokens); i++ {
		adds := len(out) > 0 && out[len(out)-1].end == i-1 && r.tokens[i-1].text == ","
		if cue := r.cue(i); !adds && !placePreps[cue] && cue != "between" && cue != "and" {
			continue
		}
		for end := min(i+longestPlace, len(r.tokens)); end > i; end-- {
			text := r.between(i, end)
			if end == i+1 && r.tokens[i].stop() {
				break // "for us"
			}
			if !taken[i] && !taken[end-1] && knownPlace(text) {
				out = append(out, mention{kind: kindProper, start: i, end: end, text: text})
				i = end - 1
				break
			}
		}
	}
	return out
}

// longestPlace is the number of words of the longest names of places.
const longestPlace = 4
