package rules

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// chooser chooses the calls of one plan.
type chooser struct {
	p       *Planner
	whole   reading
	today   date
	tools   Catalog
	calls   []*call
	fitting []plan.Tool // the whole question, best first
	frames  map[string]*frame
	fills   map[*frame]filling // see wholeFill
	open    *call              // see consider

	conjunctions int // see apart
}

// called reports whether the tool is called already.
func (c *chooser) called(f *frame) bool {
	return slices.ContainsFunc(c.calls, func(o *call) bool { return o.frame.tool.Name == f.tool.Name })
}

// frame reads a tool once for each plan.
func (c *chooser) frame(t plan.Tool) *frame {
	f := c.frames[t.Name]
	if f == nil {
		f = c.p.frame(t)
		c.frames[t.Name] = f
	}
	return f
}

// wholeFill is what the question as a whole gives a tool. It must not be changed.
func (c *chooser) wholeFill(f *frame) filling {
	fill, ok := c.fills[f]
	if !ok {
		fill = (&filler{p: c.p, r: c.whole, frame: f, today: c.today}).fill(f.shape.params)
		c.fills[f] = fill
	}
	return fill
}

// complete fills required parameters that a clause leaves open from the question as a whole.
func (c *chooser) complete(f *frame, fill *filling) {
	if len(fill.missing) == 0 && len(fill.guessed) == 0 {
		return
	}
	whole := c.wholeFill(f)
	open := func(name string) bool {
		v, ok := whole.args[name]
		if ok && whole.scores[name] >= surely && !slices.Contains(whole.guessed, name) {
			fill.args[name], fill.scores[name] = v, whole.scores[name]-0.5
			delete(fill.used, name)
			return false
		}
		return true
	}
	fill.missing = slices.DeleteFunc(fill.missing, func(q param) bool { return !open(q.name) })
	fill.guessed = slices.DeleteFunc(fill.guessed, func(name string) bool { return !open(name) })
}
