package planner

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Tools are the tools that a request may use. There may be many, so a Planner never iterates over all. Callers must not
// change the yielded tools.
type Tools interface {
	// All yields the tools, server by server, in a constant order.
	All() iter.Seq[*plan.Tool]
	// Of yields the tools of one server.
	Of(server string) iter.Seq[*plan.Tool]
	// Servers returns the servers of the tools, in the same order.
	Servers() []Server
	// Has reports whether a server has a tool of that name.
	Has(server, tool string) bool
	// Lookup implements plan.Lookup: the plan name, server__tool, server:tool, server.tool, or the bare name where it is
	// unique.
	Lookup(name string) (plan.Tool, *plan.Error)
}

// Server is a server of tools.
type Server struct {
	Name         string
	Instructions string // from the server; untrusted, may be empty
}

// List is a short list of tools.
type List []plan.Tool

// All implements Tools.
func (l List) All() iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		for i := range l {
			if !yield(&l[i]) {
				return
			}
		}
	}
}

// Of implements Tools.
func (l List) Of(server string) iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		for t := range l.All() {
			if t.Server == server && !yield(t) {
				return
			}
		}
	}
}

// Servers implements Tools.
func (l List) Servers() (servers []Server) {
	seen := map[string]bool{}
	for t := range l.All() {
		if !seen[t.Server] {
			seen[t.Server] = true
			servers = append(servers, Server{Name: t.Server})
		}
	}
	return servers
}

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
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + texts.Cut(name, 200)}
	case 1:
		return bare[0], nil
	}
	var choices []string
	for _, t := range bare[:min(len(bare), 5)] {
		choices = append(choices, t.Name)
	}
	return plan.Tool{}, &plan.Error{
		Reason: reason.AmbiguousTool,
		Message: fmt.Sprintf("several servers have a tool %s; use one of %s",
			texts.Cut(name, 200), strings.Join(choices, ", ")),
	}
}

// qualifies reports whether name is a qualified name of the server's tool.
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
