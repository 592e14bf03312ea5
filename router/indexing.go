package router

import (
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// indexing keeps a search index up to date with the catalog. Only the tools that have changed are analysed, once for
// all who wait for them; whoever searches a catalog that is indexed waits for nobody. The vectors of tools follow.
type indexing struct {
	finder *search.Finder
	known  atomic.Pointer[downstream.Catalog] // what the index has

	mu sync.Mutex // one update after the other; guards writes of known
}

// follow returns once the index knows a catalog, or a later one.
func (x *indexing) follow(c *downstream.Catalog) {
	if x.known.Load() == c {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.known.Load()
	if known == c || known != nil && known.Later(c) {
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
