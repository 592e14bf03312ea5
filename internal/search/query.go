package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Limits of one search.
const (
	maxQueryBytes = 16 << 10
	maxQueryTerms = 160
	maxClauses    = 24
	defaultLimit  = 10
	maxLimit      = 200
	poolSize      = 120 // candidates of the first pass
)

// Weights of ranking, tuned with the questions of docs/evaluation.md.
const (
	saturation    = 3.0  // k1 of BM25
	synonymWeight = 0.5  // weight of a thesaurus word; words of the question have 1
	verbWeight    = 0.5  // weight of verbs such as "find" and "create"
	pathWeight    = 1.0  // weight of the words for a path
	nameShare     = 0.7  // factor of the squared fraction of a tool's name found in the question
	clauseWeight  = 0.35 // weight of the best clause, relative to the whole question
	answeredCost  = 0.25 // discount of a word covered by an earlier hit
	serverShare   = 0.3  // weight of the other tools of a server
	serverShrink  = 0.3  // exponent of the number of tools that divides serverShare
)

// SearchOptions narrow a search.
type SearchOptions struct {
	Limit int                            // maximum number of hits, at most 200; 0 means 10
	Allow func(server, name string) bool // which tools may be found; nil means all

	// Literal finds no tool by meaning alone. It is for callers that use hits without a further check.
	Literal bool
}

func (o SearchOptions) limit() int { return min(cmp.Or(max(o.Limit, 0), defaultLimit), maxLimit) }

// Hit is one found tool.
type Hit struct {
	ID    string
	Score float64  // comparable within one search only
	Terms []string // matching words of the question, in order

	vector vector // of the tool's text
}

// Search returns the tools that fit the question, best first. Without a known word there are no hits. Allow is called
// while the index is read-locked and must not use the index.
func (x *Index) Search(query string, opts SearchOptions) []Hit {
	q := parseQuestion(query)
	limit := opts.limit()
	x.mu.RLock()
	defer x.mu.RUnlock()
	b := x.board()
	defer x.boards.Put(b)
	x.list(b, q)
	x.pool(b, max(2*limit, poolSize), opts.Allow)
	b.explain(len(q.terms))
	x.addNameShare(b)
	x.addServerShare(b, len(q.terms))
	return x.choose(b.pool, q, limit)
}

// postingList is one posting list of a search.
type postingList struct {
	postings []posting
	term     int     // index of the question's term
	gain     float64 // weight of a full match
	exact    bool    // the question's own word, not a synonym
}

// list collects the posting lists of a question and the words that may occur in tool names.
func (x *Index) list(b *board, q question) {
	lists := b.lists[:0]
	clear(b.asked)
	for i, t := range q.terms {
		ceiling := math.Inf(1)
		if own := x.terms[t.stem]; own != nil {
			ceiling = x.idf(own.own)
			lists = append(lists, postingList{own.postings, i, t.weight * ceiling, true})
			b.asked[own] = 1
		}
		for _, s := range thesaurus()[t.stem] {
			if other := x.terms[s]; other != nil {
				gain := synonymWeight * t.weight * min(ceiling, x.idf(other.own))
				lists = append(lists, postingList{other.postings, i, gain, false})
				b.asked[other] = max(b.asked[other], synonymWeight)
			}
		}
	}
	b.lists = lists
}

// idf returns the weight of a stem found in df tools. Instructions are not counted: they would make every word of a
// large server's instructions look common.
func (x *Index) idf(df int) float64 {
	return math.Log(1 + (float64(x.live-df)+0.5)/(float64(df)+0.5))
}

// saturate returns the score of a match from the weighted frequency of the stem.
func saturate(w float32) float64 { return float64(w) * (saturation + 1) / (saturation + float64(w)) }

// board is the reusable memory of one search.
type board struct {
	total []float32 // by slot
	lists []postingList
	asked map[*term]float64 // question words (1) and thesaurus words (their weight)
	pool  []candidate
	parts []float64 // memory for candidate.parts
	exact []bool

	groups map[string]int // index of a server's part of best
	best   []float64
}

func (x *Index) board() *board {
	b, _ := x.boards.Get().(*board)
	if b == nil {
		b = &board{groups: map[string]int{}, asked: map[*term]float64{}}
	}
	if cap(b.total) < len(x.docs) {
		b.total = make([]float32, len(x.docs), len(x.docs)+len(x.docs)/8)
	} else {
		b.total = b.total[:len(x.docs)]
		clear(b.total)
	}
	return b
}

// candidate is a tool considered as a hit.
type candidate struct {
	slot  uint32
	score float64
	parts []float64 // contributions by term of the question
	exact []bool    // by term: matched by the question's own word
}

// pool selects the n best tools in a first pass over all tools that share a word with the question.
func (x *Index) pool(b *board, n int, allow func(server, name string) bool) {
	total := b.total
	for _, l := range b.lists {
		for _, p := range l.postings {
			total[p.doc] += float32(l.gain * saturate(p.weight))
		}
	}
	pool := b.pool[:0] // a heap with the worst on top
	for slot, score := range total {
		if score <= 0 || len(pool) == n && float64(score) < pool[0].score {
			continue
		}
		c := candidate{slot: uint32(slot), score: float64(score)}
		if len(pool) == n && x.order(c, pool[0]) >= 0 {
			continue
		}
		doc := &x.docs[slot]
		if doc.terms == nil || allow != nil && !allow(doc.tool.Server, doc.tool.Name) {
			continue
		}
		pool = x.offer(pool, c, n)
	}
	b.pool = pool
}

// offer adds a candidate to a heap of at most n. In a full heap it replaces the worst if it is better.
func (x *Index) offer(heap []candidate, c candidate, n int) []candidate {
	if len(heap) == n {
		heap[0] = c
		siftDown(heap, 0, x.after)
		return heap
	}
	heap = append(heap, c)
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !x.after(heap[i], heap[parent]) {
			break
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
	return heap
}

// siftDown restores the heap order below i. above defines the order.
func siftDown(heap []candidate, i int, above func(a, b candidate) bool) {
	for {
		top := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && above(heap[child], heap[top]) {
				top = child
			}
		}
		if top == i {
			return
		}
		heap[i], heap[top] = heap[top], heap[i]
		i = top
	}
}

func (x *Index) before(a, b candidate) bool { return x.order(a, b) < 0 }

func (x *Index) after(a, b candidate) bool { return x.order(a, b) > 0 }

func (x *Index) order(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(x.docs[a.slot].tool.ID, x.docs[b.slot].tool.ID))
}

// explain computes the contribution of each of n terms to each candidate and sorts the candidates by slot.
func (b *board) explain(n int) {
	pool := b.pool
	slices.SortFunc(pool, func(a, b candidate) int { return cmp.Compare(a.slot, b.slot) })
	b.parts = slices.Grow(b.parts[:0], n*len(pool))[:n*len(pool)]
	b.exact = slices.Grow(b.exact[:0], n*len(pool))[:n*len(pool)]
	clear(b.parts)
	clear(b.exact)
	for i := range pool {
		pool[i].parts = b.parts[i*n : (i+1)*n]
		pool[i].exact = b.exact[i*n : (i+1)*n]
	}
	for _, l := range b.lists {
		rest := l.postings
		for i := range pool {
			c := &pool[i]
			at, found := slices.BinarySearchFunc(rest, c.slot, func(p posting, slot uint32) int {
				return cmp.Compare(p.doc, slot)
			})
			if rest = rest[at:]; !found {
				continue
			}
			c.parts[l.term] = max(c.parts[l.term], l.gain*saturate(rest[0].weight))
			c.exact[l.term] = c.exact[l.term] || l.exact
		}
	}
}

// addNameShare raises the score of each candidate by how much of its name occurs in the question: a name with few
// other words is a better match.
func (x *Index) addNameShare(b *board) {
	for _, c := range b.pool {
		doc := &x.docs[c.slot]
		asked, all := 0.0, 0.0
		for _, t := range doc.terms[:doc.named] {
			weight := x.idf(t.own)
			asked += weight * b.asked[t]
			all += weight
		}
		if asked == 0 {
			continue
		}
		raise := 1 + nameShare*(asked/all)*(asked/all)
		for i := range c.parts {
			c.parts[i] *= raise
		}
	}
}

// addServerShare adds to each candidate a share of the contributions of the other tools of its server, because the
// tools of one server are related. The share is larger if they are few.
func (x *Index) addServerShare(b *board, n int) {
	clear(b.groups)
	b.best = b.best[:0] // best contributions per server
	for _, c := range b.pool {
		server := x.docs[c.slot].tool.Server
		at, ok := b.groups[server]
		if !ok {
			at = len(b.best)
			b.groups[server] = at
			b.best = append(b.best, c.parts...)
			continue
		}
		for i, p := range c.parts {
			b.best[at+i] = max(b.best[at+i], p)
		}
	}
	for _, c := range b.pool {
		server := x.docs[c.slot].tool.Server
		share := serverShare / math.Pow(float64(len(x.servers[server])), serverShrink)
		for i, p := range b.best[b.groups[server]:][:n] {
			c.parts[i] += share * (p - c.parts[i])
		}
	}
}

// choose picks the hits one by one. A term counts less if earlier hits have it, so that a question with several
// topics finds a tool for each. Scores can only fall: a candidate whose updated score is still the highest wins
// without updating the others (lazy greedy, Minoux 1978).
func (x *Index) choose(pool []candidate, q question, limit int) []Hit {
	answered := make([]float64, len(q.terms))
	for i := range pool {
		pool[i].score = pool[i].value(q, answered)
	}
	for i := len(pool)/2 - 1; i >= 0; i-- {
		siftDown(pool, i, x.before)
	}
	var hits []Hit
	for len(hits) < limit && len(pool) > 0 {
		c := pool[0]
		if score := c.value(q, answered); score < c.score {
			pool[0].score = score
			siftDown(pool, 0, x.before)
			continue
		}
		last := len(pool) - 1
		pool[0], pool = pool[last], pool[:last]
		siftDown(pool, 0, x.before)
		doc := &x.docs[c.slot]
		hit := Hit{ID: doc.tool.ID, Score: c.score, vector: doc.vector}
		for i, p := range c.parts {
			t := q.terms[i]
			if own := x.terms[t.stem]; own != nil {
				answered[i] += p / (x.idf(own.own) * t.weight * (saturation + 1))
			}
			if c.exact[i] {
				hit.Terms = append(hit.Terms, t.word)
			}
		}
		hits = append(hits, hit)
	}
	return hits
}

// value returns the gain of a candidate over the earlier hits, for the whole question and its best clause.
func (c candidate) value(q question, answered []float64) float64 {
	var clauses [maxClauses]float64
	total := 0.0
	for i, p := range c.parts {
		if p == 0 {
			continue
		}
		p /= 1 + answeredCost*answered[i]
		total += p
		for set := q.terms[i].clauses; set != 0; set &= set - 1 {
			clauses[bits.TrailingZeros32(set)] += p
		}
	}
	return (1-clauseWeight)*total + clauseWeight*slices.Max(clauses[:])
}
