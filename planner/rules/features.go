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
	purposeSaid          // share of the description's first sentence that the question says
	topicHits            // how much of the topic the tool explains, absolutely
	topicStrange         // how much of the topic it does not, absolutely
	missing              // required parameters without a value
	weak                 // required parameters with a weak value
	filled               // how well required parameters are filled; see optionalFilled for tools without any
	strongArgs           // how many parameters are filled well
	nothingNeeded        // the tool has no required parameters
	nameRun              // longest part of the tool's name that the question says in one go
	focusKnown           // share of what is asked for first that the tool explains
	choiceSaid           // share of required choices that the question says outright
	featureCount
)

// weigh says how much a token of the question counts as topic.
func weigh(t token) float64 {
	switch {
	case t.stop():
		return 0
	case commonVerbs[t.stems[0]]:
		return 0.4
	case search.RequestVerb(t.lower):
		return 0.8
	case slices.ContainsFunc(t.stems, func(s string) bool { return genericWords[s] }):
		return 0.4
	}
	return 1
}

// features measures a tool, with what fills it, against the question.
func (p *Planner) features(r reading, f *frame, fill filling) features {
	var x features
	topic, topicHit, all, allHit := 0.0, 0.0, 0.0, 0.0
	for i, t := range r.tokens {
		w := weigh(t)
		if t.is("who", "whom") && f.people() {
			w = 1
		}
		if w == 0 || isNumeral(t) {
			continue
		}
		used := fill.uses(i)
		if i > 0 && currencies[t.lower] != "" {
			used = max(used, fill.uses(i-1)) // belongs to the number
		}
		known := p.knows(f, t)
		all += w
		allHit += w * max(known, used)
		if used >= 0.75 && known < 1 {
			continue
		}
		topic += w
		topicHit += w * known
	}
	switch {
	case all > 0:
		x[allKnown] = allHit / all
	case len(fill.used) > 0:
		x[allKnown] = 1 // nothing but values
	}
	x[topicHits] = min(topicHit, 4) / 4
	x[topicStrange] = min(topic-topicHit, 5) / 5
	x[nameSaid] = p.said(r, f.name, f.module)
	x[purposeSaid] = p.said(r, f.purpose, nil)
	x[nameRun] = p.run(r, f.name)
	x[focusKnown] = p.focus(r, f, fill)
	required, score := 0, 0.0
	choices, said := 0.0, 0.0
	for _, q := range f.shape.params {
		s, ok := fill.scores[q.name]
		if ok && s >= 2 {
			x[strongArgs]++
		}
		if !q.required {
			continue
		}
		required++
		if len(q.enum) > 1 && !q.flagEnum() {
			choices++
			if s >= 3 {
				said++
			}
		}
		_, has := fill.args[q.name]
		switch {
		case !has:
			x[missing]++
		case ok && s < surely:
			x[weak]++
		}
		if q.kind == "integer" || q.kind == "number" {
			s += 1.5
		}
		if has {
			score += min(max(s, 0), 4) / 4
		}
	}
	x[missing] = min(x[missing], 3) / 3
	x[weak] = min(x[weak], 3) / 3
	x[strongArgs] = min(x[strongArgs], 4) / 4
	if choices > 0 {
		x[choiceSaid] = said / choices
	}
	if required > 0 {
		x[filled] = score / float64(required)
	} else {
		x[nothingNeeded] = 1
		x[filled] = optionalFilled(r, f, fill, x[allKnown])
	}
	return x
}

// optionalFilled is filled for a tool that requires nothing: how surely the question names one of the
// values that a parameter lists, or asks for all there is, as far as the tool explains the question.
func optionalFilled(r reading, f *frame, fill filling, known float64) float64 {
	best := 0.0
	if len(fill.args) == 0 && slices.ContainsFunc(r.tokens, func(t token) bool { return t.is("all", "every", "everybody", "everyone") }) {
		best = asksForAll
	}
	for _, q := range f.shape.params {
		v, _ := fill.args[q.name].(string)
		if v != "" && (slices.Contains(q.enum, any(v)) || q.exemplifies(v)) {
			best = max(best, min(fill.scores[q.name], 4)/4)
		}
	}
	return best * known * known
}

// asksForAll is how well a question for all of something suits a tool that needs no argument.
const asksForAll = 0.3

// uses is how surely token i is part of an argument.
func (f filling) uses(i int) float64 {
	used := 0.0
	for name, m := range f.used {
		if i >= m.start && i < m.end {
			used = max(used, min(1, f.scores[name]/2))
		}
	}
	return used
}

func isNumeral(t token) bool {
	return digitAt(t.text, 0) && !strings.ContainsFunc(t.text, func(r rune) bool { return r >= 'A' })
}

// knows is how well a tool's own words explain a word of the question.
func (p *Planner) knows(f *frame, t token) float64 {
	best := 0.0
	if t.is("who", "whom") && f.people() {
		return 1
	}
	for _, s := range t.stems {
		switch {
		case f.words[s]:
			return 1
		case f.labels[s]:
			best = max(best, 0.6)
		default:
			for _, n := range f.name {
				if p.related(s, n) {
					best = max(best, 0.7)
				}
			}
			for n := range f.labelStems {
				if p.thesaurus.Related(s, n) {
					best = max(best, 0.5)
				}
			}
		}
	}
	return best
}

// people reports whether a tool is about people, whom a question asks for by "who".
func (f *frame) people() bool {
	for s := range persons {
		if f.words[s] {
			return true
		}
	}
	return false
}

var persons = stems("people person staff employee colleague personnel")

// said is the share of stems that the question says, generic and minor ones counting less.
func (p *Planner) said(r reading, words []string, minor map[string]bool) float64 {
	total, hit := 0.0, 0.0
	for _, n := range words {
		w := 1.0
		if genericWords[n] || commonVerbs[n] || minor[n] {
			w = 0.3
		}
		total += w
		for _, t := range r.tokens {
			if slices.ContainsFunc(t.stems, func(s string) bool { return p.related(s, n) }) {
				hit += w
				break
			}
		}
	}
	return hit / max(total, 1)
}

// run is the length of the longest run of words of the question that are words of the name, by the
// length of the name (at most 3).
func (p *Planner) run(r reading, name []string) float64 {
	longest, n := 0.0, 0.0
	for _, t := range r.tokens {
		switch {
		case t.stop():
		case slices.ContainsFunc(name, func(s string) bool { return slices.Contains(t.stems, s) && !genericWords[s] }):
			if n++; n > longest {
				longest = n
			}
		default:
			n = 0
		}
	}
	return min(longest, 3) / float64(max(1, min(len(name), 3)))
}

// focus is how well the tool explains what the question asks for: the first words after its opening,
// as in "what is the BOILING POINT of water".
func (p *Planner) focus(r reading, f *frame, fill filling) float64 {
	best, total, known := 0.0, 0.0, 0.0
	flush := func() {
		if total > 0 {
			best = max(best, known/total)
		}
		total, known = 0, 0
	}
	open := true // at the opening of a clause
	for i, t := range r.tokens {
		switch {
		case t.text == "." || t.text == "?" || t.text == "!" || t.text == ",":
			flush()
			open = true
		case total == 0 && i+1 < len(r.tokens) && r.tokens[i+1].is("of") && slices.ContainsFunc(t.stems, func(s string) bool { return genericWords[s] }):
			// "the names of proteins" asks for proteins
		case t.stop() || search.RequestVerb(t.lower) && total == 0:
			if total > 0 {
				flush()
				open = false
			}
		case open && fill.uses(i) < 0.75:
			w := weigh(t)
			total += w
			known += w * p.knows(f, t)
		}
	}
	flush()
	return best
}

// related reports whether two stems mean nearly the same, or one begins with the other: "discov" and
// "discoveri".
func (p *Planner) related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return p.thesaurus.Related(a, b) || len(a) >= 5 && strings.HasPrefix(b, a)
}
