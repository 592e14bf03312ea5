package router

import (
	"iter"
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

// Has implements planner.Tools.
func (u usable) Has(server, tool string) bool {
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
// callers. A search of a catalog that is already indexed never waits. Vectors are computed in the background.
type indexing struct {
	finder *search.Finder
	known  atomic.Pointer[downstream.Catalog] // the indexed catalog

	mu sync.Mutex // serializes updates; guards writes of known
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
		entries, instructions := make([]search.Tool, len(tools)), c.Instructions(server)
		for i := range tools {
			t := &tools[i]
			entries[i] = search.Tool{ID: t.Full(), Server: server, Instructions: instructions, Name: t.Tool.Tool, Title: t.Title,
				Description: t.Description, InputSchema: t.InputSchema}
		}
		x.finder.Index().Update(server, entries)
	}
	x.known.Store(c)
	x.finder.Refresh()
}
