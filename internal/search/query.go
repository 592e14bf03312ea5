package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
	"unique"
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
	saturation     = 3.0  // k1 of BM25
	synonymWeight  = 0.5  // weight of a synonym; words of the question have 1
	topicWeight    = 0.5  // weight of a word of tools for the question's words
	verbWeight     = 0.5  // weight of verbs such as "find" and "create"
	hanWeight      = 0.3  // weight of a single character of a pair of Chinese characters
	compoundWeight = 0.5  // weight of two words in one piece
	nameWeight     = 4.0  // weight of the whole name of a tool
	pathWeight     = 1.0  // weight of the words for a path
	nameShare      = 0.7  // factor of the squared fraction of a tool's name found in the question
	textShare      = 3.0  // factor of the fraction of all words of a tool found in the question
	clauseWeight   = 0.15 // weight of the best clause, relative to the whole question
	answeredCost   = 0.2  // discount of a word covered by an earlier hit
	serverShare    = 0.4  // weight of the other tools of a server
	serverShrink   = 0.3  // exponent of the number of tools that divides serverShare

	feedbackTools  = 5   // best tools of the first pass, whose
	feedbackWords  = 20  // best words are added to the question
	feedbackWeight = 0.2 // with this sum of weights, relative to the question's words
)

// Search returns the tools that fit the question, best first. Without a known word there are no hits.
func (x *Index) Search(query string, opts SearchOptions) []Hit {
	limit := opts.limit()
	r := ranking{postings: x.current()}
	r.question = parseQuestion(query, r.known)
	r.list(opts.Literal)
	if !opts.Literal {
		r.fill(feedbackTools+1, opts.Allow)
		r.feedback()
	}
	r.fill(max(2*limit, poolSize), opts.Allow)
	r.explain()
	r.addOwnShares(opts.Literal)
	r.addServerShare()
	return r.choose(limit)
}

// ranking is one search.
type ranking struct {
	*postings
	question
	lists []postingList
	asked map[stem]float64 // words of the question (1) and of the thesaurus (their weight)
	total []float32        // score of each document in the first pass, by
	added int              // the first lists
	pool  []candidate
}

// postingList is one posting list of a search.
type postingList struct {
	docs  []posting
	term  int     // index of the question's term
	gain  float64 // weight of a full match
	exact bool    // the question's own word, not a synonym
}

// candidate is a tool considered as a hit.
type candidate struct {
	doc   uint32 // index of the document
	id    string
	score float64
	parts []float64 // contributions by term of the question
	exact []bool    // by term: matched by the question's own word
}

// list collects the posting lists of the question.
func (r *ranking) list(literal bool) {
	r.asked = map[stem]float64{}
	for i, t := range r.question.terms {
		ceiling := math.Inf(1)
		own := unique.Make(t.stem)
		if found := r.postings.terms[own]; found != nil {
			ceiling = r.idf(found)
			r.lists = append(r.lists, postingList{found.docs, i, t.weight * ceiling, true})
			r.asked[own] = 1
		}
		if found := r.postings.terms[unique.Make(compound+t.stem)]; found != nil {
			r.lists = append(r.lists, postingList{found.docs, i, t.weight * r.rarity(len(found.docs)), true})
		}
		relate := func(stems []string, weight float64) {
			for _, s := range stems {
				other := unique.Make(s)
				if found := r.postings.terms[other]; found != nil {
					gain := weight * t.weight * min(ceiling, r.idf(found))
					r.lists = append(r.lists, postingList{found.docs, i, gain, false})
					r.asked[other] = max(r.asked[other], weight)
				}
			}
		}
		relate(thesaurus().synonyms[t.stem], synonymWeight)
		if !literal {
			relate(thesaurus().topics[t.stem], topicWeight)
		}
	}
	for _, name := range r.question.names {
		if found := r.postings.names[name]; found != nil {
			r.lists = append(r.lists, postingList{found, len(r.question.terms), nameWeight * r.rarity(len(found)), true})
			r.question.terms = append(r.question.terms, queryTerm{word: name, stem: name, weight: nameWeight})
		}
	}
}

// known reports whether a tool has a stem.
func (p *postings) known(stem string) bool { return p.terms[unique.Make(stem)] != nil }

// idf returns the weight of a stem. Instructions are not counted: they would make every word of a large server's
// instructions look common.
func (p *postings) idf(t *term) float64 { return p.rarity(t.own) }

// rarity returns the weight of what n tools have.
func (p *postings) rarity(n int) float64 {
	return math.Log(1 + (float64(len(p.docs)-n)+0.5)/(float64(n)+0.5))
}

// saturate returns the score of a match from the weighted frequency of the stem.
func saturate(w float32) float64 { return float64(w) * (saturation + 1) / (saturation + float64(w)) }

// evidence returns the score that a word of a tool gives to a question with the word.
func (p *postings) evidence(w weighted) float64 { return p.idf(p.terms[w.stem]) * saturate(w.weight) }

// fill selects the n best tools in a first pass over all tools that share a word with the question.
func (r *ranking) fill(n int, allow func(server, name string) bool) {
	if r.total == nil {
		r.total = make([]float32, len(r.docs))
	}
	for _, l := range r.lists[r.added:] {
		for _, p := range l.docs {
			r.total[p.doc] += float32(l.gain) * p.score
		}
	}
	r.added = len(r.lists)
	best := top{n: n}
	for i, score := range r.total {
		if score > 0 && float64(score) >= best.least {
			if t := &r.docs[i].tool; allow == nil || allow(t.Server, t.Name) {
				best.add(candidate{doc: uint32(i), id: t.ID, score: float64(score)})
			}
		}
	}
	r.pool = best.list()
}

// top collects the n best candidates.
type top struct {
	n     int
	found []candidate
	least float64 // candidates with a lower score are not among the best
}

func (t *top) add(c candidate) {
	if t.found = append(t.found, c); len(t.found) >= 4*t.n {
		t.found = t.list()
		t.least = t.found[t.n-1].score
	}
}

// list returns the best candidates, best first.
func (t *top) list() []candidate {
	sort.Slice(t.found, func(i, j int) bool { return before(&t.found[i], &t.found[j]) })
	return t.found[:min(t.n, len(t.found))]
}

// before reports whether a is better than b.
func before(a, b *candidate) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return a.id < b.id
}

// explain computes the contribution of each term to each candidate.
func (r *ranking) explain() {
	sort.Slice(r.pool, func(i, j int) bool { return r.pool[i].doc < r.pool[j].doc })
	n := len(r.question.terms)
	parts, exact := make([]float64, n*len(r.pool)), make([]bool, n*len(r.pool))
	for i := range r.pool {
		r.pool[i].parts, r.pool[i].exact = parts[i*n:(i+1)*n], exact[i*n:(i+1)*n]
	}
	for _, l := range r.lists {
		rest := l.docs
		for _, c := range r.pool {
			at, found := slices.BinarySearchFunc(rest, c.doc, func(p posting, doc uint32) int { return cmp.Compare(p.doc, doc) })
			if rest = rest[at:]; found {
				c.parts[l.term] = max(c.parts[l.term], l.gain*float64(rest[0].score))
				c.exact[l.term] = c.exact[l.term] || l.exact
			}
		}
	}
}

// addOwnShares raises the score of each candidate by how much of its name, and of all its words, occurs in the
// question: a tool that says little else is a better match. A literal search compares names alone: its callers compare
// the other words.
func (r *ranking) addOwnShares(literal bool) {
	for _, c := range r.pool {
		doc := r.docs[c.doc]
		name := r.share(doc.words[:doc.named])
		raise := 1 + nameShare*name*name
		if !literal {
			raise += textShare * r.share(doc.words[:doc.own])
		}
		for i := range c.parts {
			c.parts[i] *= raise
		}
	}
}

// share returns the fraction of the evidence of words that occurs in the question.
func (r *ranking) share(words []weighted) float64 {
	asked, all := 0.0, 0.0
	for _, w := range words {
		weight := r.evidence(w)
		asked += weight * r.asked[w.stem]
		all += weight
	}
	return asked / max(all, 1e-9)
}

// addServerShare adds to each candidate a share of the contributions of the other tools of its server, because the
// tools of one server are related. The share is larger if they are few.
func (r *ranking) addServerShare() {
	best := map[string][]float64{} // contributions, by server
	for _, c := range r.pool {
		server := r.docs[c.doc].tool.Server
		if best[server] == nil {
			best[server] = slices.Clone(c.parts)
		}
		for i, p := range c.parts {
			best[server][i] = max(best[server][i], p)
		}
	}
	for _, c := range r.pool {
		server := r.docs[c.doc].tool.Server
		share := serverShare / math.Pow(float64(r.servers[server]), serverShrink)
		for i, p := range best[server] {
			c.parts[i] += share * (p - c.parts[i])
		}
	}
}

// choose picks the hits one by one. A term counts less if earlier hits have it, so that a question with several
// topics finds a tool for each. Scores can only fall: a candidate whose updated score is still the highest wins
// without updating the others (lazy greedy, Minoux 1978).
func (r *ranking) choose(limit int) (hits []Hit) {
	answered := make([]float64, len(r.question.terms))
	for i := range r.pool {
		r.pool[i].score = r.value(r.pool[i], answered)
	}
	for len(hits) < limit && len(r.pool) > 0 {
		best := 0
		for i := range r.pool {
			if before(&r.pool[i], &r.pool[best]) {
				best = i
			}
		}
		c := r.pool[best]
		if score := r.value(c, answered); score < c.score {
			r.pool[best].score = score
			continue
		}
		r.pool = slices.Delete(r.pool, best, best+1)
		hit := Hit{ID: c.id, Score: c.score, doc: r.docs[c.doc]}
		for i, p := range c.parts {
			t := r.question.terms[i]
			if own := r.postings.terms[unique.Make(t.stem)]; own != nil {
				answered[i] += p / (r.idf(own) * t.weight * (saturation + 1))
			}
			if c.exact[i] && !slices.Contains(hit.Terms, t.word) {
				hit.Terms = append(hit.Terms, t.word)
			}
		}
		hits = append(hits, hit)
	}
	return hits
}

// value returns the gain of a candidate over the earlier hits, for the whole question and its best clause.
func (r *ranking) value(c candidate, answered []float64) float64 {
	var clauses [maxClauses]float64
	total := 0.0
	for i, p := range c.parts {
		if p == 0 {
			continue
		}
		p /= 1 + answeredCost*answered[i]
		total += p
		for set := r.question.terms[i].clauses; set != 0; set &= set - 1 {
			clauses[bits.TrailingZeros32(set)] += p
		}
	}
	return (1-clauseWeight)*total + clauseWeight*slices.Max(clauses[:])
}
