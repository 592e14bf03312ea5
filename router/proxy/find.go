package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// finder resolves the names on a surface.
type finder struct{ s *Surface }

// tool returns the server and the tool's own name; the server is empty if the name is unknown. The order is: a listed
// full name, an alias, a full name confirmed by its server, an alias in freshly fetched lists.
func (f finder) tool(ctx context.Context, x *edge.Exchange, name string) (server, tool string, err error) {
	session, began := x.Session, time.Now()
	if f.s.only != "" {
		known, err := f.s.p.servers.Has(ctx, f.s.only, session, name, x.Visible)
		if err != nil || !known {
			return "", "", err
		}
		return f.s.only, name, nil
	}
	server, tool, full := catalog.SplitFull(name)
	if !full || !f.s.p.servers.Listed(server, session, tool) { // a tool's own name comes before an alias
		server, tool, err := f.toolAlias(ctx, x, name, time.Time{})
		if server != "" {
			return server, tool, err
		}
	}
	if full {
		known, err := f.s.p.servers.Has(ctx, server, session, tool, x.Visible)
		if known || err != nil {
			return server, tool, err
		}
	}
	return f.toolAlias(ctx, x, name, began)
}

func (f finder) toolAlias(ctx context.Context, x *edge.Exchange, name string, since time.Time) (server,
	tool string, err error) {
	server, tool, err = f.alias(ctx, x, "tools/list", name, since)
	if server != "" && x.Visible != nil && !x.Visible(server, tool) {
		return "", "", nil
	}
	return server, tool, err
}

// alias finds an aliased item at the servers that may have it. If it is missing, lists older than since are fetched
// again; the zero time fetches none.
func (f finder) alias(
	ctx context.Context, x *edge.Exchange, method, alias string, since time.Time,
) (server, own string, err error) {
	for _, server := range f.s.reach(x) {
		if !catalog.MayBeAlias(alias, server) {
			continue
		}
		item, ok, failed := f.s.p.servers.Find(ctx, server, x.Session, method, since, func(item json.RawMessage) bool {
			own := jsonrpc.Text(jsonrpc.Get(item, "name"))
			return own != "" && f.s.names().name(server, own) == alias
		})
		switch {
		case ok:
			return server, jsonrpc.Text(jsonrpc.Get(item, "name")), nil
		case failed != nil && err == nil:
			err = failed
		}
	}
	return "", "", err
}

// prompt returns the server and the prompt's own name. A name that is not an alias goes to the server in its prefix,
// which knows its prompts.
func (f finder) prompt(ctx context.Context, x *edge.Exchange, name string) (server, own string, ok bool) {
	if server, own, err := f.alias(ctx, x, "prompts/list", name, time.Time{}); err == nil && server != "" {
		return server, own, true
	}
	server, own, ok = catalog.SplitFull(name)
	ok = ok && slices.Contains(f.s.reach(x), server)
	if ok && !catalog.MayBeAlias(name, server) || ok && f.hasPrompt(ctx, x, server, own) {
		return server, own, true
	}
	if server, own, err := f.alias(ctx, x, "prompts/list", name, time.Now()); err == nil && server != "" {
		return server, own, true
	}
	return server, own, ok
}

// hasPrompt reports whether the held list of a server contains a prompt.
func (f finder) hasPrompt(ctx context.Context, x *edge.Exchange, server, own string) bool {
	_, ok, _ := f.s.p.servers.Find(ctx, server, x.Session, "prompts/list", time.Time{}, func(item json.RawMessage) bool {
		return jsonrpc.Text(jsonrpc.Get(item, "name")) == own
	})
	return ok
}
