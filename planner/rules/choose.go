package rules

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

const (
	maxCalls    = 12
	maxClauses  = 24
	rankedTools = 8
	maxNearest  = 3

	repeatCost = 0.3 // what evidence a tool loses that is called already
)

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
	text    string
	now     time.Time
	values  []values.Value
	context ask         // the whole question; reads may take values from there
	whole   ask         // all that may be served, with what only states something
	fitting []plan.Tool // for the whole, best first
	fills   map[*profile]filling
	calls   []*call
	open    []*call // lack only required arguments
	unmet   []plan.Unmet
}

// asks reports whether a clause asks for something.
func asks(c intent.Clause) bool {
	return c.Act.MayRead() || c.Act == intent.Conditional && c.Verb != "" || c.Act == intent.Unknown
}

// states reports whether a clause may give values to what another asks for: "My order is 4711."
func states(c intent.Clause) bool { return c.Act == intent.Statement || c.Act == intent.Conditional }

// choose chooses the calls for a question: one for each clause that a tool explains, or one for the whole where the
// clauses only add to each other.
func (c *chooser) choose(clauses []intent.Clause) {
	clauses = clauses[:min(len(clauses), maxClauses)]
	var asking, useful []intent.Clause
	for _, cl := range clauses {
		if asks(cl) {
			asking = append(asking, cl)
		}
		if asks(cl) || states(cl) {
			useful = append(useful, cl)
		}
	}
	if len(asking) == 0 {
		c.unserved(clauses)
		return
	}
	c.whole, c.context = c.askFor(useful), c.askFor(clauses)
	c.fitting = c.tools.Ask(c.ctx, c.whole.query(), rankedTools)
	made := map[int]*call{}
	for i, unit := range units(useful) {
		if c.ctx.Err() != nil || len(c.calls) >= maxCalls {
			break
		}
		a, ranked := c.askFor(unit), c.fitting
		if len(unit) < len(useful) {
			ranked = c.tools.Ask(c.ctx, a.query(), rankedTools)
		}
		if made[i] = c.merge(c.best(a, c.also(a, ranked)), a); made[i] == nil {
			made[i] = c.extend(a)
		}
	}
	if len(asking) > 1 && countCalls(made) < 2 {
		c.together()
	}
	for i, cl := range asking {
		if made[i] == nil && !c.served(cl) {
			c.missed(c.askFor([]intent.Clause{cl}))
		}
	}
	c.unserved(clauses)
}

// units puts each clause that asks together with what is only stated before the first and after each.
func units(clauses []intent.Clause) [][]intent.Clause {
	var out [][]intent.Clause
	var unit []intent.Clause
	asked := false
	for _, cl := range clauses {
		if asks(cl) && asked {
			out = append(out, unit)
			unit = nil
		}
		asked = asked || asks(cl)
		unit = append(unit, cl)
	}
	return append(out, unit)
}

// also adds tools of a kind that a question needs without naming it: for a calculation those that evaluate one.
func (c *chooser) also(a ask, ranked []plan.Tool) []plan.Tool {
	if slices.ContainsFunc(a.values, func(v values.Value) bool { return v.Kind == values.Expression }) {
		for _, t := range c.tools.Look("calculate evaluate arithmetic expression", 2) {
			if !slices.ContainsFunc(ranked, func(o plan.Tool) bool { return o.Name == t.Name }) {
				ranked = append(slices.Clip(ranked), t)
			}
		}
	}
	return ranked
}

// merge adds a call to those made. Where a clause says more about a call of the same tool, both become one.
func (c *chooser) merge(one *call, a ask) *call {
	if one == nil {
		return nil
	}
	one.from = a.clauses
	for i, o := range c.calls {
		if o.f != one.f {
			continue
		}
		if one.fill.within(o.fill) || one.fill.sameNeeds(o.fill, o.f) {
			return o
		}
		own := func(q param) bool { c := one.fill.chosen[q.Name]; return c.end > c.start }
		if !slices.ContainsFunc(one.f.required(), own) { // all it needs was said before
			if more := c.extend(a); more != nil {
				return more
			}
		}
		both := c.askFor(slices.Concat(o.from, a.clauses))
		fill := c.p.fill(both, o.f, c.calls[:i])
		if fill.complete(o.f) && one.fill.within(fill) && o.fill.within(fill) {
			o.fill, o.from = fill, both.clauses
			return o
		}
	}
	c.calls = append(c.calls, append(one.first, one)...)
	return one
}

// sameNeeds reports whether two fillings give a tool the same required arguments, so that they are one call.
func (f filling) sameNeeds(o filling, of *profile) bool {
	needed := of.required()
	return len(needed) > 0 && !slices.ContainsFunc(needed, func(q param) bool {
		return kindOf(q.Schema) != "boolean" && !reflect.DeepEqual(f.chosen[q.Name].value, o.chosen[q.Name].value)
	})
}

// extend lets the last call take what a clause without a call of its own adds: "set the starting level to 5".
func (c *chooser) extend(a ask) *call {
	if len(c.calls) == 0 {
		return nil
	}
	last := c.calls[len(c.calls)-1]
	if slices.ContainsFunc(a.verb, func(v string) bool { return changes[v] }) && !last.f.does(a.verb) {
		return nil
	}
	both := c.askFor(slices.Concat(last.from, a.clauses))
	fill := c.p.fill(both, last.f, c.calls[:len(c.calls)-1])
	if !fill.complete(last.f) || !last.fill.within(fill) || len(fill.chosen) == len(last.fill.chosen) {
		return nil
	}
	for name, v := range fill.chosen { // every word that says something has to be of use
		_, had := last.fill.chosen[name]
		for _, w := range a.words {
			if !had && w.weight == 1 && !numeral(w) && fill.uses(w) == 0 && c.p.knows(last.f, w) == 0 || v.score < takeOptional {
				return nil
			}
		}
	}
	last.fill, last.from = fill, both.clauses
	return last
}

// within reports whether another filling has all that this one has.
func (f filling) within(o filling) bool {
	for name, c := range f.chosen {
		if other, ok := o.chosen[name]; !ok || !reflect.DeepEqual(c.value, other.value) {
			return false
		}
	}
	return true
}

func countCalls(made map[int]*call) int {
	n := 0
	for _, m := range made {
		if m != nil {
			n++
		}
	}
	return n
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

func (c *chooser) askFor(clauses []intent.Clause) ask {
	return askFor(c.text, clauses, c.values, c.now)
}

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
		c.complete(f, &one.fill)
		ready := one.fill.complete(f)
		if !ready {
			one.first, ready = c.produce(f, &one.fill)
		}
		one.evidence = c.p.features(a, f, one.fill, rank).sum()
		if slices.ContainsFunc(c.calls, func(o *call) bool { return o.f == f }) {
			one.evidence -= repeatCost
		}
		switch {
		case one.evidence < threshold:
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

// complete reports whether all that a tool requires is known, and not merely guessed unless the tool only reads.
func (f filling) complete(of *profile) bool {
	if len(f.missing) > 0 {
		return false
	}
	return of.reads || !slices.ContainsFunc(of.params, f.guessed)
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

// complete fills required parameters that a clause leaves open from the question as a whole.
func (c *chooser) complete(f *profile, fill *filling) {
	for _, q := range f.required() {
		own, has := fill.chosen[q.Name]
		v, ok := c.wholeFill(f).chosen[q.Name]
		if !ok && !has && f.reads { // "don't restart it, only show its state"
			v, ok = c.p.fill(c.context, f, nil).chosen[q.Name]
		}
		if ok && v.score >= known && (!has || own.score < 1.6 && v.score > own.score+0.7 && c.stated(v)) {
			v.score -= 0.5
			v.start, v.end = 0, 0
			fill.chosen[q.Name] = v
			fill.missing = slices.DeleteFunc(fill.missing, func(m param) bool { return m.Name == q.Name })
		}
	}
}

// stated reports whether a value is in a clause that only states something.
func (c *chooser) stated(v choice) bool {
	return slices.ContainsFunc(c.whole.clauses, func(cl intent.Clause) bool { return !asks(cl) && cl.Start <= v.start && v.end <= cl.End })
}

// served reports whether a clause that has no call of its own only asks for what a call returns or uses.
func (c *chooser) served(cl intent.Clause) bool {
	a := c.askFor([]intent.Clause{cl})
	for _, one := range c.calls {
		all, known := 0.0, 0.0
		for _, w := range a.words {
			if w.weight < 1 {
				continue
			}
			all++
			returned := slices.ContainsFunc(one.f.outputs, func(o output) bool { return slices.ContainsFunc(o.stems, w.has) })
			if returned || c.p.knows(one.f, w) == 1 || one.fill.uses(w) > 0 {
				known++
			}
		}
		if known == all && (all > 0 || !cl.Act.MayWrite()) || all > 1 && known/all > 0.6 && !cl.Act.MayWrite() {
			return true
		}
	}
	return false
}

// missed notes a part of the question that no call serves, with what its tool lacks or the tools that are nearest.
func (c *chooser) missed(a ask) {
	u := plan.Unmet{Text: strings.TrimSpace(a.clauses[0].Text), Reason: plan.UnmetNoTool}
	for _, one := range c.open {
		if slices.ContainsFunc(a.words, func(w word) bool { return c.p.knows(one.f, w) == 1 }) {
			u.Reason, u.Tool, u.Missing = plan.UnmetMissingArgument, one.f.tool.Name, names(one.fill.missing)
			if len(one.fill.unclear) > 0 {
				u.Reason = plan.UnmetUnclear
			}
		}
	}
	if u.Tool == "" {
		u.Nearest = c.nearest(a)
		if len(u.Nearest) > 0 {
			u.Tool = u.Nearest[0].Tool
		}
	}
	if a.clauses[0].Act == intent.Conditional || a.clauses[0].Act == intent.Unknown {
		u.Reason = plan.UnmetUnclear
	}
	if topic := slices.ContainsFunc(a.words, func(w word) bool { return w.weight > 0 }); topic && !about(a.clauses[0]) {
		c.unmet = append(c.unmet, u)
	}
}

// nearest are the tools that share a word with what is asked, and what they lack.
func (c *chooser) nearest(a ask) []plan.Nearest {
	var out []plan.Nearest
	for _, t := range c.tools.Ask(c.ctx, a.query(), maxNearest) {
		f := c.profile(t)
		if slices.ContainsFunc(a.words, func(w word) bool { return w.weight >= 0.8 && c.p.knows(f, w) > 0 }) {
			out = append(out, plan.Nearest{Tool: t.Name, Missing: names(c.p.fill(a, f, nil).missing)})
		}
	}
	return out
}

// unserved notes questions about an action: nothing is done for them, and nothing answers them.
func (c *chooser) unserved(clauses []intent.Clause) {
	for _, cl := range clauses {
		if cl.Act == intent.ActionQuestion && !about(cl) {
			c.missed(c.askFor([]intent.Clause{cl}))
		}
	}
}

func names(params []param) []string {
	var out []string
	for _, q := range params {
		out = append(out, q.Name)
	}
	return out
}

// encode writes arguments as JSON; what came from schemas and text always can be.
func encode(args map[string]any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}
