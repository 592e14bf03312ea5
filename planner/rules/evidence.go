package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// features are what speaks for or against calling a tool, each about 0 to 1.
type features [featureCount]float64

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

// weights come from a logistic regression and a search over the questions of docs/evaluation.md; the sum is evidence.
var weights = features{
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

func (x features) sum() float64 {
	total := 0.0
	for i, v := range x {
		total += weights[i] * v
	}
	return total
}

// features measures a tool, with what fills it, against what is asked.
func (p *Planner) features(a ask, f *profile, fill filling, rank int) features {
	x := features{place: float64(min(rank, 2)) / 2}
	topic, topicHit, all, allHit := 0.0, 0.0, 0.0, 0.0
	for _, w := range slices.Concat(a.words, a.kinds) {
		if f.answers(w) {
			w.weight = 1
		}
		if w.weight == 0 || w.numeral() {
			continue
		}
		used, known := fill.uses(w), p.knows(f, w)
		if w.start == w.end && !slices.ContainsFunc(f.name, w.has) { // a kind has to be in the name
			known = 0
		}
		all += w.weight
		allHit += w.weight * max(known, used)
		if used >= 0.75 && known < 1 {
			continue
		}
		topic += w.weight
		topicHit += w.weight * known
	}
	x[allKnown] = share(allHit, all, len(fill.chosen) > 0)
	x[topicHits] = min(topicHit, 4) / 4
	x[topicStrange] = min(topic-topicHit, 5) / 5
	x[nameSaid] = p.said(slices.Concat(a.words, a.kinds), f.name, f.module)
	if slices.ContainsFunc(a.operation, func(s string) bool { return slices.Contains(f.name, s) }) {
		x[nameSaid], x[place] = 1, 0 // "3 + 4" needs no verb
	}
	required, score := 0.0, 0.0
	for _, q := range f.params {
		c, has := fill.chosen[q.Name]
		if has && c.score >= strong {
			x[strongArgs] += 0.25
		}
		if !q.Required {
			continue
		}
		required++
		switch {
		case !has:
			x[missing]++
		case c.score < sure:
			x[weak]++
		}
		if has {
			if numeric(kindOf(q.Schema)) {
				c.score += 1.5
			}
			score += min(max(c.score, 0), strong) / strong
		}
	}
	if strings.Contains(strings.ToLower(clip(f.tool.Description, 300)), "deprecated") {
		x[place]++
	}
	if a.aboutFile() && f.isForDirectories() {
		x[place] += 0.5 // a file is no directory
	}
	x[missing], x[weak], x[strongArgs] = min(x[missing], 3)/3, min(x[weak], 3)/3, min(x[strongArgs], 1)
	x[filled] = score / max(required, 1)
	if required == 0 {
		x[nothingNeeded] = 1
	}
	return x
}

// share is hit of all; where there is nothing to explain it is 1 if values is true.
func share(hit, all float64, values bool) float64 {
	switch {
	case all > 0:
		return hit / all
	case values:
		return 1
	}
	return 0
}

// questions are the question words that have a list of what a tool is about that answers them, each with what to search for.
var questions = []struct{ word, topic string }{{"who", "person"}, {"when", "date"}}

// answers reports whether a word asks for what the tool is about: "who" for a person.
func (f *profile) answers(w word) bool {
	for _, q := range questions {
		for stem := range lists[q.word] {
			if w.has(q.word) && f.words[stem] {
				return true
			}
		}
	}
	return false
}

// knows is how well a tool's own words explain a word of the question.
func (p *Planner) knows(f *profile, w word) float64 {
	best := 0.0
	for _, s := range w.stems {
		switch {
		case f.words[s] || f.answers(w):
			return 1
		case f.labels[s]:
			best = max(best, 0.6)
		case best < 0.7 && slices.ContainsFunc(f.name, func(n string) bool { return p.related(s, n) }):
			best = 0.7
		}
	}
	return best
}

// said is the share of stems that the question says; generic and minor ones count less.
func (p *Planner) said(words []word, names []string, minor stems) float64 {
	total, hit := 0.0, 0.0
	for _, n := range names {
		weight := 1.0
		if lists["generic"][n] || lists["common"][n] || minor[n] {
			weight = 0.3
		}
		total += weight
		if slices.ContainsFunc(words, func(w word) bool {
			return slices.ContainsFunc(w.stems, func(s string) bool { return p.related(s, n) })
		}) {
			hit += weight
		}
	}
	return hit / max(total, 1)
}

// related reports whether two stems mean nearly the same, or one begins with the other: "discov" and "discoveri".
func (p *Planner) related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return search.Related(a, b) || len(a) >= 5 && strings.HasPrefix(b, a)
}
