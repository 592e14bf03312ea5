package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/planner/search"
)

// speaksOf is how plainly a mention speaks of an output: "the converted amount" of converted_amount.
func (f *filler) speaksOf(m mention, o output, producer *frame) float64 {
	if m.kind != kindPhrase && m.kind != kindCode && m.kind != kindProper {
		return 0
	}
	total, hit := 0.0, 0.0
	said := f.r.stemsOf(m)
	for _, s := range o.stems {
		if genericWords[s] {
			continue
		}
		total++
		if slices.ContainsFunc(said, func(w string) bool { return f.p.related(w, s) }) {
			hit++
		}
	}
	if hit == 0 || hit/total < 0.5 || f.r.defined(m) {
		return 0
	}
	definite := m.start > 0 && f.r.tokens[m.start-1].is("the", "that", "this", "these", "those", "each", "its", "their")
	if !definite && hit < total {
		return 0
	}
	score := 0.6 + hit/total
	if definite {
		score += 0.6
	}
	for _, t := range f.r.tokens[m.start:m.end] {
		if backward[t.lower] || strings.HasSuffix(t.lower, "ed") && slices.ContainsFunc(t.stems, func(s string) bool { return slices.Contains(producer.name, s) }) {
			score += 0.8
			break
		}
	}
	return score
}

// defined reports whether a sentence says what a mention is, rather than speaking of what is known: "the title should
// be …", "the budget is …".
func (r reading) defined(m mention) bool {
	for i := m.end; i < len(r.tokens) && i < m.end+2; i++ {
		if r.tokens[i].is("is", "are", "was", "were", "be", "should", "will", "must") || r.tokens[i].text == ":" || r.tokens[i].text == "=" {
			return true
		}
	}
	return false
}

// backward are words that point to what was found before: "the previous response", "the returned ID".
var backward = set("previous returned obtained resulting retrieved received mentioned converted calculated translated generated above resulted computed")

// anaphora lets a pronoun, or words such as "the returned ID", stand for a field of the latest result:
// the one that fits best, or else the first.
func (f *filler) anaphora(q param) []candidate {
	last := f.earlier[len(f.earlier)-1]
	if len(last.frame.outputs) == 0 || last.frame.tool.Name == f.frame.tool.Name {
		return nil
	}
	best, score := last.frame.outputs[0].path, 0.0
	for _, o := range last.frame.outputs {
		if s := fits(q, o, last.frame); s > score {
			best, score = o.path, s
		}
	}
	ref := reference{last, best}
	class := q.classOf()
	free := class == classText || class == classQuery || class == classExpression
	for i, t := range f.r.tokens {
		switch {
		case backward[t.lower] && (free || score > 0 || class == classID && !distinctive(q.nameStems)):
			return []candidate{{ref, 1.3, mention{start: i, end: i + 1}}}
		case free && f.r.standsFor(i):
			return []candidate{{ref, 1, mention{start: -1, end: -1}}}
		}
	}
	return nil
}

// pronouns take up what was said before.
var pronouns = set("it them this that these those")

// standsFor reports whether token i takes up a result: "its length", "the output", or a pronoun that is an object
// ("translate it", "of these") and not the companion of a noun ("this city").
func (r reading) standsFor(i int) bool {
	t := r.tokens[i]
	if t.is("its", "their", "result", "results", "output") {
		return true
	}
	if !pronouns[t.lower] || i == 0 || i+1 < len(r.tokens) && !r.tokens[i+1].punct() && !r.tokens[i+1].stop() {
		return false
	}
	before := r.tokens[i-1]
	return cueWords[before.lower] && !before.is("is", "are", "was", "were", "and", "or") || search.RequestVerb(before.lower) || !before.stop() && !before.punct()
}
