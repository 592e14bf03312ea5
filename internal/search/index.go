package search

import (
	"slices"
	"strings"
	"sync"
)

// Index holds the tools of several servers. Use [New].
type Index struct {
	updating sync.Mutex // serializes updates; searches continue

	mu      sync.RWMutex // guards the fields below; write-locked only while words are inserted
	terms   map[string]*term
	docs    []entry // slots; those of removed tools have no terms
	servers map[string][]uint32
	live    int
	vectors vectors
	boards  sync.Pool // of *board
}

// term is one stem with its occurrences.
type term struct {
	stem     string
	postings []posting // by slot, including removed tools
	live     int       // number of postings of tools not removed
	own      int       // of these, tools with the word outside their server's instructions
}

type posting struct {
	doc    uint32
	weight float32
}

// entry is one indexed tool.
type entry struct {
	tool  Tool
	text  textKey // identifies its text for embeddings
	terms []*term
	named int // number of leading terms in the name
	own   int // number of leading terms not only in the server's instructions

	vector vector // of the text; zero if unknown
}

// New returns an empty Index.
func New() *Index {
	return &Index{terms: map[string]*term{}, servers: map[string][]uint32{}, vectors: vectors{room: maxVectorBytes}}
}

// minDead is the minimum number of removed tools before an index is compacted.
const minDead = 1000

// Update replaces the tools of one server. Unchanged tools stay in the index and are not analysed again.
func (x *Index) Update(server string, tools []Tool) {
	x.updating.Lock()
	defer x.updating.Unlock()
	slots := make([]uint32, len(tools))
	former := x.servers[server]
	known := make(map[string]uint32, len(former)) // by id
	for _, slot := range former {
		known[x.docs[slot].tool.ID] = slot
	}
	kept := make(map[uint32]bool, len(former))
	docs := make(map[int]document)
	for i, t := range tools {
		t.Server = server
		if slot, ok := known[t.ID]; ok && !kept[slot] && x.docs[slot].tool.equal(t) {
			slots[i], kept[slot] = slot, true
			continue
		}
		docs[i] = analyze(t)
	}
	x.mu.Lock()
	same := map[textKey]vector{} // vectors of changed tools with unchanged text
	for _, slot := range former {
		if !kept[slot] {
			same[x.docs[slot].text] = x.docs[slot].vector
			x.remove(slot)
		}
	}
	for i := range tools {
		if d, ok := docs[i]; ok {
			slots[i] = x.insert(d)
			x.vectors.set(&x.docs[slots[i]], same[d.text])
		}
	}
	x.servers[server] = slots
	if len(slots) == 0 {
		delete(x.servers, server)
	}
	x.mu.Unlock()
	if dead := len(x.docs) - x.live; dead > max(minDead, x.live/4) {
		x.compact()
	}
}

// equal reports whether the indexed parts of two tools are equal.
func (t *Tool) equal(o Tool) bool {
	return t.ID == o.ID && t.Server == o.Server && t.Instructions == o.Instructions && t.Name == o.Name &&
		t.Title == o.Title && t.Description == o.Description && string(t.InputSchema) == string(o.InputSchema)
}

// Len returns the number of indexed tools.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.live
}

// insert assigns the next slot to a document, which keeps postings in order. The caller holds x.mu.
func (x *Index) insert(d document) uint32 {
	slot := uint32(len(x.docs))
	terms := make([]*term, len(d.words))
	for i, w := range d.words {
		t := x.terms[w.stem]
		if t == nil {
			stem := strings.Clone(w.stem)
			t = &term{stem: stem}
			x.terms[stem] = t
		}
		t.postings = append(t.postings, posting{slot, w.weight})
		t.live++
		if i < d.own {
			t.own++
		}
		terms[i] = t
	}
	x.docs = append(x.docs, entry{tool: d.tool, text: d.text, terms: terms, named: d.named, own: d.own})
	x.live++
	return slot
}

// remove removes a document. Its postings remain, but searches ignore them. The caller holds x.mu.
func (x *Index) remove(slot uint32) {
	for i, t := range x.docs[slot].terms {
		if i < x.docs[slot].own {
			t.own--
		}
		if t.live--; t.live == 0 {
			delete(x.terms, t.stem)
		}
	}
	x.vectors.set(&x.docs[slot], vector{})
	x.docs[slot] = entry{}
	x.live--
}

// compact rebuilds the index without removed tools; meanwhile searches use the old one. The caller holds x.updating.
func (x *Index) compact() {
	terms := make(map[string]*term, len(x.terms))
	docs := make([]entry, 0, x.live)
	moved := make([]uint32, len(x.docs))
	renewed := make(map[*term]*term, len(x.terms))
	for stem, t := range x.terms {
		n := &term{stem: stem, postings: make([]posting, 0, t.live), live: t.live, own: t.own}
		terms[stem], renewed[t] = n, n
	}
	for slot, e := range x.docs {
		if e.terms == nil {
			continue
		}
		moved[slot] = uint32(len(docs))
		own := make([]*term, len(e.terms))
		for i, t := range e.terms {
			own[i] = renewed[t]
		}
		e.terms = own
		docs = append(docs, e)
	}
	for t, n := range renewed {
		for _, p := range t.postings {
			if x.docs[p.doc].terms != nil {
				n.postings = append(n.postings, posting{moved[p.doc], p.weight})
			}
		}
	}
	servers := make(map[string][]uint32, len(x.servers))
	for server, slots := range x.servers {
		slots = slices.Clone(slots)
		for i := range slots {
			slots[i] = moved[slots[i]]
		}
		servers[server] = slots
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.terms, x.docs, x.servers = terms, docs, servers
	x.vectors.next = 0
}
