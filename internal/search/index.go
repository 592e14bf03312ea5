package search

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"
)

// Index holds the tools of several servers. Use [New].
type Index struct {
	mu      sync.RWMutex
	servers map[string][]*document
	built   *postings // of all servers; nil after an update
}

// New returns an empty Index.
func New() *Index { return &Index{servers: map[string][]*document{}} }

// stem is an interned stem.
type stem = unique.Handle[string]

// postings is the inverted index of the documents. It never changes, except for the vectors of documents.
type postings struct {
	docs    []*document
	terms   map[stem]*term
	servers map[string]int       // numbers of their tools
	names   map[string][]posting // by the lower-case name or id of tools
}

// term is one stem with its occurrences.
type term struct {
	docs []posting
	own  int // the number of tools with the word outside their server's instructions
}

type posting struct {
	doc   uint32 // index of the document
	score float32
}

// ownerMark separates a server from an owner. It is in no name.
const ownerMark = "\x00"

// Owned returns the name for Update, and in SearchOptions.Allow, of what one owner alone sees of a server.
func Owned(server, owner string) string { return server + ownerMark + owner }

// Owner returns the server and the owner of a name in the index; the owner is empty if everyone sees it.
func Owner(name string) (server, owner string) {
	server, owner, _ = strings.Cut(name, ownerMark)
	return server, owner
}

// Update replaces the tools of one server, or of one owner of a server (see Owned). Unchanged tools are not analysed
// again; changed tools with the same text keep their vectors. Updates of one server must not overlap.
func (x *Index) Update(server string, tools []Tool) {
	x.mu.RLock()
	former := x.servers[server]
	x.mu.RUnlock()
	known := make(map[string]*document, len(former)) // by id
	for _, d := range former {
		known[d.tool.ID] = d
	}
	docs := make([]*document, len(tools))
	for i, t := range tools {
		t.Server = server
		old := known[t.ID]
		if old != nil && old.tool.equal(t) {
			docs[i] = old
			continue
		}
		docs[i] = analyze(t)
		if old != nil && old.text == docs[i].text {
			docs[i].vector.Store(old.vector.Load())
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.servers[server] = docs
	if len(docs) == 0 {
		delete(x.servers, server)
	}
	x.built = nil
}

// equal reports whether the indexed parts of two tools are equal.
func (t *Tool) equal(o Tool) bool {
	return t.ID == o.ID && t.Server == o.Server && t.Instructions == o.Instructions && t.Name == o.Name &&
		t.Title == o.Title && t.Description == o.Description && string(t.InputSchema) == string(o.InputSchema)
}

// current returns the inverted index, which it builds after an update.
func (x *Index) current() *postings {
	x.mu.RLock()
	built := x.built
	x.mu.RUnlock()
	if built != nil {
		return built
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.built == nil {
		x.built = build(x.servers)
	}
	return x.built
}

func build(servers map[string][]*document) *postings {
	p := &postings{terms: map[stem]*term{}, servers: map[string]int{}, names: map[string][]posting{}}
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		p.servers[server] = len(servers[server])
		for _, d := range servers[server] {
			for i, w := range d.words {
				t := p.terms[w.stem]
				if t == nil {
					t = &term{}
					p.terms[w.stem] = t
				}
				t.docs = append(t.docs, posting{uint32(len(p.docs)), float32(saturate(w.weight))})
				if i < d.own {
					t.own++
				}
			}
			name, id := strings.ToLower(d.tool.Name), strings.ToLower(d.tool.ID)
			named := posting{uint32(len(p.docs)), float32(saturate(float32(fieldRules[fieldName].weight)))}
			p.names[name] = append(p.names[name], named)
			if id != name {
				p.names[id] = append(p.names[id], named)
			}
			p.docs = append(p.docs, d)
		}
	}
	return p
}
