package rules

import (
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// What the words around a value say about a parameter.
const (
	inName      = 3.0  // one is in the parameter's name, divided by how many names have it
	emptyInName = 0.5  // a word without a topic is
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
		if strings.ContainsAny(between, ".?!;") || i < at-1 && words[i+1].numeral() || slices.Contains(relative, words[i].lower) {
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
		case words[i].lower != "of" && slices.Contains(placeCues, words[i].lower): // "cuisine in Seattle"
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

// names is how well one word of the question names a parameter. A word that several parameters or the tool itself have in
// common says little.
func (l *filler) names(q param, w word) float64 {
	best := 0.0
	if w.numeral() {
		return 0
	}
	for _, s := range w.stems {
		switch {
		case slices.Contains(q.stems, s) && w.weight == 0:
			best = max(best, emptyInName)
		case slices.Contains(q.stems, s):
			best = max(best, inName/float64(max(1, l.f.shared[s])))
		case w.weight == 0:
		case q.about[s] && l.f.words[s]:
			best = max(best, ofTool)
		case q.about[s]:
			best = max(best, inAbout/float64(l.f.describing(s)))
		case !search.RequestVerb(w.lower) && slices.ContainsFunc(q.stems, func(n string) bool {
			return shortens(n, s) || len(n) >= 5 && shortens(s, n) || search.Related(s, n) && l.f.shared[s] == 0
		}):
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

// relative words begin a clause about the word before them: "Rome, the city where Mr. Gates lives".
var relative = strings.Fields("where who which whose")

// sayings are words before what a message says.
var sayings = strings.Fields("saying says stating telling")

// phrases returns the ordinary words that could be texts: what lies between function words and other values, without
// words at the ends that only say which tool is meant; and all that a search may be for, up to the end of a clause.
func (l *filler) phrases() []values.Value {
	var out []values.Value
	words := l.a.words
	plain := func(i int) bool {
		return words[i].weight > 0 && !slices.ContainsFunc(l.a.values,
			func(v values.Value) bool { return v.Start < words[i].end && words[i].start < v.End })
	}
	quoted := slices.ContainsFunc(l.a.values, func(v values.Value) bool { return v.Kind == values.Quotation })
	whole := false // all that a search may be for is found
	for i := 0; i < len(words); i++ {
		if !whole && words[i].weight > 0 && !search.RequestVerb(words[i].lower) &&
			!slices.ContainsFunc(l.f.name, words[i].has) && !l.f.module.any(words[i].stems) {
			whole = true
			out = append(out, l.a.phrase(i, l.a.clauseEnd(i), "rest"))
		}
		if i > 0 && slices.Contains(sayings, words[i-1].lower) && words[i-1].end+1 == words[i].start {
			out = append(out, l.a.phrase(i, l.a.clauseEnd(i), "said"))
		}
		if i > 0 && l.f.onlyText() && !quoted && slices.ContainsFunc(l.a.verb, words[i-1].has) && words[i-1].has(l.f.verb) {
			out = append(out, l.a.phrase(i, l.a.clauseEnd(i), "said")) // "echo hello world"
		}
		if j := l.a.written(i); j > i {
			out = append(out, l.a.phrase(i, j, "said"))
		}
		if !plain(i) || i > 0 && plain(i-1) && l.a.adjoin(i) {
			continue
		}
		j := i + 1
		for j < len(words) && plain(j) && l.a.adjoin(j) {
			j++
		}
		for k := i; k < j; k++ { // "vegetarian pasta", where the description names "vegetarian"
			for n := k + 1; n <= min(j, k+2); n++ {
				v := l.a.phrase(k, n, "")
				if n-k < j-i && slices.ContainsFunc(l.f.params, func(q param) bool { return q.example(v.Text) }) {
					out = append(out, v)
				}
			}
		}
		from, to := i, j
		for from < to && l.explains(words[from]) {
			from++
		}
		for to > from && l.explains(words[to-1]) {
			to--
		}
		if from < to {
			out = append(out, l.a.phrase(from, to, ""))
		}
	}
	return out
}

// written is the end of what is to be written, if it begins with word i: "write hello world to notes.txt". Else it is 0.
func (a ask) written(i int) int {
	if i == 0 || !lists["creating"].any(a.words[i-1].stems) || !slices.ContainsFunc(a.verb, a.words[i-1].has) {
		return 0
	}
	for j := i; j+1 < len(a.words) && a.adjoin(j); j++ {
		to := a.words[j].lower
		if (to == "to" || to == "into" || to == "in") && slices.ContainsFunc(a.values, func(v values.Value) bool {
			return v.Kind == values.Path && strings.TrimSpace(a.text[a.words[j].end:max(v.Start, a.words[j].end)]) == ""
		}) {
			return j
		}
	}
	return 0
}

// onlyText reports whether a text is all that a tool takes.
func (f *profile) onlyText() bool {
	return len(f.params) == 1 && kindOf(f.params[0].Schema) == "string" && lists["body"].any(f.params[0].stems)
}

// adjoin reports whether only a space or a hyphen stands before word i.
func (a ask) adjoin(i int) bool {
	return strings.Trim(a.text[a.words[i-1].end:max(a.words[i].start, a.words[i-1].end)], " -") == ""
}

// clauseEnd is the word after the last one before the next mark.
func (a ask) clauseEnd(i int) int {
	for i++; i < len(a.words) && !strings.ContainsAny(a.text[a.words[i-1].end:max(a.words[i].start, a.words[i-1].end)], ".?!;,"); i++ {
	}
	return i
}

// phrase is a value of the words [i,j).
func (a ask) phrase(i, j int, label string) values.Value {
	start, end := a.words[i].start, a.words[j-1].end
	return values.Value{Kind: values.Phrase, Start: start, End: end, Text: a.text[start:end], Cue: a.cueAt(i),
		Label: label}
}

// cueAt is the function word before word i, articles skipped.
func (a ask) cueAt(i int) string {
	for i--; i >= 0 && a.words[i].weight == 0; i-- {
		w := a.words[i].lower
		if cue := values.Cue(w, a.lang); a.lang != "en" && cue != "on" && cue != "" { // "el" and "le" are articles
			w = cue
		} else if a.lang != "en" {
			continue
		}
		switch {
		case w == "into":
			return "to"
		case slices.Contains(placeCues, w) || w == "about" || w == "on" || w == "with" || w == "by":
			return w
		case !slices.Contains([]string{"a", "an", "the", "my", "our", "your", "this", "that", "some", "any"}, w):
			return ""
		}
	}
	return ""
}

// explains reports whether a word says which tool or parameter is meant rather than what to give it.
func (l *filler) explains(w word) bool {
	if search.RequestVerb(w.lower) ||
		slices.ContainsFunc(l.f.params, func(q param) bool { return q.exemplifies(w.lower) }) {
		return search.RequestVerb(w.lower)
	}
	return slices.ContainsFunc(w.stems, func(s string) bool {
		return l.f.words[s] || l.f.module[s] || l.f.shared[s] > 0 ||
			slices.ContainsFunc(l.f.name, func(n string) bool { return l.p.related(s, n) })
	})
}
