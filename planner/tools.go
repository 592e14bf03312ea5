package planner

import (
	"iter"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Tools are the tools that a request may use. There may be many, so a Planner stops iterating over All once no more
// fit the prompt. Callers must not change the yielded tools.
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
	Private      bool   // its results may go to other servers only if the user approves it
}
