package router

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// directory finds tools by name within what a caller may see. It keeps the search index up to date.
type directory struct {
	servers *downstream.Manager
	index   indexing
}

// all returns the tools of all servers.
func (d *directory) all(ctx context.Context) (*downstream.Catalog, error) {
	return d.servers.Catalog(ctx)
}

// searchable returns the tools of all servers after adding them to the search index.
func (d *directory) searchable(ctx context.Context) (*downstream.Catalog, error) {
	c, err := d.all(ctx)
	if err == nil {
		d.index.follow(c)
	}
	return c, err
}

// lookAgain looks up tools that the catalog lacks, at the server in the name or else at all servers, and returns the
// new catalog. Lists fetched after since are not fetched again.
func (d *directory) lookAgain(ctx context.Context, since time.Time, names []string,
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

// displaced returns the error for a tool that name_conflicts: error quarantines; nil for other tools.
func (d *directory) displaced(server, tool string) error {
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
	if server, tool, ok := d.aliased(ctx, name, visible); ok {
		return server, tool, d.displaced(server, tool)
	}
	for server, tool := range catalog.Splits(name) {
		known, err := d.servers.Has(ctx, server, "", tool, visible)
		if known && err == nil {
			err = d.displaced(server, tool)
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
		if catalog, err = d.lookAgain(ctx, began, []string{name}, visible); err != nil {
			return "", "", err
		}
		t, unknown = catalog.Lookup(name, visible)
	}
	if unknown != nil {
		if f := catalog.Quarantined(name, visible); f != nil {
			return "", "", f
		}
		return "", "", d.explain(unknown, name, catalog, visible)
	}
	return t.Server, t.Tool.Tool, nil
}
