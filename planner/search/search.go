// Package search finds the tools that fit a question among thousands.
//
// An [Index] is an inverted index in memory over the words of tool names, servers, descriptions and
// parameters, ranked by BM25F with stemming and a small thesaurus. A question that asks for several
// things is searched clause by clause as well, so that each thing finds its tool.
//
// An Index is safe for concurrent use. Analysis of new tools happens outside of its lock, so that a
// search waits for an update no longer than inserting the words of one server's tools takes. Results
// are a deterministic function of the indexed tools and the question; ties are broken by tool id.
// Work per search is bounded whatever the question.
package search

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Tool is what is indexed of a tool.
type Tool struct {
	ID          string // unique; what hits name
	Server      string
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage
}

// Index holds the tools of several servers. Use [New].
type Index struct {
	mu        sync.RWMutex
	terms     map[string]*term
	docs      []entry  // slots; free ones have no terms
	free      []uint32 // unused slots
	servers   map[string][]uint32
	live      int
	boards    sync.Pool // of *board
	thesaurus *Thesaurus
}

// Options are the settings of an Index; the zero value is the recommended one.
type Options struct{}

// term is one stem and where it occurs.
type term struct {
	stem     string
	postings []posting
}

type posting struct {
	doc    uint32
	weight float32
}

// entry is one indexed tool.
type entry struct {
	tool  Tool
	text  textKey // of what is embedded of it
	terms []*term
}

// New returns an empty Index.
func New(Options) *Index {
	return &Index{terms: map[string]*term{}, servers: map[string][]uint32{}, thesaurus: NewThesaurus()}
}

// Update replaces the tools of one server; the others are not touched.
func (x *Index) Update(server string, tools []Tool) {
	docs := make([]document, len(tools))
	for i, t := range tools {
		t.Server = server
		docs[i] = analyze(t)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(server)
	slots := make([]uint32, len(docs))
	for i, d := range docs {
		slots[i] = x.insert(d)
	}
	if len(slots) > 0 {
		x.servers[server] = slots
	}
}

// Remove forgets the tools of one server.
func (x *Index) Remove(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(server)
}

// Len returns the number of indexed tools.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.live
}

func (x *Index) insert(d document) uint32 {
	var slot uint32
	if n := len(x.free); n > 0 {
		slot, x.free = x.free[n-1], x.free[:n-1]
	} else {
		slot = uint32(len(x.docs))
		x.docs = append(x.docs, entry{})
	}
	terms := make([]*term, len(d.words))
	for i, w := range d.words {
		t := x.terms[w.stem]
		if t == nil {
			stem := strings.Clone(w.stem)
			t = &term{stem: stem}
			x.terms[stem] = t
		}
		t.postings = append(t.postings, posting{slot, w.weight})
		terms[i] = t
	}
	x.docs[slot] = entry{d.tool, d.text, terms}
	x.live++
	return slot
}

func (x *Index) remove(server string) {
	touched := map[*term]bool{}
	for _, slot := range x.servers[server] {
		for _, t := range x.docs[slot].terms {
			touched[t] = true
		}
		x.docs[slot] = entry{}
		x.free = append(x.free, slot)
		x.live--
	}
	for t := range touched {
		t.postings = slices.DeleteFunc(t.postings, func(p posting) bool { return x.docs[p.doc].terms == nil })
		if len(t.postings) == 0 {
			delete(x.terms, t.stem)
		}
	}
	delete(x.servers, server)
}
