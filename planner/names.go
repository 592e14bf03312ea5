package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Tools are the tools that a request may use. There may be a great many: a Planner never goes through all of them.
type Tools interface {
	// First returns the first n tools, or all if there are fewer.
	First(n int) []plan.Tool
	// Has reports whether a server's tool of that name is among them.
	Has(server, tool string) bool
	// Lookup implements plan.Lookup: the plan name, server__tool, server:tool, server.tool, or the bare name where it is
	// unique.
	Lookup(name string) (plan.Tool, *plan.Error)
}

// List is a few tools.
type List []plan.Tool

// First implements Tools.
func (l List) First(n int) []plan.Tool { return l[:min(n, len(l))] }

// Has implements Tools.
func (l List) Has(server, tool string) bool {
	return slices.ContainsFunc(l, func(t plan.Tool) bool { return t.Server == server && t.Tool == tool })
}

// Lookup implements Tools.
func (l List) Lookup(name string) (plan.Tool, *plan.Error) {
	for _, t := range l {
		if t.Name == name {
			return t, nil
		}
	}
	var bare []plan.Tool
	for _, t := range l {
		if qualifies(name, t) {
			return t, nil
		}
		if t.Tool == name {
			bare = append(bare, t)
		}
	}
	switch len(bare) {
	case 0:
		return plan.Tool{}, &plan.Error{Reason: plan.ReasonUnknownTool, Message: "Unknown tool: " + short.Text(name, 200)}
	case 1:
		return bare[0], nil
	}
	var choices []string
	for _, t := range bare[:min(len(bare), 5)] {
		choices = append(choices, t.Name)
	}
	return plan.Tool{}, &plan.Error{
		Reason: plan.ReasonAmbiguousTool,
		Message: fmt.Sprintf("several servers have a tool %s; use one of %s", short.Text(name, 200),
			strings.Join(choices, ", ")),
	}
}

// qualifies reports whether the name is the tool's with its server in front.
func qualifies(name string, t plan.Tool) bool {
	rest, ok := strings.CutPrefix(name, t.Server)
	if !ok || t.Server == "" {
		return false
	}
	for _, separator := range []string{"__", ":", "."} {
		if tool, ok := strings.CutPrefix(rest, separator); ok && tool == t.Tool {
			return true
		}
	}
	return false
}
