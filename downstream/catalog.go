package downstream

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Catalog is an immutable snapshot of the tools of all listed servers, in configuration order, with their names in
// plans. Successive catalogs share unchanged parts.
type Catalog struct {
	Missing   []Missing // servers that could not be listed, in configuration order
	policy    string    // for equal names; see name_conflicts
	nameLimit int       // maximum length of listed names
	configs   []ServerConfig
	places    map[string]int // server name to index in configs
	lists     []*listing     // by place; nil if the server could not be listed
	shelves   []shelf        // by place
	owners    owners
	conflicts []Conflict // by tool; only under ConflictError

	origin *Catalog // the empty first catalog of the configuration
	number int      // number of changes since origin
}

// shelf holds the tools of one server under their names in plans.
type shelf struct {
	tools  []Tool
	byName map[string]int // by their own names
}

// Missing is a server whose tools could not be listed. Reason is the reason of a Failure.
type Missing struct {
	Server, Reason, Message string

	last *listing // its last list of tools; nil = never listed
}

// String returns the name of the server and why it is missing.
func (m Missing) String() string { return m.Server + " (" + m.Reason + ": " + m.Message + ")" }

// Conflict is a bare name of tools of several servers, if name_conflicts forbids that.
type Conflict struct {
	Tool    string
	Servers []string
}

// Error implements error.
func (c *Conflict) Error() string {
	return fmt.Sprintf("the tool name %s is used by the servers %s; "+
		"rename or filter one, or set name_conflicts to namespace", c.Tool, strings.Join(c.Servers, " and "))
}

// Conflicts returns the equal tool names that name_conflicts: error forbids.
func (c *Catalog) Conflicts() []Conflict { return slices.Clone(c.conflicts) }

// Of returns the tools of one server. The slice is the same until the tools or their names change.
func (c *Catalog) Of(server string) []Tool {
	if place, ok := c.places[server]; ok {
		return c.shelves[place].tools
	}
	return nil
}

// Servers returns the names of all servers, in configuration order.
func (c *Catalog) Servers() []string {
	names := make([]string, len(c.configs))
	for i := range c.configs {
		names[i] = c.configs[i].Name
	}
	return names
}

// Instructions returns a server's instructions, at most 4 KiB; empty if the server was not listed.
func (c *Catalog) Instructions(server string) string {
	if place, ok := c.places[server]; ok && c.lists[place] != nil {
		return c.lists[place].instructions
	}
	return ""
}

// See returns the tools that a caller may see, in order.
func (c *Catalog) See(visible Visible) iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for _, s := range c.shelves {
			for i := range s.tools {
				t := &s.tools[i]
				if (visible == nil || visible(t.Server, t.Tool.Tool)) && !yield(t) {
					return
				}
			}
		}
	}
}

// SeesAny reports whether a caller may see any tool.
func (c *Catalog) SeesAny(visible Visible) bool {
	for range c.See(visible) {
		return true
	}
	return false
}

// Has reports whether a server has a tool with this own name.
func (c *Catalog) Has(server, tool string) bool { return c.find(server, tool) != nil }

// find returns a tool by its server and its own name; nil if unknown.
func (c *Catalog) find(server, tool string) *Tool {
	place, ok := c.places[server]
	if !ok {
		return nil
	}
	i, ok := c.shelves[place].byName[tool]
	if !ok {
		return nil
	}
	return &c.shelves[place].tools[i]
}

// full finds a tool by a qualified name. A qualified name takes precedence over an equal bare name.
func (c *Catalog) full(name string) *Tool {
	for server, bare := range Splits(name) {
		if tool := c.find(server, bare); tool != nil {
			return tool
		}
	}
	return nil
}

// Lookup finds a tool by any of its names: the plan name, the bare name if it is unique among the visible tools,
// server__tool, server:tool, server.tool, or the listed alias. An unknown name may match a tool last listed by a
// missing server; a call then reconnects.
func (c *Catalog) Lookup(name string, visible Visible) (*Tool, *plan.Error) {
	sees := func(t *Tool) bool { return visible == nil || visible(t.Server, t.Tool.Tool) }
	if t := c.full(name); t != nil && sees(t) {
		return t, nil
	}
	if t := lost(c, name, sees); t != nil {
		return named(c, t, sees), nil
	}
	var found *Tool
	var choices []string
	for _, place := range c.owners.of(name) {
		t := c.find(c.configs[place].Name, name)
		if t == nil || !sees(t) {
			continue
		}
		if t.Name == name {
			return t, nil
		}
		found = cmp.Or(found, t)
		choices = append(choices, t.Name)
	}
	switch len(choices) {
	case 1:
		return found, nil
	case 0:
		if t := c.aliased(name, sees); t != nil {
			return t, nil
		}
		if f := c.Quarantined(name, visible); f != nil {
			return nil, &plan.Error{Reason: f.Reason, Message: f.Error()}
		}
		switch known := c.remembered(name, sees); {
		case len(known) == 1:
			return named(c, known[0], sees), nil
		case len(known) > 1:
			for _, t := range known {
				choices = append(choices, t.Server+"."+t.Tool.Tool)
			}
			return nil, ambiguous(name, choices)
		}
		if f := c.unlisted(name, visible); f != nil {
			return nil, &plan.Error{Reason: f.Reason, Message: f.Error()}
		}
		return nil, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + name}
	}
	return nil, ambiguous(name, choices)
}

func ambiguous(name string, choices []string) *plan.Error {
	return &plan.Error{
		Reason:  reason.AmbiguousTool,
		Message: fmt.Sprintf("Ambiguous tool: %s is %s; name one of them", name, strings.Join(choices, " and ")),
	}
}

// lost finds a tool by a qualified name among those that missing servers listed before they were lost.
func lost(c *Catalog, name string, sees func(*Tool) bool) *Tool {
	for server, bare := range Splits(name) {
		for _, m := range c.Missing {
			if m.Server != server || m.last == nil {
				continue
			}
			if t := m.last.tool(bare); t != nil && sees(t) {
				return t
			}
		}
	}
	return nil
}

// remembered returns the tools with a bare name or an alias among those that missing servers listed before they were
// lost.
func (c *Catalog) remembered(name string, sees func(*Tool) bool) (tools []*Tool) {
	for _, m := range c.Missing {
		if m.last == nil {
			continue
		}
		t := m.last.tool(name)
		if t == nil && MayBeAlias(name, m.Server) {
			t = aliasedIn(m.last.tools, name, c.nameLimit)
		}
		if t != nil && sees(t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// named returns a remembered tool under a name that finds it again: its bare name, or server.tool where the bare name
// also means another tool.
func named(c *Catalog, t *Tool, sees func(*Tool) bool) *Tool {
	taken := func(place int) bool {
		other := c.find(c.configs[place].Name, t.Name)
		return other != nil && sees(other)
	}
	if c.full(t.Name) == nil && lost(c, t.Name, sees) == nil && !slices.ContainsFunc(c.owners.of(t.Name), taken) &&
		len(c.remembered(t.Name, sees)) == 1 {
		return t
	}
	qualified := *t
	qualified.Name = t.Server + "." + t.Tool.Tool
	return &qualified
}

// unlisted returns why the server in a qualified name could not be listed. It is nil if there is no such server or
// the caller may not see the tool.
func (c *Catalog) unlisted(name string, visible Visible) *link.Failure {
	for server, bare := range Splits(name) {
		i := slices.IndexFunc(c.Missing, func(m Missing) bool { return m.Server == server })
		if i >= 0 && (visible == nil || visible(server, bare)) {
			return &link.Failure{Server: server, Reason: c.Missing[i].Reason, Message: c.Missing[i].Message}
		}
	}
	return nil
}

// Quarantined returns why a tool cannot be used. It is nil if no server lists a tool with that name that the caller
// may see.
func (c *Catalog) Quarantined(name string, visible Visible) *link.Failure {
	for place, l := range c.lists {
		if l == nil || len(l.quarantined) == 0 {
			continue
		}
		server := &c.configs[place]
		for _, tool := range readings(name, server.Name) {
			why, ok := l.quarantined[tool]
			if ok && server.Tools.allows(tool) && (visible == nil || visible(server.Name, tool)) {
				return quarantined(server.Name, tool, why)
			}
		}
	}
	for i := range c.conflicts {
		conflict := &c.conflicts[i]
		for _, server := range conflict.Servers[1:] {
			if slices.Contains(readings(name, server), conflict.Tool) && (visible == nil || visible(server, conflict.Tool)) {
				return quarantined(server, conflict.Tool, conflict.Error())
			}
		}
	}
	return nil
}

// readings returns the tool names of a server that a name may mean.
func readings(name, server string) []string {
	own := []string{name}
	for s, bare := range Splits(name) {
		if s == server {
			own = append(own, bare)
		}
	}
	return own
}

func quarantined(server, tool, why string) *link.Failure {
	return &link.Failure{Server: server, Reason: reason.Quarantined, Message: tool + ": " + why}
}

// aliased finds the tool listed under an alias.
func (c *Catalog) aliased(alias string, sees func(*Tool) bool) *Tool {
	for place := range c.shelves {
		if !MayBeAlias(alias, c.configs[place].Name) {
			continue
		}
		if t := aliasedIn(c.shelves[place].tools, alias, c.nameLimit); t != nil && sees(t) {
			return t
		}
	}
	return nil
}

// aliasedIn finds the tool listed under an alias among those of one server.
func aliasedIn(tools []Tool, alias string, limit int) *Tool {
	i := slices.IndexFunc(tools, func(t Tool) bool { return Alias(t.Server, t.Tool.Tool, limit) == alias })
	if i < 0 {
		return nil
	}
	return &tools[i]
}
