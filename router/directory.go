package router

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// directory finds tools by name within what a caller may see. It keeps the search index up to date.
type directory struct {
	servers *downstream.Manager
	index   *indexing
	base    *directory // that of no caller; nil = this one
	caller  string     // see as
}

// as returns the directory as a caller (auth.Caller.Login) has it.
func (d *directory) as(caller string) *directory {
	if own := downstream.As(d.servers, caller); own != d.servers {
		return &directory{servers: own, index: d.index, base: d, caller: caller}
	}
	return d
}

// all returns the tools of all servers.
func (d *directory) all(ctx context.Context) (*downstream.Catalog, error) {
	return d.servers.Catalog(ctx)
}

// searchable returns the tools of all servers after adding them to the search index.
func (d *directory) searchable(ctx context.Context) (*downstream.Catalog, error) {
	c, err := d.all(ctx)
	if err == nil {
		err = d.follow(ctx, c)
	}
	return c, err
}

// follow adds the tools of a catalog of the directory to the search index: those of all callers from the base.
func (d *directory) follow(ctx context.Context, c *downstream.Catalog) error {
	if d.base == nil {
		d.index.follow(c)
		return nil
	}
	d.index.followOwn(c, d.caller, downstream.Owned(d.servers))
	_, err := d.base.searchable(ctx)
	return err
}

// relist looks up tools that the catalog lacks, at the server in the name or else at all servers, and returns the
// new catalog. Lists fetched after since are not fetched again.
func (d *directory) relist(ctx context.Context, since time.Time, names []string,
	visible downstream.Visible) (*downstream.Catalog, error) {
	everywhere := false
	for _, name := range names {
		if server, tool, ok := d.qualified(name, visible); !ok {
			everywhere = true
		} else if _, err := d.servers.Has(ctx, server, "", tool, visible); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	if everywhere {
		d.servers.Refresh(ctx, since)
	}
	return d.all(ctx)
}

// qualified splits a name that begins with a visible server. A hidden server is treated like an unknown one, so that
// response times do not reveal it.
func (d *directory) qualified(name string, visible downstream.Visible) (server, tool string, ok bool) {
	for server, tool := range catalog.Splits(name) {
		if d.servers.Configured(server) && (visible == nil || visible(server, "")) {
			return server, tool, true
		}
	}
	return "", "", false
}

// quarantined returns the error for a tool that name_conflicts: error quarantines; nil for other tools.
func (d *directory) quarantined(server, tool string) error {
	if f := d.servers.Displaced(server, tool); f != nil {
		return f
	}
	return nil
}

// listed returns the catalog. It fails if no server could be listed and the caller therefore sees nothing: an empty
// list would look like a success.
func (d *directory) listed(ctx context.Context, visible downstream.Visible) (*downstream.Catalog, error) {
	catalog, err := d.all(ctx)
	if err != nil {
		return nil, err
	}
	if missing := missing(catalog, visible); len(missing) > 0 && !catalog.SeesAny(visible) {
		reasons := make([]string, len(missing))
		for i, m := range missing {
			reasons[i] = m.String()
		}
		return nil, refuse("No server could be listed: %s", strings.Join(reasons, ", "))
	}
	return catalog, nil
}

// missing returns the servers that could not be listed and that the caller may see.
func missing(catalog *downstream.Catalog, visible downstream.Visible) []downstream.Missing {
	return slices.DeleteFunc(slices.Clone(catalog.Missing), func(m downstream.Missing) bool {
		return visible != nil && !visible(m.Server, "")
	})
}

// awaitStart waits until one of the missing servers that are starting has connected. It reports whether any were
// starting; the error means that none has connected.
func (d *directory) awaitStart(
	ctx context.Context, catalog *downstream.Catalog, visible downstream.Visible,
) (waited bool, err error) {
	var names []string
	for _, m := range missing(catalog, visible) {
		names = append(names, m.Server)
	}
	return d.servers.AwaitStart(ctx, names...)
}

// serversFor returns the servers with anything visible to the caller, in configuration order.
func (d *directory) serversFor(visible downstream.Visible) []string {
	return slices.DeleteFunc(d.servers.Servers(), func(name string) bool {
		return visible != nil && !visible(name, "")
	})
}

// resolve finds the server and the tool behind a name. A qualified name needs the list of its server alone, so it
// works while other servers cannot be listed.
func (d *directory) resolve(ctx context.Context, name string, visible downstream.Visible) (server, tool string,
	err error) {
	began := time.Now()
	if server, tool, ok := d.findAlias(ctx, name, visible); ok {
		return server, tool, d.quarantined(server, tool)
	}
	for server, tool := range catalog.Splits(name) {
		known, err := d.servers.Has(ctx, server, "", tool, visible)
		if known && err == nil {
			err = d.quarantined(server, tool)
		}
		if known || err != nil {
			return server, tool, err
		}
	}
	catalog, err := d.all(ctx)
	if err != nil {
		return "", "", err
	}
	t, unknown := catalog.Lookup(name, visible)
	if _, _, asked := d.qualified(name, visible); !asked && unknown != nil && unknown.Reason == reason.UnknownTool {
		if catalog, err = d.relist(ctx, began, []string{name}, visible); err != nil {
			return "", "", err
		}
		t, unknown = catalog.Lookup(name, visible)
	}
	if unknown != nil {
		if f := catalog.Quarantined(name, visible); f != nil {
			return "", "", f
		}
		return "", "", d.explainUnknown(unknown, name, catalog, visible)
	}
	return t.Server, t.Tool.Tool, nil
}

// findAlias finds the server and tool behind a listed alias. ok is false if name is not an alias or is a tool's own
// name.
func (d *directory) findAlias(ctx context.Context, name string, visible downstream.Visible) (server, tool string,
	ok bool) {
	if server, tool, full := catalog.SplitFull(name); full && d.servers.Listed(server, "", tool) {
		return "", "", false
	}
	for _, server := range d.serversFor(visible) {
		if !catalog.MayBeAlias(name, server) || !d.servers.Owns(server, name) {
			continue
		}
		// A server that cannot be listed is skipped; the caller reports it if nothing else has the name.
		item, found, _ := d.servers.Find(ctx, server, "", "tools/list", time.Time{}, func(item json.RawMessage) bool {
			return d.servers.ListedName(server, jsonrpc.Text(jsonrpc.Get(item, "name"))) == name
		})
		own := jsonrpc.Text(jsonrpc.Get(item, "name"))
		if found && (visible == nil || visible(server, own)) {
			return server, own, true
		}
	}
	return "", "", false
}

const (
	maxSimilar  = 3      // tools that an error suggests
	maxCompared = 10_000 // tools compared with a name
)

// explainUnknown adds advice to the error about an unknown tool: wait for servers that are starting, check servers that
// cannot be listed, or use a tool with a similar name.
func (d *directory) explainUnknown(unknown *plan.Error, name string, catalog *downstream.Catalog,
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
	honest := func(server, tool string) bool { // no tool that is named like one of another server
		return d.servers.Owns(server, tool) && (visible == nil || visible(server, tool))
	}
	if similar := similarNames(name, catalog.See(honest)); len(similar) > 0 {
		text += "; did you mean " + strings.Join(similar, " or ") + "?"
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

// similarNames returns the names, with or without server, of tools spelt like name.
func similarNames(name string, tools iter.Seq[*downstream.Tool]) (names []string) {
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
	for _, s := range texts.Similar(name, spelt, 2*maxSimilar) {
		if t := called[s]; !seen[t] && len(names) < maxSimilar {
			seen[t] = true
			names = append(names, t)
		}
	}
	return names
}
