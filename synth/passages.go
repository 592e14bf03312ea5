package synth

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// passage is a piece of a result: a few lines, list elements or sentences.
type passage struct {
	index      int    // within its result
	begin, end int    // bytes
	terms      uint64 // of the question
}

// Sizes of passages in bytes. A passage ends after a line or a JSON value from minPassage on, after a word from
// longPassage on, and anywhere at maxPassage.
const (
	minPassage  = 200
	longPassage = 800
	maxPassage  = 1600
)

// split returns the passages of a text with their terms. Each ends after a line, a JSON value or a word if possible.
// The first has at most about head bytes.
func split(text string, head int, t *terms) []passage {
	var all []passage
	p := passage{}
	limit := head
	for i := 0; i < len(text); {
		strong, weak := false, true
		switch c := text[i]; {
		case letters[c] != 0:
			end, set := t.word(text, i)
			p.terms |= set
			i, weak = end, false
		case c == '\\' && i+1 < len(text): // an escape in JSON
			strong = text[i+1] == 'n'
			i += 2
		default:
			strong = c == '\n' || c == ',' && i > 0 && (text[i-1] == '}' || text[i-1] == ']')
			i++
		}
		size := i - p.begin
		if size >= limit || weak && size >= longPassage || strong && size >= minPassage || i == len(text) {
			p.end = i
			all = append(all, p)
			p = passage{index: p.index + 1, begin: i}
			limit = maxPassage
		}
	}
	return all
}

// candidate is a passage of one of several results.
type candidate struct {
	result, index int
	score         float64
}

// choose returns the passages of each result to show, in order and at most about room bytes in total: the first of each
// result, then the best matches of the question, then the passages after the beginning of each.
func choose(results [][]passage, room int) [][]passage {
	chosen := make([]map[int]bool, len(results))
	longest := 0
	take := func(result, index int) {
		p := results[result][index]
		if size := p.end - p.begin; size <= room && !chosen[result][index] {
			chosen[result][index] = true
			room -= size
		}
	}
	for i, passages := range results {
		chosen[i] = map[int]bool{}
		longest = max(longest, len(passages))
		if len(passages) > 0 {
			take(i, 0)
		}
	}
	for _, c := range best(results, room/minPassage+len(results)) {
		take(c.result, c.index)
	}
	for index := 1; index < longest && room >= minPassage; index++ {
		for i, passages := range results {
			if index < len(passages) {
				take(i, index)
			}
		}
	}
	shown := make([][]passage, len(results))
	for i := range results {
		for index := range chosen[i] {
			shown[i] = append(shown[i], results[i][index])
		}
		slices.SortFunc(shown[i], func(a, b passage) int { return cmp.Compare(a.begin, b.begin) })
	}
	return shown
}

// best returns about n passages that match the question, best first: those with rare terms. Among equals, earlier
// passages come first, from all results in turn.
func best(results [][]passage, n int) []candidate {
	weights := rarity(results)
	order := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.index, b.index), cmp.Compare(a.result, b.result))
	}
	var found []candidate
	least := 0.0
	for i, passages := range results {
		for _, p := range passages {
			score := 0.0
			for set := p.terms; set != 0; set &= set - 1 {
				score += weights[bits.TrailingZeros64(set)]
			}
			if score <= 0 || score < least {
				continue
			}
			if found = append(found, candidate{i, p.index, score}); len(found) >= 4*n {
				slices.SortFunc(found, order)
				found = found[:n]
				least = found[n-1].score
			}
		}
	}
	slices.SortFunc(found, order)
	return found
}

// rarity weighs each term by its inverse frequency in the passages, as BM25 does.
func rarity(results [][]passage) (weights [maxTerms]float64) {
	var have [maxTerms]int
	total := 0
	for _, passages := range results {
		total += len(passages)
		for _, p := range passages {
			for set := p.terms; set != 0; set &= set - 1 {
				have[bits.TrailingZeros64(set)]++
			}
		}
	}
	for i, n := range have {
		weights[i] = math.Log(1 + (float64(total-n)+0.5)/(float64(n)+0.5))
	}
	return weights
}
