package downstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/planner/plan"
)

const maxToolDef = 256 << 10 // bytes of one definition; a larger one is left out

// Tool is a tool of a downstream server.
type Tool struct {
	plan.Tool
	Raw json.RawMessage // the definition as its server wrote it
}

// Full is the tool's name on the proxy surface.
func (t *Tool) Full() string { return FullName(t.Server, t.Tool.Tool) }

// Visible says whether a caller may see a tool. nil sees everything.
type Visible func(server, tool string) bool

// Catalog is an immutable snapshot of the tools of all servers that could be listed, in configuration
// order, and the names that plans use for them.
type Catalog struct {
	Tools   []Tool
	Missing []string // servers that could not be listed
	byFull  map[string]int
	byBare  map[string][]int
	named   map[string]int // by plan name
	first   map[string]int // where a server's tools begin

	quarantined []*quarantinedTool
}

// quarantinedTool is one that a server lists and nobody can use.
type quarantinedTool struct{ server, tool, why string }

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

// newCatalog names the tools by the policy. With ConflictError the later tools of an equal name are
// left out and returned as conflicts.
func newCatalog(tools []Tool, missing []string, policy string) (*Catalog, []Conflict) {
	c := &Catalog{Tools: tools, Missing: missing, byFull: map[string]int{}, byBare: map[string][]int{}, named: map[string]int{}, first: map[string]int{}}
	var conflicts []Conflict
	if policy == ConflictError {
		c.Tools, conflicts = withoutConflicts(tools)
	}
	for i := range c.Tools {
		t := &c.Tools[i]
		c.byFull[t.Full()] = i
		if _, ok := c.first[t.Server]; !ok {
			c.first[t.Server] = i
		}
		c.byBare[t.Tool.Tool] = append(c.byBare[t.Tool.Tool], i)
	}
	for bare, same := range c.byBare {
		bearer := -1 // who is named by the bare name
		if _, taken := c.full(bare); !taken && (len(same) == 1 || policy == ConflictLastWins) {
			bearer = same[len(same)-1]
		}
		for _, i := range same {
			t := &c.Tools[i]
			if t.Name = bare; i != bearer {
				t.Name = t.Server + "." + bare
			}
			c.named[t.Name] = i
		}
	}
	return c, conflicts
}

// full finds the tool that a name means when it is read as a server's and a tool's. Such a name is never
// another tool's, even if that is its bare name.
func (c *Catalog) full(name string) (tool int, ok bool) {
	splits(name, func(server, bare string) bool {
		tool, ok = c.byFull[FullName(server, bare)]
		return !ok
	})
	return tool, ok
}

func withoutConflicts(tools []Tool) (kept []Tool, conflicts []Conflict) {
	servers := map[string][]string{}
	for _, t := range tools {
		if servers[t.Tool.Tool] = append(servers[t.Tool.Tool], t.Server); len(servers[t.Tool.Tool]) == 1 {
			kept = append(kept, t)
		}
	}
	for name, of := range servers {
		if len(of) > 1 {
			conflicts = append(conflicts, Conflict{Tool: name, Servers: of})
		}
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int { return strings.Compare(a.Tool, b.Tool) })
	return kept, conflicts
}

// Of returns the tools of one server; the slice is the same until they change.
func (c *Catalog) Of(server string) []Tool {
	first, ok := c.first[server]
	if !ok {
		return nil
	}
	end := first
	for end < len(c.Tools) && c.Tools[end].Server == server {
		end++
	}
	return c.Tools[first:end]
}

// See returns the tools that a caller may see.
func (c *Catalog) See(visible Visible) []Tool {
	if visible == nil {
		return c.Tools
	}
	var out []Tool
	for _, t := range c.Tools {
		if visible(t.Server, t.Tool.Tool) {
			out = append(out, t)
		}
	}
	return out
}

// Lookup finds a tool by any of its names: the plan name, bare where that is unique among what the
// caller sees, server__tool, server:tool or server.tool.
func (c *Catalog) Lookup(name string, visible Visible) (*Tool, *plan.Error) {
	sees := func(i int) bool { return visible == nil || visible(c.Tools[i].Server, c.Tools[i].Tool.Tool) }
	if i, ok := c.named[name]; ok && sees(i) {
		return &c.Tools[i], nil
	}
	found, ok := c.full(name)
	if ok && sees(found) {
		return &c.Tools[found], nil
	}
	var bare []string
	for _, i := range c.byBare[name] {
		if sees(i) {
			bare = append(bare, c.Tools[i].Name)
			found = i
		}
	}
	switch len(bare) {
	case 1:
		return &c.Tools[found], nil
	case 0:
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
		Message: fmt.Sprintf("Ambiguous tool: %s is %s; name one of them", name, strings.Join(bare, " and ")),
	}
}

// unlisted says that a name is that of a server that could not be listed, if the caller may see such a tool of
// it; else it is nil.
func (c *Catalog) unlisted(name string, visible Visible) (f *link.Failure) {
	splits(name, func(server, bare string) bool {
		if slices.Contains(c.Missing, server) && (visible == nil || visible(server, bare)) {
			f = &link.Failure{Server: server, Reason: link.ReasonUnavailable, Message: "its tools cannot be listed"}
		}
		return f == nil
	})
	return f
}

// Quarantined says why no tool of that name can be used, if a server lists one that the caller may see; else
// it is nil.
func (c *Catalog) Quarantined(name string, visible Visible) *link.Failure {
	for _, q := range c.quarantined {
		named := name == q.tool
		splits(name, func(server, bare string) bool {
			named = named || server == q.server && bare == q.tool
			return !named
		})
		if named && (visible == nil || visible(q.server, q.tool)) {
			return quarantined(q.server, q.tool, q.why)
		}
	}
	return nil
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
	return Tool{Raw: raw, Tool: plan.Tool{
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
