package search

import (
	"cmp"
	"maps"
	"slices"
)

// feedback adds to the question the words of the best tools, so that it also finds their like
// (pseudo relevance feedback: Lavrenko and Croft, "Relevance-Based Language Models", SIGIR 2001).
func (r *ranking) feedback() {
	if len(r.pool) <= feedbackTools {
		return
	}
	common := map[stem]float64{}
	for _, c := range r.pool[:feedbackTools] {
		doc := r.docs[c.doc]
		for _, w := range doc.words[:doc.own] {
			if r.asked[w.stem] < 1 {
				common[w.stem] += c.score * r.evidence(w)
			}
		}
	}
	words := slices.SortedFunc(maps.Keys(common), func(a, b stem) int {
		return cmp.Or(cmp.Compare(common[b], common[a]), cmp.Compare(a.Value(), b.Value()))
	})
	words = words[:min(len(words), feedbackWords)]
	asked, sum := 0.0, 0.0
	for _, t := range r.question.terms {
		asked += t.weight
	}
	for _, w := range words {
		sum += common[w]
	}
	for _, w := range words {
		t := queryTerm{word: w.Value(), stem: w.Value(), weight: feedbackWeight * asked * common[w] / sum}
		found := r.postings.terms[w]
		r.lists = append(r.lists, postingList{found.docs, len(r.question.terms), t.weight * r.idf(found), false})
		r.question.terms = append(r.question.terms, t)
	}
}
