package rules

import (
	"context"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// call is a tool to be called with what fills it.
type call struct {
	frame    *frame
	filling  filling
	evidence float64
	repeated bool // only says more about a call made already
}

const (
	maxCalls     = 12
	maxClauses   = 24
	maxConsumers = 3 // best-ranked tools that others may be called for
	rankedTools  = 8

	repeatPenalty = 0.3 // what evidence a tool loses that is called already
)

// calls chooses the calls for a question: one for each clause that a tool explains, or one for the
// whole where the clauses only add to each other. Calls whose results others use come first. Where there is none, open
// is the call that only lacks required arguments, if there is one.
func (p *Planner) calls(ctx context.Context, query string, tools Catalog) (calls []*call, open *call) {
	query = unwrap(query)
	c := chooser{p: p, whole: read(query), tools: tools, frames: map[string]*frame{}, fills: map[*frame]filling{}}
	c.today = c.whole.today
	if c.today.year == 0 {
		c.today = today(p.now())
	}
	c.fitting = tools.Ask(ctx, query, rankedTools)
	clauses := search.Clauses(query)
	clauses = clauses[:min(len(clauses), maxClauses)]
	if len(clauses) > 1 {
		for i, text := range clauses {
			if slices.Contains(clauses[:i], text) {
				continue
			}
			if ctx.Err() != nil || len(c.calls) >= maxCalls {
				break
			}
			r := read(text)
			if c.answered(r) {
				continue
			}
			one := c.best(r, tools.Ask(ctx, text, rankedTools), c.calls)
			if one = c.apart(r, one, c.calls); len(one) == 1 {
				one = c.expand(one[0], r)
			}
			c.calls = append(c.calls, one...)
		}
		if len(c.calls) > 1 {
			return c.calls, nil
		}
	}
	parts := c.calls
	c.calls = nil
	best := c.best(c.whole, c.fitting, nil)
	if len(parts) == 1 && (best == nil || parts[0].evidence > best[len(best)-1].evidence) {
		best = parts
	}
	if best = c.apart(c.whole, best, nil); len(best) != 1 {
		return best, c.open
	}
	return c.expand(best[0], c.whole), nil
}

// expand turns a call into as many as a text asks for of its tool.
func (c *chooser) expand(one *call, r reading) []*call {
	if calls := c.several(one, r); len(calls) > 1 {
		return calls
	}
	return c.recurring(one, r)
}

// answered reports whether a clause only asks for what a call made already returns ("please provide the estimated cost"):
// it names nothing that an argument could be, and the call's result and tool explain its words.
func (c *chooser) answered(r reading) bool {
	for _, m := range r.mentions {
		if m.kind != kindPhrase {
			return false
		}
	}
	for _, made := range c.calls {
		words, known, named := 0, 0, false
		for _, t := range r.tokens {
			if weigh(t) < 1 {
				continue
			}
			words++
			returned := slices.ContainsFunc(made.frame.outputs, func(o output) bool {
				return slices.ContainsFunc(o.stems, func(s string) bool { return slices.Contains(t.stems, s) })
			})
			named = named || returned
			if returned || c.p.knows(made.frame, t) == 1 {
				known++
			}
		}
		if named && known == words {
			return true
		}
	}
	return false
}

// best returns the call of the tool that explains a text best, after those calls that it needs, if
// one explains enough and can be called.
func (c *chooser) best(r reading, ranked []plan.Tool, earlier []*call) []*call {
	var best, heir []*call // heir takes up what an earlier call returned
	implied := c.implied(r)
	anaphors := r.anaphors(earlier)
	for i, t := range append(implied, ranked...) {
		place := max(0, i-len(implied))
		if destructive(t) {
			continue
		}
		f := c.frame(t)
		if !f.shape.ok {
			continue
		}
		fill := (&filler{p: c.p, r: r, frame: f, today: c.today, earlier: earlier, anaphors: anaphors}).fill(f.shape.params)
		if c.p.conflicts(r, f, fill) {
			continue
		}
		repeated := c.called(f)
		c.complete(f, &fill)
		var first []*call
		if !callable(f, fill) {
			var ok bool
			if place >= maxConsumers {
				continue
			}
			open := fill.withoutGuesses()
			if first, ok = c.produce(f, &fill, earlier); !ok {
				c.consider(r, f, open, place)
				continue
			}
		}
		evidence := c.p.evidence(r, f, fill) - rankPenalty*float64(place)
		if repeated {
			evidence -= repeatPenalty
		}
		made := append(first, &call{frame: f, filling: fill, evidence: evidence, repeated: repeated})
		if evidence >= threshold && (best == nil || evidence > best[len(best)-1].evidence) {
			best = made
		}
		if evidence >= threshold && !repeated && fill.takesUp() && (heir == nil || evidence > heir[len(heir)-1].evidence) {
			heir = made
		}
	}
	if best != nil && best[len(best)-1].repeated && heir != nil {
		return heir // "convert the salary" says less about the salary than what to do with it
	}
	if best != nil && best[len(best)-1].repeated {
		best = c.renewal(best[len(best)-1].frame, r, earlier)
	}
	if best == nil && len(earlier) > 0 && r.elliptical() {
		return c.renewal(earlier[len(earlier)-1].frame, r, earlier) // "then do the same for Rome"
	}
	return best
}

// renewal is renewed as a list of calls.
func (c *chooser) renewal(f *frame, r reading, earlier []*call) []*call {
	if again := c.renewed(f, r, earlier); again != nil {
		return []*call{again}
	}
	return nil
}

// consider keeps the call that would explain the question best if somebody filled in what it lacks.
func (c *chooser) consider(r reading, f *frame, fill filling, place int) {
	evidence := c.p.evidence(r, f, fill) - rankPenalty*float64(place)
	if evidence >= threshold && (c.open == nil || evidence > c.open.evidence) {
		c.open = &call{frame: f, filling: fill, evidence: evidence}
	}
}

// destructive reports whether a tool says that it may destroy something, even if it also says that it only
// reads.
func destructive(t plan.Tool) bool {
	return t.Annotations.DestructiveHint != nil && *t.Annotations.DestructiveHint
}

// callable reports whether everything a tool requires is known, and not merely guessed unless the
// tool says it changes nothing.
func callable(f *frame, fill filling) bool {
	return len(fill.missing) == 0 && (len(fill.guessed) == 0 || f.tool.Annotations.ReadOnly())
}
