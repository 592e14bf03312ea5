package synth

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the results in the prompt, in bytes.
const (
	maxResults = 32 << 10 // of all together, and so of a single one
	maxHead    = 1 << 10  // of the beginning of one that is cut; less if there are many
	maxLooked  = 1 << 20  // of all together that are searched for passages
)

// excerpt is what the model reads of a result.
type excerpt struct {
	text      string   // the pieces, with … for omissions
	pieces    []string // verbatim, in order
	unescaped []string // the pieces without the escapes of JSON
	results   string   // of a loop, whose pieces also have its calls; otherwise empty
}

// has reports whether a piece contains a quote of the result, with or without the escapes of JSON.
func (e *excerpt) has(quote string) bool {
	if e.unescaped == nil {
		for _, piece := range e.pieces {
			e.unescaped = append(e.unescaped, llm.Unescaped(piece))
		}
	}
	contains := func(piece string) bool { return strings.Contains(piece, quote) }
	if e.results != "" && !contains(e.results) && !contains(llm.Unescaped(e.results)) {
		return false
	}
	return slices.ContainsFunc(e.pieces, contains) || slices.ContainsFunc(e.unescaped, contains)
}

// excerptsOf returns the excerpt of each result for the model: the whole result if there is room, otherwise the
// passages that match the question. Encoded data and secrets are left out, too. It takes time linear in the searched
// bytes.
func excerptsOf(question string, outcomes []plan.Outcome, w writing) []*excerpt {
	sizes := make([]int, len(outcomes))
	for i, o := range outcomes {
		sizes[i] = len(o.Value)
	}
	look := share(sizes, maxLooked)
	out, texts := make([]*excerpt, len(outcomes)), make([]string, len(outcomes))
	for i, o := range outcomes {
		out[i] = &excerpt{}
		if len(o.Elements) > 0 {
			texts[i], out[i].results = w.calls(o, look)
		} else {
			texts[i] = llm.Layout(o.Value, look, w.mask)
		}
		sizes[i] = len(texts[i])
	}
	room := share(sizes, maxResults)
	var long []int
	left := maxResults
	for i, text := range texts {
		if len(text) <= room && len(outcomes[i].Value) <= look {
			left -= len(text)
			out[i].text, out[i].pieces = text, []string{text}
		} else {
			long = append(long, i)
		}
	}
	if len(long) == 0 {
		return out
	}
	t := termsOf(question)
	var passages []*passage
	for i, l := range long {
		passages = t.split(passages, texts[l], i, min(maxHead, left/(2*len(long))))
	}
	for i, chosen := range choose(passages, len(long), left) {
		l := long[i]
		total := len(texts[l])
		if size := len(outcomes[l].Value); size > look {
			total = max(total+1, size)
		}
		out[l].join(texts[l], chosen, total)
	}
	return out
}

// join joins passages of a text, and marks omissions. total is the size of the result.
func (e *excerpt) join(text string, passages []*passage, total int) {
	var out strings.Builder
	end := 0
	gap := func() {
		out.WriteString("…")
		if strings.HasSuffix(text[:end], "\n") {
			out.WriteByte('\n')
		}
	}
	for _, p := range passages {
		piece := text[p.begin:p.end]
		switch {
		case p.begin > end:
			gap()
			e.pieces = append(e.pieces, piece)
		case len(e.pieces) == 0:
			e.pieces = append(e.pieces, piece)
		default:
			e.pieces[len(e.pieces)-1] += piece
		}
		out.WriteString(piece)
		end = p.end
	}
	if end < len(text) || len(text) < total {
		gap()
	}
	e.text = fmt.Sprintf("%s [cut: %d of %d bytes shown]", out.String(), len(strings.Join(e.pieces, "")), total)
}

// share returns the largest size per value at which all values fit into room. Small values leave their rest to others.
func share(sizes []int, room int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	left := room
	for i, size := range sorted {
		if each := left / (len(sorted) - i); size > each {
			return each
		}
		left -= size
	}
	return room
}

// passage is a piece of a result: a few lines, list elements or sentences.
type passage struct {
	result     int    // that has it
	index      int    // within the result
	begin, end int    // bytes
	terms      uint64 // of the question
	score      float64
}

// Sizes of passages in bytes. A passage ends after a line or a JSON value from minPassage on, after a word from
// longPassage on, and anywhere at maxPassage.
const (
	minPassage  = 200
	longPassage = 800
	maxPassage  = 1600
)

// terms are the search terms of a question, at most 64, each with its bit: the first letters of each word, which are
// stable across the endings of most languages, and whole numbers.
type terms map[string]uint64

const stemLength = 5 // characters

func termsOf(question string) terms {
	t := terms{}
	for _, word := range texts.Words(question) {
		if stem := stemOf(word); stem != "" && t[stem] == 0 && len(t) < 64 {
			t[stem] = 1 << len(t)
		}
	}
	return t
}

// stemOf returns the term of a word, "" for a single letter.
func stemOf(word string) string {
	if word[0] >= '0' && word[0] <= '9' {
		return word
	}
	n := 0
	for i := range word {
		if n == stemLength {
			return word[:i]
		}
		n++
	}
	if n == 1 {
		return ""
	}
	return word
}

// split appends the passages of a text. Each ends after a line, a JSON value or a word if possible. The first has at
// most head bytes.
func (t terms) split(all []*passage, text string, result, head int) []*passage {
	limit, begin := head, 0
	for index := 0; begin < len(text); index++ {
		p := &passage{result: result, index: index, begin: begin, end: begin + passageEnd(text[begin:], limit)}
		for _, word := range texts.Words(llm.Unescaped(text[p.begin:p.end])) {
			p.terms |= t[stemOf(word)]
		}
		all = append(all, p)
		begin, limit = p.end, maxPassage
	}
	return all
}

// passageEnd returns the length of the passage at the beginning of a text.
func passageEnd(text string, limit int) int {
	text = texts.Prefix(text, max(limit, 4))
	for i := minPassage; i < min(len(text), longPassage); i++ {
		switch {
		case text[i-1] == '\n', strings.HasPrefix(text[i-2:], `\n`), text[i-1] == ',' && (text[i-2] == '}' || text[i-2] == ']'):
			return i
		}
	}
	for i := longPassage; i < len(text); i++ {
		if strings.IndexByte(" \n\t,.;:", text[i-1]) >= 0 {
			return i
		}
	}
	return len(text)
}

// choose returns the passages of each of n results to show, in order and at most about room bytes in total: the first
// of each result, then the best matches of the question, those with rare terms. Among equals, earlier passages come
// first, from all results in turn.
func choose(passages []*passage, n, room int) [][]*passage {
	weights := rarity(passages)
	for _, p := range passages {
		for set := p.terms; set != 0; set &= set - 1 {
			p.score += weights[bits.TrailingZeros64(set)]
		}
		if p.index == 0 {
			p.score = math.Inf(1)
		}
	}
	slices.SortFunc(passages, func(a, b *passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.index, b.index), cmp.Compare(a.result, b.result))
	})
	chosen := make([][]*passage, n)
	for _, p := range passages {
		if size := p.end - p.begin; size <= room {
			room -= size
			chosen[p.result] = append(chosen[p.result], p)
		}
	}
	for _, list := range chosen {
		slices.SortFunc(list, func(a, b *passage) int { return cmp.Compare(a.index, b.index) })
	}
	return chosen
}

// rarity weighs each term by its inverse frequency in the passages, as BM25 does.
func rarity(passages []*passage) (weights [64]float64) {
	var have [64]int
	for _, p := range passages {
		for set := p.terms; set != 0; set &= set - 1 {
			have[bits.TrailingZeros64(set)]++
		}
	}
	for i, n := range have {
		weights[i] = math.Log(1 + (float64(len(passages)-n)+0.5)/(float64(n)+0.5))
	}
	return weights
}
