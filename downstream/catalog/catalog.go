package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Policies for equal bare tool names of several servers.
const (
	ConflictNamespace = "namespace" // both are listed as server.tool
	ConflictLastWins  = "last_wins" // the server later in the configuration gets the bare name
	ConflictError     = "error"     // start-up fails; a conflict that appears later quarantines the later tool
)

// Visible reports whether a caller may see a tool, or any tool of the server if tool is empty. nil allows everything.
type Visible func(server, tool string) bool

func (v Visible) sees(server, tool string) bool { return v == nil || v(server, tool) }

// Options of a Catalog.
type Options struct {
	Policy    string // for equal names; see name_conflicts
	NameLimit int    // maximum length of listed names; 0 = none
}

// Source is what a server contributes to a Catalog.
type Source struct {
	Server       string
	Instructions string
	List         *List // nil if the server could not be listed
}

// Missing is a server whose tools could not be listed. Reason is the reason of a Failure.
type Missing struct {
	Server, Reason, Message string

	Last *List // its last list of tools; nil = never listed
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

// Catalog is an immutable snapshot of the tools of all listed servers, in configuration order, with their names in
// plans.
type Catalog struct {
	Missing   []Missing  // servers that could not be listed, in configuration order
	Conflicts []Conflict // equal names that name_conflicts: error forbids, by name
	Number    int        // increases with each catalog

	options Options
	sources []Source
	indexes map[string]int // server name to index in sources and tools
	tools   [][]Tool       // by server
	owners  map[string][]int
	listed  index
	lost    index // tools that missing servers listed before they were lost
}

// Build returns the catalog of the sources, which are in configuration order. If they are those of the former catalog,
// which may be nil, it returns the former catalog.
func Build(former *Catalog, o Options, sources []Source, missing []Missing) *Catalog {
	if former == nil {
		former = &Catalog{}
	} else if former.options == o && slices.Equal(former.sources, sources) && slices.Equal(former.Missing, missing) {
		return former
	}
	c := &Catalog{
		Missing: missing, Number: former.Number + 1, options: o, sources: sources,
		indexes: make(map[string]int, len(sources)), tools: make([][]Tool, len(sources)), owners: map[string][]int{},
		listed: newIndex(), lost: newIndex(),
	}
	for i, s := range sources {
		c.indexes[s.Server] = i
		for _, t := range s.List.all() {
			c.owners[t.bare] = append(c.owners[t.bare], i)
		}
	}
	for i, s := range sources {
		c.tools[i] = c.name(s.List.all(), i)
		if before := former.Of(s.Server); slices.EqualFunc(before, c.tools[i], same) {
			c.tools[i] = before
		}
		for j := range c.tools[i] {
			c.listed.add(&c.tools[i][j], o.NameLimit)
		}
	}
	c.remember()
	if o.Policy == ConflictError {
		c.Conflicts = c.conflicts()
	}
	return c
}

// same reports whether two tools share a definition and have the same name in plans.
func same(a, b Tool) bool { return &a.Raw[0] == &b.Raw[0] && a.Name == b.Name }

// name returns the tools of a server that are in the catalog, with their names in plans. If all keep their own names,
// it copies none.
func (c *Catalog) name(tools []Tool, i int) []Tool {
	if !slices.ContainsFunc(tools, func(t Tool) bool {
		return !c.keeps(i, t.bare) || c.planName(i, t.bare) != t.Name
	}) {
		return tools
	}
	named := make([]Tool, 0, len(tools))
	for _, t := range tools {
		if c.keeps(i, t.bare) {
			t.Name = c.planName(i, t.bare)
			named = append(named, t)
		}
	}
	return named
}

// keeps reports whether a tool that its server lists is in the catalog.
func (c *Catalog) keeps(i int, name string) bool {
	return c.options.Policy != ConflictError || c.owners[name][0] == i
}

// planName returns the name of a tool in plans: its own name if that is unambiguous.
func (c *Catalog) planName(i int, name string) string {
	owners := c.owners[name]
	bare := len(owners) == 1 || c.options.Policy == ConflictError ||
		c.options.Policy == ConflictLastWins && owners[len(owners)-1] == i
	if owner, rest, ok := c.owner(name); ok {
		o := c.indexes[owner]
		bare = bare && o == i && (!c.sources[o].List.has(rest) || !c.keeps(o, rest))
	}
	if bare {
		return name
	}
	return c.sources[i].Server + "." + name
}

// owner returns the server that alone may have the tool of a name, see Owner.
func (c *Catalog) owner(name string) (server, rest string, ok bool) {
	return Owner(name, func(server string) bool { _, ok := c.indexes[server]; return ok })
}

// ownersOnly limits visible to the server that a name belongs to, if it belongs to one.
func (c *Catalog) ownersOnly(name string, visible Visible) Visible {
	owner, _, ok := c.owner(name)
	if !ok {
		return visible
	}
	return func(server, tool string) bool { return server == owner && visible.sees(server, tool) }
}

// remember indexes the last tools of missing servers. Each gets a name that finds it again: its own name, or
// server.tool where that also means another tool.
func (c *Catalog) remember() {
	for _, m := range c.Missing {
		for _, t := range m.Last.all() {
			c.lost.add(&t, c.options.NameLimit)
		}
	}
	for _, tools := range c.lost.byName {
		for _, t := range tools {
			own := t.bare
			owner, _, belongs := c.owner(own)
			if len(tools) > 1 || len(c.owners[own]) > 0 || belongs && owner != t.Server ||
				c.listed.qualified(own, nil) != nil || c.lost.qualified(own, nil) != nil {
				t.Name = t.Server + "." + own
			}
		}
	}
}

// conflicts returns the names that several servers use, in order.
func (c *Catalog) conflicts() (out []Conflict) {
	for _, name := range slices.Sorted(maps.Keys(c.owners)) {
		if owners := c.owners[name]; len(owners) > 1 {
			conflict := Conflict{Tool: name}
			for _, i := range owners {
				conflict.Servers = append(conflict.Servers, c.sources[i].Server)
			}
			out = append(out, conflict)
		}
	}
	return out
}

// Of returns the tools of one server. The slice is the same until the tools or their names change.
func (c *Catalog) Of(server string) []Tool {
	if i, ok := c.indexes[server]; ok {
		return c.tools[i]
	}
	return nil
}

// Changed yields the servers whose tools may differ from an earlier catalog, with their tools; a nil catalog has no
// servers. Removed servers have no tools.
func (c *Catalog) Changed(since *Catalog) iter.Seq2[string, []Tool] {
	return func(yield func(string, []Tool) bool) {
		if since == nil {
			since = &Catalog{}
		}
		for _, s := range since.sources {
			if _, ok := c.indexes[s.Server]; !ok && !yield(s.Server, nil) {
				return
			}
		}
		for i, s := range c.sources {
			now := c.tools[i]
			before := since.Of(s.Server)
			if len(now) == len(before) && (len(now) == 0 || &now[0] == &before[0]) &&
				since.Instructions(s.Server) == s.Instructions {
				continue
			}
			if !yield(s.Server, now) {
				return
			}
		}
	}
}

// Servers returns the names of all servers, in configuration order.
func (c *Catalog) Servers() []string {
	names := make([]string, len(c.sources))
	for i, s := range c.sources {
		names[i] = s.Server
	}
	return names
}

// Instructions returns a server's instructions, at most 4 KiB; empty if the server was not listed.
func (c *Catalog) Instructions(server string) string {
	if i, ok := c.indexes[server]; ok {
		return c.sources[i].Instructions
	}
	return ""
}

// See returns the tools that a caller may see, in order.
func (c *Catalog) See(visible Visible) iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for _, tools := range c.tools {
			for i := range tools {
				t := &tools[i]
				if visible.sees(t.Server, t.Tool.Tool) && !yield(t) {
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
func (c *Catalog) Has(server, tool string) bool { return c.listed.byOwner[owned{server, tool}] != nil }

// Lookup finds a tool by any of its names: the plan name, the bare name if it is unique among the visible tools,
// server__tool, server:tool, server.tool, or the listed alias. A qualified name takes precedence over an equal bare
// name, and a name that begins with a server belongs to that server alone, see Owner. An unknown name may match a tool
// last listed by a missing server; a call then reconnects.
func (c *Catalog) Lookup(name string, visible Visible) (*Tool, *plan.Error) {
	visible = c.ownersOnly(name, visible)
	if t := c.listed.qualified(name, visible); t != nil {
		return t, nil
	}
	if t := c.lost.qualified(name, visible); t != nil {
		return t, nil
	}
	found := c.listed.unqualified(name, visible)
	for _, t := range found {
		if t.Name == name {
			return t, nil
		}
	}
	if len(found) == 0 {
		if f := c.Quarantined(name, visible); f != nil {
			return nil, &plan.Error{Reason: f.Reason, Message: f.Error()}
		}
		found = c.lost.unqualified(name, visible)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if f := c.unlisted(name, visible); f != nil {
			return nil, &plan.Error{Reason: f.Reason, Message: f.Error()}
		}
		return nil, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + name}
	}
	choices := make([]string, len(found))
	for i, t := range found {
		choices[i] = t.Name
	}
	return nil, &plan.Error{
		Reason:  reason.AmbiguousTool,
		Message: fmt.Sprintf("Ambiguous tool: %s is %s; name one of them", name, strings.Join(choices, " and ")),
	}
}

// unlisted returns why the server in a qualified name could not be listed. It is nil if there is no such server or
// the caller may not see the tool.
func (c *Catalog) unlisted(name string, visible Visible) *link.Failure {
	for server, tool := range Splits(name) {
		i := slices.IndexFunc(c.Missing, func(m Missing) bool { return m.Server == server })
		if i >= 0 && visible.sees(server, tool) {
			return &link.Failure{Server: server, Reason: c.Missing[i].Reason, Message: c.Missing[i].Message}
		}
	}
	return nil
}

// Quarantined returns why a tool cannot be used. It is nil if no server lists a tool with that name that the caller
// may see.
func (c *Catalog) Quarantined(name string, visible Visible) *link.Failure {
	visible = c.ownersOnly(name, visible)
	means := func(server, tool string) bool {
		if !visible.sees(server, tool) {
			return false
		}
		for s, own := range Splits(name) {
			if s == server && own == tool {
				return true
			}
		}
		return name == tool
	}
	for _, s := range c.sources {
		for tool, why := range s.List.quarantined() {
			if means(s.Server, tool) {
				return Quarantine(s.Server, tool, why)
			}
		}
	}
	for i := range c.Conflicts {
		conflict := &c.Conflicts[i]
		for _, server := range conflict.Servers[1:] {
			if means(server, conflict.Tool) {
				return Quarantine(server, conflict.Tool, conflict.Error())
			}
		}
	}
	return nil
}

// Quarantine returns the failure of calls of a quarantined tool.
func Quarantine(server, tool, why string) *link.Failure {
	return &link.Failure{Server: server, Reason: reason.Quarantined, Message: tool + ": " + why}
}

// owned is a tool's own name with its server.
type owned struct{ server, tool string }

// index finds tools by their names.
type index struct {
	byOwner map[owned]*Tool
	byName  map[string][]*Tool // by own name, in configuration order
	byAlias map[string]*Tool   // of tools that are listed under one
}

func newIndex() index {
	return index{map[owned]*Tool{}, map[string][]*Tool{}, map[string]*Tool{}}
}

func (x *index) add(t *Tool, limit int) {
	own := t.Tool.Tool
	x.byOwner[owned{t.Server, own}] = t
	x.byName[own] = append(x.byName[own], t)
	if t.bare != own {
		x.byOwner[owned{t.Server, t.bare}] = t
		x.byName[t.bare] = append(x.byName[t.bare], t)
	}
	if alias := Alias(t.Server, own, limit); alias != t.Full() {
		x.byAlias[alias] = t
	}
}

// qualified finds a visible tool by a name that contains its server; nil if there is none.
func (x *index) qualified(name string, visible Visible) *Tool {
	for server, own := range Splits(name) {
		if t := x.byOwner[owned{server, own}]; t != nil && visible.sees(server, t.Tool.Tool) {
			return t
		}
	}
	return nil
}

// unqualified returns the visible tools with an own name, else the one with an alias.
func (x *index) unqualified(name string, visible Visible) (found []*Tool) {
	for _, t := range x.byName[name] {
		if visible.sees(t.Server, t.Tool.Tool) {
			found = append(found, t)
		}
	}
	if t := x.byAlias[name]; len(found) == 0 && t != nil && visible.sees(t.Server, t.Tool.Tool) {
		found = []*Tool{t}
	}
	return found
}

// FullName returns a tool's name on the proxy surface.
func FullName(server, tool string) string { return server + "__" + tool }

// SplitFull splits server__tool at the first "__". Server names cannot contain it; tool names may.
func SplitFull(name string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(name, "__")
	return server, tool, ok && server != "" && tool != ""
}

// Splits yields each way to split a qualified name: server__tool, server:tool (at the first colon) and server.tool.
func Splits(name string) iter.Seq2[string, string] {
	return func(yield func(server, tool string) bool) {
		for _, sep := range separators {
			if server, tool, ok := strings.Cut(name, sep); ok && server != "" && tool != "" && !yield(server, tool) {
				return
			}
		}
	}
}

// separators stand between a server and the rest of a qualified name.
var separators = [...]string{"__", ":", "."}

// Owner returns the server that a name belongs to, and what follows: the name begins with a configured server and a
// separator. No other server may have it, not even one with a tool, prompt or alias of exactly that name: that one
// could pose as the first. Names of servers contain no separator, so there is at most one owner.
func Owner(name string, configured func(server string) bool) (server, rest string, ok bool) {
	for _, sep := range separators {
		if server, rest, ok = strings.Cut(name, sep); ok && configured(server) {
			return server, rest, true
		}
	}
	return "", "", false
}

// Alias returns the name under which clients see a tool or prompt. It is the full name, unless that is longer than
// limit or has characters other than letters, digits, "_" and "-". Then it is a prefix of the full name followed by
// six hexadecimal digits of its hash. A limit of 0 means none.
func Alias(server, name string, limit int) string {
	full := FullName(server, name)
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, full)
	if kept == full && (limit == 0 || len(full) <= limit) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	suffix := "_" + hex.EncodeToString(sum[:3])
	if limit > 0 {
		kept = kept[:min(len(kept), limit-len(suffix))]
	}
	return kept + suffix
}

// MayBeAlias reports whether a name could be the alias of a tool or a prompt of the server.
func MayBeAlias(name, server string) bool {
	cut := len(name) - 7
	if cut < 0 || name[cut] != '_' {
		return false
	}
	for _, c := range name[cut+1:] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	prefix := FullName(server, "")
	return strings.HasPrefix(name[:cut], prefix) || strings.HasPrefix(prefix, name[:cut])
}
