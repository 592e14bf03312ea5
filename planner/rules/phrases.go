package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// phrases returns the ordinary words that could be texts: what lies between function words and other values, without
// words at the ends that only say which tool is meant; and all that a search may be for, up to the end of a clause.
func (l *filler) phrases() (out []values.Value) {
	words := l.a.words
	add := func(from, to int, label string) {
		if from < to {
			out = append(out, l.a.phrase(from, to, label))
		}
	}
	plain := func(i int) bool {
		return words[i].weight > 0 && !slices.ContainsFunc(l.a.values,
			func(v values.Value) bool { return v.Start < words[i].end && words[i].start < v.End })
	}
	quoted := slices.ContainsFunc(l.a.values, func(v values.Value) bool { return v.Kind == values.Quotation })
	whole := slices.IndexFunc(words, func(w word) bool {
		within := func(v values.Value) bool { return v.Kind == values.Path && v.Start < w.start && w.end <= v.End }
		return w.weight > 0 && !search.RequestVerb(w.lower) && !slices.ContainsFunc(l.f.name, w.has) &&
			!l.f.module.any(w.stems) && !slices.ContainsFunc(l.a.values, within)
	})
	whole = l.lookedFor(whole)
	for i, w := range words {
		if i == whole {
			add(i, l.a.clauseEnd(i), "rest")
		}
		if i > 0 {
			before := words[i-1]
			said := list("sayings")[before.lower] && before.end+1 == w.start
			echoed := l.f.onlyText() && !quoted && before.has(l.f.verb) && (i == 1 || slices.ContainsFunc(l.a.verb, before.has))
			if said || echoed { // "echo hello world"
				add(i, l.a.clauseEnd(i), "said")
			}
			add(i, l.a.written(i), "said")
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
				text := l.a.text[words[k].start:words[n-1].end]
				if n-k < j-i && slices.ContainsFunc(l.f.params, func(q param) bool { return q.example(text) }) {
					add(k, n, "")
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
		add(from, to, "")
	}
	return out
}

// lookedFor skips words that only say where to search: "search the graph for Ann".
func (l *filler) lookedFor(i int) int {
	for j := i; j >= 0 && j+2 < len(l.a.words) && l.f.words.any(l.a.words[j].stems) && l.a.adjoin(j+1); {
		if j++; l.a.words[j].lower == "for" {
			return j + 1
		}
	}
	return i
}

// written is the end of what is to be written, if it begins with word i: "write hello world to notes.txt", "save the text
// hello in notes.txt". Else it is 0.
func (a ask) written(i int) int {
	named := func(i int) bool { // "the text"
		return i >= 0 && i+1 < len(a.words) && a.words[i].weight == 0 && list("body").any(a.words[i+1].stems)
	}
	verb := i - 1
	if named(i - 2) {
		verb = i - 3
	}
	if verb < 0 || named(i) || list("articles")[a.words[i].lower] || !list("creating").any(a.words[verb].stems) ||
		!slices.ContainsFunc(a.verb, a.words[verb].has) { // "the sum of 3 and 4" is no text itself
		return 0
	}
	for j := i; j+1 < len(a.words) && a.adjoin(j); j++ {
		to := a.words[j]
		if (to.lower == "to" || to.lower == "into" || to.lower == "in") && slices.ContainsFunc(a.values, func(v values.Value) bool {
			return v.Kind == values.Path && strings.TrimSpace(a.text[to.end:max(v.Start, to.end)]) == ""
		}) {
			return j
		}
	}
	return 0
}

// onlyText reports whether a text is all that a tool takes.
func (f *profile) onlyText() bool {
	return len(f.params) == 1 && kindOf(f.params[0].Schema) == "string" && list("body").any(f.params[0].stems)
}

// gap is what stands before word i.
func (a ask) gap(i int) string {
	return a.text[a.words[i-1].end:max(a.words[i].start, a.words[i-1].end)]
}

// adjoin reports whether only a space or a hyphen stands before word i.
func (a ask) adjoin(i int) bool { return strings.Trim(a.gap(i), " -") == "" }

// clauseEnd is the word after the last one before the next mark.
func (a ask) clauseEnd(i int) int {
	for i++; i < len(a.words) && !(strings.ContainsAny(a.gap(i), ".?!;,") && len(a.gap(i)) > 1); i++ { // but not of "1.24"
	}
	return i
}

// phrase is a value of the words [i,j).
func (a ask) phrase(i, j int, label string) values.Value {
	start, end := a.words[i].start, a.words[j-1].end
	v := values.Value{Kind: values.Phrase, Start: start, End: end, Text: a.text[start:end], Label: label}
	for i--; i >= 0 && a.words[i].weight == 0; i-- {
		w, other := a.words[i].lower, a.lang != "en"
		if cue := values.Cue(w, a.lang); other && cue != "on" && cue != "" { // "el" and "le" are articles
			w = cue
		}
		if list("phraseCues")[w] {
			v.Cue = strings.Replace(w, "into", "to", 1)
		}
		if v.Cue != "" || !other && !list("articles")[w] {
			break
		}
	}
	return v
}

// explains reports whether a word says which tool or parameter is meant rather than what to give it.
func (l *filler) explains(w word) bool {
	if search.RequestVerb(w.lower) {
		return true
	}
	return !slices.ContainsFunc(l.f.params, func(q param) bool { return q.exemplifies(w.lower) }) &&
		slices.ContainsFunc(w.stems, func(s string) bool {
			return l.f.words[s] || l.f.module[s] || l.f.shared[s] > 0 ||
				slices.ContainsFunc(l.f.name, func(n string) bool { return related(s, n) })
		})
}
