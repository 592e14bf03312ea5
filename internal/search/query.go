package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Bounds on one search.
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
	synonymWeight = 0.5  // of a thesaurus word, against 1 for the question's own
	expandedTerms = 8    // words of a question up to which those that WordNet relates count in full
	leastRelated  = 0.05 // weight of a word that WordNet relates
	verbWeight    = 0.5  // of verbs such as "find" and "create"
	pathWeight    = 1.0  // of the words for a path
	nameShare     = 0.7  // of the square of the share of a name that the question has
	clauseWeight  = 0.35 // of the best clause, against the whole question
	answeredCost  = 0.25 // discount of a word that an earlier hit has
	serverShare   = 0.3  // share of the other tools of a server
	serverShrink  = 0.3  // exponent of the number of tools that divides this share
)

// SearchOptions narrow a search.
type SearchOptions struct {
	Limit int                            // most hits returned, at most 200; 0 means 10
	Allow func(server, name string) bool // which tools may be found; nil means all

	// Literal leaves out words that WordNet alone relates to those of the question. Callers that act on what is found
	// without looking at it set it.
	Literal bool
}

func (o SearchOptions) limit() int { return min(cmp.Or(max(o.Limit, 0), defaultLimit), maxLimit) }

// Hit is one found tool.
type Hit struct {
	ID    string
	Score float64  // comparable within one search only
	Terms []string // the words of the question that were found, in their order

	vector vector // of the text of the tool
}

// Search returns the tools that fit the question best, best first. Without a known word there is no hit. Allow is
// called while the index is locked for reading and must not use it.
func (x *Index) Search(query string, opts SearchOptions) []Hit {
	q := parseQuestion(query)
	limit := opts.limit()
	x.mu.RLock()
	defer x.mu.RUnlock()
	b := x.board()
	defer x.boards.Put(b)
	x.list(b, q, opts.Literal)
	x.pool(b, max(2*limit, poolSize), opts.Allow)
	b.explain(len(q.terms))
	x.addNameShare(b)
	x.addServerShare(b, len(q.terms))
	return x.choose(b.pool, q, limit)
}

// postingList is one posting list of a question.
type postingList struct {
	postings []posting
	term     int     // of the question
	gain     float64 // weight of a full match
	exact    bool    // the word of the question, not a synonym
}

// list finds the posting lists of a question, and the words that may be in the names of tools.
func (x *Index) list(b *board, q question, literal bool) {
	lists := b.lists[:0]
	clear(b.asked)
	share := min(1, expandedTerms/float64(len(q.terms)))
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
		if literal || RequestVerb(t.word) {
			continue
		}
		for s, weight := range wordnetRelated(t.stem) {
			if weight *= share; weight < leastRelated {
				break
			}
			if other := x.terms[s]; other != nil {
				gain := weight * t.weight * min(ceiling, x.idf(other.own))
				lists = append(lists, postingList{other.postings, i, gain, false})
			}
		}
	}
	b.lists = lists
}

// idf is the weight of a stem that df of the indexed tools have. Instructions do not count: a word in those of a large
// server is no commoner for it.
func (x *Index) idf(df int) float64 {
	return math.Log(1 + (float64(x.live-df)+0.5)/(float64(df)+0.5))
}

// saturate returns the score of a match for the weighted frequency of the stem.
func saturate(w float32) float64 { return float64(w) * (saturation + 1) / (saturation + float64(w)) }

// board is the memory of one search. It is reused.
type board struct {
	total []float32 // by slot
	lists []postingList
	asked map[*term]float64 // words of the question, 1, and of the thesaurus
	pool  []candidate
	parts []float64 // of all candidates
	exact []bool

	groups map[string]int // start of a server in best
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

// candidate is a tool that may be found.
type candidate struct {
	slot  uint32
	score float64
	parts []float64 // by term of the question
	exact []bool    // by term: found by the question's own word
}

// pool finds the n best tools in a first pass over all that share a word with the question.
func (x *Index) pool(b *board, n int, allow func(server, name string) bool) {
	total := b.total
	for _, l := range b.lists {
		for _, p := range l.postings {
			total[p.doc] += float32(l.gain * saturate(p.weight))
		}
	}
	pool := b.pool[:0] // a heap, the worst on top
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

// offer puts a candidate into a heap of the best n, in place of the worst if there are so many.
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

// siftDown puts the candidate at i of a heap in its place. The heap has on top what is above all others.
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

// explain sets the contribution of each of n terms to each candidate, and sorts the candidates by slot.
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

// addNameShare raises each candidate by how much of its name the question has: it is likelier to be meant the less its
// name says beyond that.
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

// addServerShare raises each candidate by a share of the contributions of other tools of its server: the tools of one
// server belong together. The share is larger if they are few.
func (x *Index) addServerShare(b *board, n int) {
	clear(b.groups)
	b.best = b.best[:0] // the best contributions of each server
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

// choose picks the hits one by one. A term counts less if earlier hits have it, so that a question for several things
// finds a tool for each. Scores only fall meanwhile: one that is brought up to date and is still the highest wins,
// whatever the others have lost (lazy greedy, Minoux 1978).
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

// value returns what a candidate adds to the earlier hits, for the whole question and for its best clause.
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
