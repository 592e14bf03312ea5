package rules

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// Bounds of a plan, and of the tools that are weighed for a part of the question.
const (
	maxCalls    = 12
	maxClauses  = 24
	rankedTools = 8
)

// openSlack is how much less evidence it needs to ask for what a write lacks, of which something is given, or whose whole
// name is said.
const openSlack = 1.5

// repeatCost is what evidence a tool loses that is called already.
const repeatCost = 0.3

// strangeAddress is what evidence a write loses that has no use for an address or path: it is for something else.
const strangeAddress = 1.5

// call is a tool to be called with what fills it.
type call struct {
	f        *profile
	fill     filling
	evidence float64
	first    []*call // calls whose results it needs, made for it alone
	from     []intent.Clause
}

// chooser chooses the calls of one plan.
type chooser struct {
	p *Planner
	*profiler
	ctx     context.Context
	tools   Catalog
	said    string // the question
	text    string // the question with names of tools as words, of the same length
	values  []values.Value
	context ask         // the whole question; reads may take values from there
	whole   ask         // all that may be served, with what only states something
	fitting []plan.Tool // for the whole, best first
	fills   map[*profile]filling
	calls   []*call
	open    []*call // lack only required arguments
	unmet   []plan.Unmet
}

// asks reports whether a clause asks for something that a tool may do.
func asks(c intent.Clause) bool {
	return (c.Act.MayRead() || c.Act == intent.Conditional && c.Verb != "" || c.Act == intent.Unknown) && !about(c)
}

// choose chooses the calls for a question: one for each clause that a tool explains, or one for the whole where the
// clauses only add to each other. What only states something gives values to what asks: "My order is 4711."
func (c *chooser) choose(clauses []intent.Clause) {
	var useful []intent.Clause
	for i, cl := range clauses {
		topic := len(useful) == 0 && i+1 < len(clauses) && asks(clauses[i+1]) && c.refersBack(clauses[i+1])
		if asks(cl) || cl.Act == intent.Statement || cl.Act == intent.Conditional || topic {
			useful = append(useful, cl)
		}
	}
	c.whole, c.context = c.askFor(useful), c.askFor(clauses)
	served := map[int]bool{} // clauses, by where they start
	if parts := units(useful); len(parts) > 0 {
		c.fitting = c.tools.Ask(c.ctx, c.whole.query(), rankedTools)
		for _, unit := range parts {
			if c.ctx.Err() == nil && len(c.calls) < maxCalls && c.serve(unit, len(unit) == len(useful)) {
				for _, cl := range unit {
					served[cl.Start] = true
				}
			}
		}
		if len(parts) > 1 && len(c.calls) < 2 {
			c.together()
		}
	}
	for _, cl := range clauses {
		if asks(cl) && !served[cl.Start] && !c.served(cl) || cl.Act == intent.ActionQuestion {
			c.missed(cl)
		}
	}
	c.leftOver()
}

// refersBack reports whether nothing but a pronoun says what a clause is about: "show it to me".
func (c *chooser) refersBack(cl intent.Clause) bool {
	words := c.askFor([]intent.Clause{cl}).words
	return slices.ContainsFunc(words, word.pronoun) &&
		!slices.ContainsFunc(words, func(w word) bool { return w.weight == 1 && w.lower != cl.Verb }) ||
		slices.ContainsFunc(words, func(w word) bool { return w.lower == "its" })
}

// units puts each clause that asks together with what is only stated before the first and after each.
func units(clauses []intent.Clause) (out [][]intent.Clause) {
	asked := true
	for i, cl := range clauses {
		if i == 0 || asks(cl) && asked {
			out = append(out, nil)
			asked = false
		}
		asked = asked || asks(cl)
		out[len(out)-1] = append(out[len(out)-1], cl)
	}
	if !asked {
		return nil
	}
	return out
}

// serve makes a call for a part of the question. What only says more about a call made before becomes part of it.
func (c *chooser) serve(unit []intent.Clause, all bool) bool {
	a, ranked := c.askFor(unit), c.fitting
	if !all {
		ranked = c.tools.Ask(c.ctx, a.query(), rankedTools)
	}
	one := c.best(a, c.also(a, ranked))
	if one == nil {
		return len(c.calls) > 0 && c.extend(len(c.calls)-1, unit, filling{})
	}
	one.from = unit
	for i, o := range c.calls {
		if o.f != one.f {
			continue
		}
		needed := filling{chosen: map[string]choice{}}
		for _, q := range one.f.required() {
			if v, ok := one.fill.chosen[q.Name]; ok && kindOf(q.Schema) != "boolean" {
				needed.chosen[q.Name] = v
			}
		}
		same := len(one.f.required()) > 0 && needed.within(o.fill)
		added := one.fill
		if same {
			added = filling{}
		}
		if one.fill.within(o.fill) || c.extend(i, unit, added) || same {
			return true
		}
	}
	c.calls = append(c.calls, append(one.first, one)...)
	return true
}

// extend gives a call what a further part of the question says about it, at least what added has.
func (c *chooser) extend(i int, unit []intent.Clause, added filling) bool {
	o := c.calls[i]
	if slices.ContainsFunc(unit, func(cl intent.Clause) bool {
		verb := verbStems(cl)
		another := cl.Act.MayWrite() && cl.Verb != "" && !o.f.does(verb) && !list("light").any(verb)
		return !o.f.reads && (another || cl.Act == intent.Conditional) || another && list("changes").any(verb)
	}) {
		return false // it asks for something else
	}
	both := c.askFor(slices.Concat(o.from, unit))
	fill := c.p.fill(both, o.f, c.calls[:i])
	more := len(fill.chosen) > len(o.fill.chosen) && o.fill.within(fill) && added.within(fill) && fill.complete(o.f)
	if more {
		o.fill, o.from = fill, both.clauses
	}
	return more
}

// within reports whether another filling has all that this one has.
func (f filling) within(o filling) bool {
	for name, c := range f.chosen {
		if !reflect.DeepEqual(c.value, o.chosen[name].value) {
			return false
		}
	}
	return true
}

// also adds tools of a kind that a question needs without naming it: for a calculation those that do it.
func (c *chooser) also(a ask, ranked []plan.Tool) []plan.Tool {
	if !a.calculation {
		return ranked
	}
	signs := slices.Sorted(maps.Keys(list(a.operators)))
	for _, words := range []string{"calculate evaluate arithmetic expression", strings.Join(signs, " ") + " calculate two numbers"} {
		for _, t := range c.tools.Look(words, 2) {
			if !slices.ContainsFunc(ranked, func(o plan.Tool) bool { return o.Name == t.Name }) {
				ranked = append(slices.Clip(ranked), t)
			}
		}
	}
	return ranked
}

// together serves the whole by one call where that is better than the one call of a clause, or there is none.
func (c *chooser) together() {
	parts := c.calls
	c.calls = nil
	best := c.best(c.whole, c.also(c.whole, c.fitting))
	if best == nil || len(parts) > 0 && parts[len(parts)-1].evidence > best.evidence {
		c.calls = parts
		return
	}
	c.calls = append(best.first, best)
}

func (c *chooser) askFor(clauses []intent.Clause) ask { return askFor(c.text, clauses, c.values) }

// best returns the call of the tool that explains best what is asked, if one explains enough and can be called.
func (c *chooser) best(a ask, ranked []plan.Tool) *call {
	var best, open *call
	rank := -1
	for _, t := range ranked {
		f := c.profile(t)
		if f.broken || !a.mayCall(f) {
			continue
		}
		rank++
		one := &call{f: f, fill: c.p.fill(a, f, c.calls)}
		c.complete(a, f, &one.fill)
		if !f.reads && !c.explained(a, f, &one.fill) && slices.ContainsFunc(a.clauses, func(cl intent.Clause) bool {
			return cl.Bare && !a.fitsAfter(f, cl) && !(f.runsCommands() && a.givesCommand(cl, verbStems(cl)))
		}) {
			continue
		}
		ready := one.fill.complete(f)
		if !ready {
			one.first, ready = c.produce(f, &one.fill)
		}
		x := features(a, f, one.fill, rank)
		one.evidence = x.sum()
		if slices.ContainsFunc(c.calls, func(o *call) bool { return o.f == f }) {
			one.evidence -= repeatCost
		}
		if !f.reads && a.leavesAddress(one.fill) {
			one.evidence -= strangeAddress
		}
		if !f.reads && c.leavesTime(a, one.fill) {
			continue
		}
		enough := threshold
		if !ready && !f.reads && (len(one.fill.chosen) > 0 || x[nameSaid] == 1) {
			enough -= openSlack
		}
		switch {
		case one.evidence < enough:
		case ready && (best == nil || one.evidence > best.evidence):
			best = one
		case !ready && (open == nil || one.evidence > open.evidence):
			open = one
		}
	}
	if open != nil && (best == nil || open.evidence > best.evidence+1) { // rather ask than call another tool
		best = nil
		c.open = append(c.open, open.withoutGuesses())
	}
	return best
}

// leavesTime reports whether a time or day of a command, but today, is in no argument: "cancel it tomorrow" is not for now.
func (c *chooser) leavesTime(a ask, fill filling) bool {
	return slices.ContainsFunc(a.values, func(v values.Value) bool {
		when := v.Kind >= values.Date && v.Kind <= values.TimeRange || v.Kind == values.Duration && v.Cue == "in"
		return when && !c.p.isToday(v) && !fill.overlaps(v.Start, v.End) &&
			slices.ContainsFunc(a.clauses, func(cl intent.Clause) bool {
				return cl.Act.MayWrite() && cl.Start <= v.Start && v.End <= cl.End
			})
	})
}

// explained reports whether every word of what is asked is an argument or says which tool is meant. Then a guess that
// is the only one is none: nothing else is left for it.
func (c *chooser) explained(a ask, f *profile, fill *filling) bool {
	guesses := slices.DeleteFunc(f.required(), func(q param) bool { return !fill.guessed(q) })
	ids := slices.ContainsFunc(guesses, func(q param) bool { return q.role == roleID })
	if ids || len(fill.missing) > 0 || len(guesses) > 1 || slices.ContainsFunc(a.words, func(w word) bool {
		return list("finite")[w.lower] || w.weight > 0 && fill.uses(w) == 0 && f.knows(w) == 0 && !slices.ContainsFunc(a.verb, w.has)
	}) {
		return false
	}
	for _, q := range guesses {
		before := strings.Fields(strings.ToLower(a.text[:fill.chosen[q.Name].start]))
		if len(before) > 0 && list("articles")[before[len(before)-1]] && list("body").any(q.stems) {
			return false // "a poem" is no text itself
		}
		last := fill.chosen[q.Name]
		last.score = known
		fill.chosen[q.Name] = last
	}
	return true
}

// withoutGuesses leaves out what is required and only guessed.
func (one *call) withoutGuesses() *call {
	for _, q := range one.f.params {
		if one.fill.guessed(q) {
			delete(one.fill.chosen, q.Name)
			one.fill.missing = append(one.fill.missing, q)
		}
	}
	return one
}

// wholeFill is what the question as a whole gives a tool. It must not be changed.
func (c *chooser) wholeFill(f *profile) filling {
	fill, ok := c.fills[f]
	if !ok {
		fill = c.p.fill(c.whole, f, nil)
		c.fills[f] = fill
	}
	return fill
}

// complete fills required parameters that a clause leaves open from the rest of the question; for a tool that reads even
// from what is not asked for: "don't restart it, only show its state"; for others where a word refers back: "move it".
func (c *chooser) complete(a ask, f *profile, fill *filling) {
	back := slices.ContainsFunc(a.words, word.pronoun)
	whole := c.wholeFill(f).chosen
	for _, q := range fill.missing {
		v, ok := whole[q.Name]
		if !ok && (f.reads || back) {
			v, ok = c.p.fill(c.context, f, nil).chosen[q.Name]
		}
		if ok && v.score >= known {
			for name, o := range fill.chosen { // one part of the question is not two things
				if other, ok := whole[name]; ok && o.overlaps(v.start, v.end) {
					fill.chosen[name] = other
				}
			}
			fill.chosen[q.Name] = choice{value: v.value, score: v.score - 0.5, unclear: v.unclear}
		}
	}
	fill.missing = slices.DeleteFunc(fill.missing, func(q param) bool { _, ok := fill.chosen[q.Name]; return ok })
}
