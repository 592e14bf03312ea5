// Package toolset has lists of tools for tests of planners.
package toolset

import (
	"iter"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/planner"
)

// List implements planner.Tools.
type List []plan.Tool

// All implements planner.Tools.
func (l List) All() iter.Seq[*plan.Tool] { return l.where(func(plan.Tool) bool { return true }) }

// Of implements planner.Tools.
func (l List) Of(server string) iter.Seq[*plan.Tool] {
	return l.where(func(t plan.Tool) bool { return t.Server == server })
}

func (l List) where(is func(plan.Tool) bool) iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		for i := range l {
			if is(l[i]) && !yield(&l[i]) {
				return
			}
		}
	}
}

// Servers implements planner.Tools.
func (l List) Servers() (servers []planner.Server) {
	for _, t := range l {
		if s := (planner.Server{Name: t.Server}); !slices.Contains(servers, s) {
			servers = append(servers, s)
		}
	}
	return servers
}

// Has implements planner.Tools.
func (l List) Has(server, tool string) bool {
	return slices.ContainsFunc(l, func(t plan.Tool) bool { return t.Server == server && t.Tool == tool })
}

// Lookup implements planner.Tools.
func (l List) Lookup(name string) (plan.Tool, *plan.Error) {
	var found []plan.Tool
	for _, t := range l {
		qualified := []string{t.Server + "__" + t.Tool, t.Server + ":" + t.Tool, t.Server + "." + t.Tool}
		if name == t.Name || slices.Contains(qualified, name) {
			return t, nil
		}
		if name == t.Tool {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + name}
	case 1:
		return found[0], nil
	}
	return plan.Tool{}, &plan.Error{Reason: reason.AmbiguousTool, Message: "several servers have a tool " + name}
}
