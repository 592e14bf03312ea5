package rules

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/segment"
)

// reference stands for a field of another call's result.
type reference struct {
	call *call
	path string
}

// How well a result's field fits a parameter by their names alone.
const (
	fitsExactly = 2.2
	fitsAsID    = 1.8
	fitsPartly  = 1.2
)

// fits compares a parameter's name with that of a field: "location_id" takes "locationId", and "id" of a tool about
// locations.
func fits(q param, o output, producer *profile) float64 {
	kind := kindOf(q.Schema)
	entity := len(o.stems) - 1
	switch {
	case o.kind != "" && kind != "" && o.kind != kind && !(numeric(o.kind) && numeric(kind)), len(q.stems) == 0:
	case slices.Equal(q.stems, o.stems) && entity == 0 && list("generic")[o.stems[0]] && o.stems[0] != "id":
		return fitsPartly
	case slices.Equal(q.stems, o.stems):
		return fitsExactly
	case q.identifies() && entity >= 0 && o.stems[entity] == "id":
		of, about := q.stems[:len(q.stems)-1], o.stems[:entity]
		if within(of, about) || within(about, of) && within(of, producer.name) {
			return fitsAsID
		}
	}
	return 0
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// akin reports whether two tools are named after one kind of thing, apart from the field that one returns and the other
// takes. Identifiers aside, one field of the same name is else no more than coincidence.
func akin(consumer, producer *profile, q param) bool {
	thing := len(q.stems) > 1 && list("generic")[q.stems[len(q.stems)-1]] // the name of the thing itself: "hotel_name"
	return slices.ContainsFunc(consumer.name, func(s string) bool {
		return !list("generic")[s] && !list("common")[s] && (thing || !q.named(s)) && producer.named(s)
	})
}

func (q param) identifies() bool { return len(q.stems) > 0 && q.stems[len(q.stems)-1] == "id" }

// maxProducers bounds how many tools are looked at for one open parameter; maxLacking how many open parameters they are
// looked for.
const (
	maxProducers = 8
	maxLacking   = 4
)

// produce looks for tools that only read, that the question fills, and whose results give what a tool lacks. It returns
// the calls to make first, and whether nothing is lacking any more. A tool that writes gets no contents
// from calls that are made for it: nobody has asked to write those.
func (c *chooser) produce(f *profile, fill *filling) (added []*call, complete bool) {
	lacking := slices.Clone(fill.missing)
	for _, q := range f.params {
		if fill.guessed(q) {
			lacking = append(lacking, q)
		}
	}
	if len(lacking) > maxLacking || len(fill.unclear) > 0 {
		return nil, false
	}
	given := map[*call]int{} // how many fields of each call's result are taken
	refs := make([]reference, 0, len(lacking))
	for _, q := range lacking {
		ref, made, ok := c.producer(f, q, slices.Concat(c.calls, added))
		if !ok || made && !f.reads && list("body").any(q.stems) || slices.Contains(refs, ref) { // one field is not two things
			return nil, false
		}
		given[ref.call]++
		if refs = append(refs, ref); made {
			added = append(added, ref.call)
		}
	}
	for i, q := range lacking {
		if !q.identifies() && !akin(f, refs[i].call.f, q) && given[refs[i].call] < 2 {
			return nil, false
		}
	}
	for i, q := range lacking {
		fill.chosen[q.Name] = choice{value: refs[i], score: fitsPartly}
	}
	fill.missing = nil
	return added, true
}

// producer finds a tool whose result has what q needs, among those called already or by search.
func (c *chooser) producer(consumer *profile, q param, called []*call) (best reference, made, ok bool) {
	for _, a := range slices.Backward(called) {
		for _, o := range a.f.outputs {
			if a.f != consumer && fits(q, o, a.f) > 0 {
				return reference{a, o.path}, false, true
			}
		}
	}
	score := 0.0
	words := strings.Join(q.stems, " ") + " " + clip(q.Description, 80)
	for _, t := range slices.Concat(c.tools.Look(words, maxProducers), c.fitting) {
		f := c.profile(t)
		fit, path := 0.0, ""
		for _, o := range f.outputs {
			if s := fits(q, o, f); s > fit {
				fit, path = s, o.path
			}
		}
		if fit == 0 || f == consumer || f.broken || !f.reads {
			continue
		}
		fill := c.wholeFill(f)
		x := features(c.whole, f, fill, 0)
		if s := fit + x[filled] + 1.4*x[nameSaid] - 2*x[weak]; s > score && fill.complete(f) {
			best, score = reference{&call{f: f, fill: fill}, path}, s
		}
	}
	return best, true, score >= producerScore
}

// producerScore is what a tool must reach to be called for its result alone.
const producerScore = 2.8

// references returns what results of earlier calls could give a required parameter whose name fits.
func (l *filler) references(q param) (out []choice) {
	for _, c := range l.earlier {
		if _, given := c.fill.chosen[q.Name]; given || c.f == l.f || !q.Required || len(q.Enum) > 0 {
			continue
		}
		for _, o := range c.f.outputs {
			named := "the " + strings.ToLower(strings.Join(segment.Words(o.path), " "))
			taken := strings.Contains(strings.ToLower(l.a.clauses[0].Text), named)
			if s := fits(q, o, c.f); s > fitsPartly && (q.identifies() || taken || akin(l.f, c.f, q)) {
				if c.f.shared[o.stems[0]] > 0 {
					s = fitsPartly // the tool only repeats what it was given
				}
				out = append(out, choice{value: reference{c, o.path}, score: s})
			}
		}
	}
	return out
}

// step writes a call as a plan step. Calls that it refers to have their ids already.
func (c *call) step(id string, ids map[*call]string) plan.Step {
	s := plan.Step{ID: id, Tool: c.f.tool.Name, Server: c.f.tool.Server, After: []string{}}
	args := map[string]any{}
	for name, chosen := range c.fill.chosen {
		if ref, ok := chosen.value.(reference); ok {
			from := ids[ref.call]
			if !slices.Contains(s.After, from) {
				s.After = append(s.After, from)
			}
			args[name] = "$" + from + "." + ref.path
			continue
		}
		args[name] = chosen.value
	}
	slices.Sort(s.After)
	s.Arguments, _ = json.Marshal(args) // what comes from schemas and text always can be
	return s
}
