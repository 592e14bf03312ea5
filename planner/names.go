package planner

import (
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/planner/plan"
)

// names finds tools by what plans may call them.
type names struct {
	tools []plan.Tool
}

// exact finds a tool by its plan name.
func (n *names) exact(name string) (plan.Tool, bool) {
	for _, t := range n.tools {
		if t.Name == name {
			return t, true
		}
	}
	return plan.Tool{}, false
}

// lookup implements plan.Lookup: the plan name, server__tool, server:tool, server.tool, or the bare name where it is
// unique.
func (n *names) lookup(name string) (plan.Tool, *plan.Error) {
	if t, ok := n.exact(name); ok {
		return t, nil
	}
	var bare []plan.Tool
	for _, t := range n.tools {
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
		Reason:  plan.ReasonAmbiguousTool,
		Message: fmt.Sprintf("several servers have a tool %s; use one of %s", short.Text(name, 200), strings.Join(choices, ", ")),
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
