package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// evidence is what speaks for or against calling a tool, each feature about 0 to 1.
type evidence [featureCount]float64

const (
	allKnown      = iota // share of the question that the tool or its arguments explain
	nameSaid             // share of the tool's name that the question says
	topicHits            // how much of the topic the tool explains, absolutely
	topicStrange         // how much of the topic it does not, absolutely
	missing              // required parameters without a value
	weak                 // required parameters with a weak value
	filled               // how well required parameters are filled
	strongArgs           // how many parameters are filled well
	nothingNeeded        // the tool has no required parameters
	place                // in the ranking
	featureCount
)

// weights come from a logistic regression and a search over the questions of docs/evaluation.md; their sum decides.
var weights = evidence{
	allKnown:      1.2,
	nameSaid:      1.25,
	topicHits:     0.9,
	topicStrange:  -1.1,
	missing:       -1.5,
	weak:          -1.5,
	filled:        1.7,
	strongArgs:    1.15,
	nothingNeeded: 1.15,
	place:         -2.2,
}

// threshold is the evidence a call needs.
const threshold = 1.7

func (x evidence) sum() float64 {
	total := 0.0
	for i, v := range x {
		total += weights[i] * v
	}
	return total
}

// features measures a tool, with what fills it, against what is asked.
func features(a ask, f *profile, fill filling, rank int) evidence {
	x := evidence{place: float64(min(rank, 2)) / 2}
	topic, topicHit, all, allHit := 0.0, 0.0, 0.0, 0.0
	words := slices.Concat(a.words, a.kinds)
	for _, w := range words {
		if f.answers(w) {
			w.weight = 1
		}
		if w.weight == 0 || w.numeral() {
			continue
		}
		used, known := fill.uses(w), f.knows(w)
		if a.quoted(w) {
			known = 0
		}
		if w.start == w.end && !slices.ContainsFunc(f.name, w.has) { // a kind has to be in the name
			known = 0
		}
		all += w.weight
		allHit += w.weight * max(known, used)
		if used < 0.75 || known == 1 {
			topic += w.weight
			topicHit += w.weight * known
		}
	}
	if all > 0 {
		x[allKnown] = allHit / all
	} else if len(fill.chosen) > 0 {
		x[allKnown] = 1
	}
	x[topicHits] = min(topicHit, 4) / 4
	x[topicStrange] = min(topic-topicHit, 5) / 5
	x[nameSaid] = f.said(slices.DeleteFunc(words, a.quoted))
	if a.calculates(f) {
		x[nameSaid], x[place] = 1, 0 // "3 + 4" needs no verb
	}
	if topic > 0 && topicHit == 0 && x[nameSaid] == 0 && len(f.required()) == 0 {
		x[topicStrange]++ // "weather in Berlin" is not for what only knows Berlin
	}
	if strings.Contains(strings.ToLower(clip(f.tool.Description, 300)), "deprecated") {
		x[place]++
	}
	if a.aboutFile() && f.isForDirectories() {
		x[place] += 0.5 // a file is no directory
	}
	for _, q := range f.params {
		c, has := fill.chosen[q.Name]
		if has && c.score >= strong {
			x[strongArgs] = min(x[strongArgs]+0.25, 1)
		}
		if !q.Required {
			continue
		}
		if has && numeric(kindOf(q.Schema)) {
			x[filled] += min(max(c.score+1.5, 0), strong) / strong
		} else if has {
			x[filled] += min(max(c.score, 0), strong) / strong
		}
		if !has {
			x[missing] = min(x[missing]+1.0/3, 1)
		} else if c.score < sure {
			x[weak] = min(x[weak]+1.0/3, 1)
		}
	}
	if required := len(f.required()); required > 0 {
		x[filled] /= float64(required)
	} else {
		x[nothingNeeded] = 1
	}
	return x
}

// quoted reports whether a word is a part of a quotation, which says nothing about the tool.
func (a ask) quoted(w word) bool {
	return slices.ContainsFunc(a.values, func(v values.Value) bool {
		return v.Kind == values.Quotation && v.Start < w.start && w.end < v.End
	})
}

// answers reports whether a word asks for what the tool is about: "who" for a person.
func (f *profile) answers(w word) bool {
	return w.has("who") && f.words.meets(list("who")) || w.has("when") && f.words.meets(list("when"))
}

// knows is how well a tool's own words explain a word of the question.
func (f *profile) knows(w word) (best float64) {
	if f.answers(w) {
		return 1
	}
	for _, s := range w.stems {
		switch {
		case f.words[s]:
			return 1
		case f.labels[s]:
			best = max(best, 0.6)
		case slices.ContainsFunc(f.name, func(n string) bool { return related(s, n) }):
			best = 0.7
		}
	}
	return best
}

// said is the share of a tool's name that the question says; words that say little count less.
func (f *profile) said(words []word) float64 {
	total, hit := 0.0, 0.0
	for _, n := range f.name {
		weight := 1.0
		if list("generic")[n] || list("common")[n] || f.module[n] {
			weight = 0.3
		}
		total += weight
		if slices.ContainsFunc(words, func(w word) bool {
			return slices.ContainsFunc(w.stems, func(s string) bool { return related(s, n) })
		}) {
			hit += weight
		}
	}
	return hit / max(total, 1)
}

// related reports whether two stems mean nearly the same, or one begins with the other: "discov" and "discoveri".
func related(a, b string) bool {
	short, long := min(len(a), len(b)), max(a, b)
	return search.Related(a, b) || short >= 5 && strings.HasPrefix(long, min(a, b))
}
