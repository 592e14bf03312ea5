package downstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

const maxToolDef = 256 << 10 // bytes of one definition; a larger one is left out

// Tool is a tool of a downstream server.
type Tool struct {
	plan.Tool
	Raw json.RawMessage // the definition as its server wrote it

	mirrored *mcp.Tool // which arguments are repeated in headers; nil if none are
}

// Full is the tool's name on the proxy surface.
func (t *Tool) Full() string { return FullName(t.Server, t.Tool.Tool) }

// Visible says whether a caller may see a tool. nil sees everything.
type Visible func(server, tool string) bool

// Catalog is an immutable snapshot of the tools of all servers that could be listed, in configuration order,
// and the names that plans use for them. A later one shares with it what has not changed.
type Catalog struct {
	Missing   []Missing // servers that could not be listed, in configuration order
	policy    string    // of equal names
	nameLimit int       // of names in lists
	configs   []ServerConfig
	places    map[string]int // of servers in configs, by name
	lists     []*listing     // by place; nil where a server could not be listed
	shelves   []shelf        // by place
	owners    owners
	conflicts []Conflict // by tool; with ConflictError

	origin *Catalog // the empty one that all of a configuration come from
	number int      // of changes since
}

// shelf is the tools of one server, under the names that plans use.
type shelf struct {
	tools  []Tool
	byName map[string]int // by their own names
}

// Missing is a server whose tools could not be listed. Reason is one of a Failure.
type Missing struct{ Server, Reason, Message string }

// String returns the name of the server and why it is missing.
func (m Missing) String() string { return m.Server + " (" + m.Reason + ": " + m.Message + ")" }

// Conflict is an equal bare name of tools of several servers where that is not allowed.
type Conflict struct {
	Tool    string
	Servers []string
}

// Error implements error.
func (c *Conflict) Error() string {
	return fmt.Sprintf("the tool name %s is used by the servers %s; rename or filter one, or set name_conflicts to namespace",
		c.Tool, strings.Join(c.Servers, " and "))
}

// Of returns the tools of one server; the slice is the same until they or their names change.
func (c *Catalog) Of(server string) []Tool {
	if place, ok := c.places[server]; ok {
		return c.shelves[place].tools
	}
	return nil
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

// SeesAny reports whether there is a tool that a caller may see.
func (c *Catalog) SeesAny(visible Visible) bool {
	for range c.See(visible) {
		return true
	}
	return false
}

// Has reports whether a server has a tool under its own name.
func (c *Catalog) Has(server, tool string) bool { return c.find(server, tool) != nil }

// find returns a tool by its server and its own name, nil if there is none.
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

// full finds the tool that a name means when it is read as a server's and a tool's. Such a name is never
// another tool's, even if that is its bare name.
func (c *Catalog) full(name string) (tool *Tool) {
	splits(name, func(server, bare string) bool {
		tool = c.find(server, bare)
		return tool == nil
	})
	return tool
}

// Lookup finds a tool by any of its names: the plan name, bare where that is unique among what the
// caller sees, server__tool, server:tool or server.tool, and the alias that it is listed under.
func (c *Catalog) Lookup(name string, visible Visible) (*Tool, *plan.Error) {
	sees := func(t *Tool) bool { return visible == nil || visible(t.Server, t.Tool.Tool) }
	if t := c.full(name); t != nil && sees(t) {
		return t, nil
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
		if found == nil {
			found = t
		}
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
		if f := c.unlisted(name, visible); f != nil {
			return nil, &plan.Error{Reason: f.Reason, Message: f.Error()}
		}
		return nil, &plan.Error{Reason: plan.ReasonUnknownTool, Message: "Unknown tool: " + name}
	}
	return nil, &plan.Error{
		Reason:  plan.ReasonAmbiguousTool,
		Message: fmt.Sprintf("Ambiguous tool: %s is %s; name one of them", name, strings.Join(choices, " and ")),
	}
}

// unlisted returns why a name's server could not be listed, if the caller may see such a tool of it; else nil.
func (c *Catalog) unlisted(name string, visible Visible) (f *link.Failure) {
	splits(name, func(server, bare string) bool {
		i := slices.IndexFunc(c.Missing, func(m Missing) bool { return m.Server == server })
		if i >= 0 && (visible == nil || visible(server, bare)) {
			f = &link.Failure{Server: server, Reason: c.Missing[i].Reason, Message: c.Missing[i].Message}
		}
		return f == nil
	})
	return f
}

// Quarantined says why no tool of that name can be used, if a server lists one that the caller may see; else
// it is nil.
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

// readings returns the own names of tools of a server that a name may mean.
func readings(name, server string) []string {
	own := []string{name}
	splits(name, func(s, bare string) bool {
		if s == server {
			own = append(own, bare)
		}
		return true
	})
	return own
}

func quarantined(server, tool, why string) *link.Failure {
	return &link.Failure{Server: server, Reason: link.ReasonQuarantined, Message: tool + ": " + why}
}

// readTool reads a definition as far as we need it. The error says why the tool is left out.
func readTool(server string, raw json.RawMessage) (Tool, error) {
	if len(raw) > maxToolDef {
		return Tool{}, fmt.Errorf("its definition has %d bytes, %d are allowed", len(raw), maxToolDef)
	}
	var def struct {
		Name         string           `json:"name"`
		Title        string           `json:"title"`
		Description  string           `json:"description"`
		InputSchema  json.RawMessage  `json:"inputSchema"`
		OutputSchema json.RawMessage  `json:"outputSchema"`
		Annotations  plan.Annotations `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &def); err != nil {
		return Tool{}, fmt.Errorf("its definition cannot be read: %w", err)
	}
	switch {
	case def.Name == "":
		return Tool{}, errors.New("it has no name")
	case len(def.InputSchema) == 0 || def.InputSchema[0] != '{':
		return Tool{}, errors.New("its inputSchema is no object")
	case len(def.OutputSchema) > 0 && def.OutputSchema[0] != '{':
		def.OutputSchema = nil
	}
	return Tool{Raw: raw, mirrored: mirrored(def.InputSchema), Tool: plan.Tool{
		Name: def.Name, Server: server, Tool: def.Name, Title: def.Title, Description: def.Description,
		InputSchema: def.InputSchema, OutputSchema: def.OutputSchema, Annotations: def.Annotations,
	}}, nil
}

// allows reports whether the filter lets a tool through. Patterns were checked when they were loaded.
func (f ToolFilter) allows(tool string) bool {
	return (len(f.Allow) == 0 || matches(f.Allow, tool)) && !matches(f.Deny, tool)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}
