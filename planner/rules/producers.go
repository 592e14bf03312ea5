package rules

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/planner/plan"
	"github.com/agenticnexus/agenticnexus/planner/search"
)

// produce looks for tools whose results fill what a tool lacks and that the question can fill
// themselves. It returns the calls to make first, and whether nothing is lacking any more.
func (c *chooser) produce(f *frame, fill *filling, earlier int) ([]*call, bool) {
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
	for _, q := range lacking {
		ref, made, ok := c.producer(f, q, added, earlier)
		if !ok {
			return nil, false
		}
		if made {
			added = append(added, ref.call)
		}
		fill.args[q.name], fill.scores[q.name] = ref, fitsPartly
		delete(fill.used, q.name)
	}
	fill.missing, fill.guessed = nil, nil
	return added, true
}

// maxProducers bounds how many tools are looked at for one open parameter.
const maxProducers = 8

// maxLacking is how many open parameters producers are looked for.
const maxLacking = 3

// producer finds one tool whose result has what q needs, among those added already or by search.
func (c *chooser) producer(consumer *frame, q param, added []*call, earlier int) (reference, bool, bool) {
	for _, a := range added {
		for _, o := range a.frame.outputs {
			if fits(q, o, a.frame) > 0 {
				return reference{a, o.path}, false, true
			}
		}
	}
	if earlier+len(added)+2 > maxCalls {
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
			if fit == 0 || !g.shape.ok {
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
