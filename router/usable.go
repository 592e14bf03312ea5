package router

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
)

// usable is the part of a catalog that one query may use.
type usable struct {
	catalog *downstream.Catalog
	visible downstream.Visible
	private []string // servers that a planner is told are private
	caller  string   // whose own servers may be found, see indexing
}

// All implements planner.Tools.
func (u usable) All() iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		for t := range u.catalog.See(u.visible) {
			if !yield(&t.Tool) {
				return
			}
		}
	}
}

// Of implements planner.Tools.
func (u usable) Of(server string) iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		tools := u.catalog.Of(server)
		for i := range tools {
			if t := &tools[i].Tool; u.Has(server, t.Tool) && !yield(t) {
				return
			}
		}
	}
}

// Servers implements planner.Tools.
func (u usable) Servers() (servers []planner.Server) {
	for _, name := range u.catalog.Servers() {
		for range u.Of(name) {
			servers = append(servers, planner.Server{Name: name, Instructions: u.catalog.Instructions(name),
				Private: slices.Contains(u.private, name)})
			break
		}
	}
	return servers
}

// Has implements planner.Tools. The server may have its name in the index.
func (u usable) Has(server, tool string) bool {
	server, owner := search.Owner(server)
	if owner != "" && owner != u.caller {
		return false
	}
	return (u.visible == nil || u.visible(server, tool)) && u.catalog.Has(server, tool)
}

// Lookup implements planner.Tools.
func (u usable) Lookup(name string) (plan.Tool, *plan.Error) {
	t, err := u.catalog.Lookup(name, u.visible)
	if err != nil {
		return plan.Tool{}, err
	}
	return t.Tool, nil
}

// indexing keeps a search index up to date with the catalog. Only changed tools are analysed, once for all waiting
// callers. A search of a catalog that is already indexed never waits. Vectors are computed in the background. What only
// one caller sees of a server is in the index as another server (search.Owned).
type indexing struct {
	finder *search.Finder
	known  atomic.Pointer[downstream.Catalog] // the indexed catalog

	mu   sync.Mutex // serializes updates; guards writes of known
	uses int64
	own  map[string]*ownTools // by caller
}

// ownTools are the indexed tools of one caller.
type ownTools struct {
	catalog *downstream.Catalog
	servers []string
	used    int64
}

const maxOwners = 200 // callers with tools in the index; those of the one that was idle for longest go

func newIndexing(finder *search.Finder) *indexing {
	return &indexing{finder: finder, own: map[string]*ownTools{}}
}

// follow returns once the index covers the catalog or a later one.
func (x *indexing) follow(c *downstream.Catalog) {
	if x.known.Load() == c {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.known.Load()
	if known == c || known != nil && known.Number > c.Number {
		return
	}
	for server, tools := range c.Changed(known) {
		x.finder.Index().Update(server, entries(c, server, tools))
	}
	x.known.Store(c)
	x.finder.Refresh()
}

// followOwn returns once the index covers a caller's catalog of the servers that are its own.
func (x *indexing) followOwn(c *downstream.Catalog, caller string, servers []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.uses++
	if own := x.own[caller]; own != nil {
		if own.used = x.uses; own.catalog == c {
			return
		}
		x.drop(caller)
	} else if len(x.own) >= maxOwners {
		x.drop(slices.MinFunc(slices.Collect(maps.Keys(x.own)), func(a, b string) int {
			return cmp.Compare(x.own[a].used, x.own[b].used)
		}))
	}
	for _, server := range servers {
		x.finder.Index().Update(search.Owned(server, caller), entries(c, server, c.Of(server)))
	}
	x.own[caller] = &ownTools{c, servers, x.uses}
	x.finder.Refresh()
}

// drop removes the tools of a caller. The caller of drop holds x.mu.
func (x *indexing) drop(caller string) {
	for _, server := range x.own[caller].servers {
		x.finder.Index().Update(search.Owned(server, caller), nil)
	}
	delete(x.own, caller)
}

// entries returns the tools of a server as the index has them.
func entries(c *downstream.Catalog, server string, tools []downstream.Tool) []search.Tool {
	out, instructions := make([]search.Tool, len(tools)), c.Instructions(server)
	for i := range tools {
		t := &tools[i]
		out[i] = search.Tool{ID: t.Full(), Server: server, Instructions: instructions, Name: t.Tool.Tool, Title: t.Title,
			Description: t.Description, InputSchema: t.InputSchema}
	}
	return out
}
