package router

import (
	"iter"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/suggest"
)

const (
	maxMeant    = 3      // tools that an error suggests
	maxCompared = 10_000 // tools compared with a name
)

// explain adds advice to the error about an unknown tool: wait for servers that are starting, check servers that
// cannot be listed, or use a tool with a similar name.
func (d *directory) explain(unknown *plan.Error, name string, catalog *downstream.Catalog,
	visible downstream.Visible) error {
	if unknown.Reason != reason.UnknownTool {
		return unknown
	}
	status := d.servers.Status()
	var starting, lost []string
	server, _, qualified := d.qualified(name, visible)
	for _, m := range missing(catalog, visible) {
		if qualified && m.Server != server {
			continue
		}
		if status[m.Server].Status == downstream.StateConnecting {
			starting = append(starting, m.Server)
		} else {
			lost = append(lost, m.String())
		}
	}
	if len(starting) > 0 {
		return &link.Failure{
			Server: starting[0], Reason: reason.Unavailable,
			Message: "it is still starting, and no other server has the tool " + name + others(starting[1:]) + "; try again in a moment",
		}
	}
	text := unknown.Message
	if meant := meant(name, catalog.See(visible)); len(meant) > 0 {
		text += "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	if len(lost) > 0 {
		text += "; not listed: " + strings.Join(lost, ", ")
	}
	return &plan.Error{Reason: unknown.Reason, Message: text}
}

func others(starting []string) string {
	if len(starting) == 0 {
		return ""
	}
	return "; " + strings.Join(starting, ", ") + " are starting, too"
}

// meant returns the names, with or without server, of tools spelt like name.
func meant(name string, tools iter.Seq[*downstream.Tool]) (names []string) {
	var spelt []string
	called := map[string]string{} // spelling to the tool's name
	compared := 0
	for t := range tools {
		if compared++; compared > maxCompared {
			break
		}
		for _, s := range [...]string{t.Full(), t.Tool.Tool} {
			if called[s] == "" {
				called[s] = t.Name
				spelt = append(spelt, s)
			}
		}
	}
	name = strings.NewReplacer(":", "__", ".", "__").Replace(name)
	seen := map[string]bool{}
	for _, s := range suggest.Of(name, spelt, 2*maxMeant) {
		if t := called[s]; !seen[t] && len(names) < maxMeant {
			seen[t] = true
			names = append(names, t)
		}
	}
	return names
}
