package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// produce looks for tools whose results fill what a tool lacks and that the question can fill
// themselves. It returns the calls to make first, and whether nothing is lacking any more.
func (c *chooser) produce(f *frame, fill *filling, earlier []*call) ([]*call, bool) {
	var added []*call
	lacking := fill.missing
	for _, name := range fill.guessed {
		for _, q := range f.shape.params {
			if q.name == name {
				lacking = append(lacking, q)
			}
		}
	}
	if len(lacking) > maxLacking {
		return nil, false
	}
	given := map[*call]int{} // how many fields of each call's result are taken
	for _, q := range lacking {
		ref, made, ok := c.producer(f, q, slices.Concat(earlier, added))
		if !ok {
			return nil, false
		}
		for _, v := range fill.args {
			if v == any(ref) {
				return nil, false // one field is not two things
			}
		}
		given[ref.call]++
		if made {
			added = append(added, ref.call)
		}
		fill.args[q.name], fill.scores[q.name] = ref, fitsPartly
		delete(fill.used, q.name)
	}
	for _, q := range lacking {
		ref, _ := fill.args[q.name].(reference)
		if q.classOf() != classID && !akin(f, ref.call.frame, q) && given[ref.call] < 2 {
			return nil, false
		}
	}
	fill.missing, fill.guessed = nil, nil
	return added, true
}

// akin reports whether two tools are named after one kind of thing, apart from the field that one returns and the other
// takes: "get_speed" of a vehicle is not for "set_speed" of a drone. Identifiers aside, one field of the same name
// is else no more than coincidence.
func akin(consumer, producer *frame, q param) bool {
	field := q.nameStems
	if n := len(field); n > 1 && genericWords[field[n-1]] {
		field = nil // the name of the thing itself: "hotel_name"
	}
	return slices.ContainsFunc(consumer.name, func(s string) bool {
		return !genericWords[s] && !commonVerbs[s] && !slices.Contains(field, s) && slices.Contains(producer.name, s)
	})
}

// acts reports whether a tool is named after something that it does, so that nobody calls it for its result alone.
func (f *frame) acts() bool {
	return !f.tool.Annotations.ReadOnly() && slices.ContainsFunc(f.name, func(s string) bool { return changes[s] || deals[s] })
}

// deals are verbs that commit whoever asks.
var deals = stems("book buy order pay post publish purchase register reserve send submit")

// maxProducers bounds how many tools are looked at for one open parameter.
const maxProducers = 8

// maxLacking is how many open parameters producers are looked for.
const maxLacking = 3

// producer finds one tool whose result has what q needs, among those called already or by search.
func (c *chooser) producer(consumer *frame, q param, called []*call) (reference, bool, bool) {
	for _, a := range slices.Backward(called) {
		for _, o := range a.frame.outputs {
			if fits(q, o, a.frame) > 0 && a.frame != consumer {
				return reference{a, o.path}, false, true
			}
		}
	}
	if len(called)+2 > maxCalls {
		return reference{}, false, false
	}
	var best reference
	score := 0.0
	seen := map[string]bool{consumer.tool.Name: true}
	words := strings.Join(search.Words(q.name), " ") + " " + clip(q.description, 80)
	for _, list := range [][]plan.Tool{c.tools.Look(words, maxProducers), c.fitting} {
		for _, t := range list {
			if seen[t.Name] || destructive(t) || len(t.OutputSchema) == 0 {
				continue
			}
			seen[t.Name] = true
			g := c.frame(t)
			fit, path := 0.0, ""
			for _, o := range g.outputs {
				if s := fits(q, o, g); s > fit {
					fit, path = s, o.path
				}
			}
			if fit == 0 || !g.shape.ok || g.acts() {
				continue
			}
			fill := c.wholeFill(g)
			if len(fill.missing) > 0 || len(fill.guessed) > 0 {
				continue
			}
			x := c.p.features(c.whole, g, fill)
			if s := fit + x[filled] + x[nameSaid] + x[purposeSaid] - 2*x[weak]; s > score {
				best, score = reference{&call{frame: g, filling: fill}, path}, s
			}
		}
	}
	return best, true, score >= producerScore
}

// producerScore is what a tool must reach to be called for its result alone.
const producerScore = 2.8
