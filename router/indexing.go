package router

import (
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

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
