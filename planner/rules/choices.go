package rules

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// enum picks the value of an enumeration that the question names, by stems, the longest match first.
func (f *filler) enum(q param) (candidate, bool) {
	if q.flagEnum() {
		c, ok := f.boolean(q)
		if ok {
			c.value = q.spellFlag(c.value == true)
		}
		return c, ok
	}
	q.enum = f.sayable(q)
	best := candidate{}
	found := false
	for _, e := range q.enum {
		s, ok := e.(string)
		if n, err := strconv.ParseFloat(s, 64); ok && err == nil {
			if c, ok := f.plainEnum(q, n); ok && (!found || c.score > best.score) {
				c.value = s
				best, found = c, true
			}
			continue
		}
		if !ok {
			if c, ok := f.plainEnum(q, e); ok && (!found || c.score > best.score) {
				best, found = c, true
			}
			continue
		}
		c, ok := f.naming(s)
		if ok && f.explainsAll(search.Words(s)) {
			c.score -= 0.6 // it may only say which tool or parameter is meant
		}
		if ok && (!found || c.score > best.score) {
			c.value = s
			best, found = c, true
		}
	}
	if !found && numeric(q.kind) {
		best, found = f.codedEnum(q)
	}
	if c, ok := f.language(q); ok && !found {
		best, found = c, true
	}
	if found {
		best.score += f.cue(q, best.span) * 0.5
		return best, true
	}
	if c, ok := f.related(q); ok {
		return c, true
	}
	return f.partly(q)
}

// explainsAll reports whether the tool and its parameters are named by all of the words.
func (f *filler) explainsAll(words []string) bool {
	for _, w := range words {
		if s := search.Stem(w); !f.frame.words[s] && !f.frame.labelStems[s] {
			return false
		}
	}
	return true
}

// partly picks the value of which the question says the most words, if at least half and more than of
// any other.
func (f *filler) partly(q param) (candidate, bool) {
	best, share, tie := candidate{}, 0.0, false
	for _, e := range q.enum {
		s, _ := e.(string)
		words := search.Words(s)
		if len(words) < 2 || len(words) > 6 {
			continue
		}
		hits, at := 0, -1
		for _, w := range words {
			for i, t := range f.r.tokens {
				if !t.stop() && slices.Contains(t.stems, search.Stem(w)) {
					hits, at = hits+1, i
					break
				}
			}
		}
		got := float64(hits) / float64(len(words))
		switch {
		case got < 0.5 || got < share:
		case got == share:
			tie = true
		default:
			best, share, tie = candidate{s, 1, mention{kind: kindPhrase, start: at, end: at + 1, text: f.r.tokens[at].text}}, got, false
		}
	}
	return best, share > 0 && !tie
}

// related picks the value that the question names by another word for it, if there is one only.
func (f *filler) related(q param) (candidate, bool) {
	best, n := candidate{}, 0
	for _, e := range q.enum {
		s, ok := e.(string)
		if !ok {
			continue
		}
		words := search.Words(s)
		if len(words) != 1 {
			continue
		}
		stem := search.Stem(words[0])
		for i, t := range f.r.tokens {
			if t.stop() || !slices.ContainsFunc(t.stems, func(w string) bool { return w == stem || f.p.thesaurus.Related(w, stem) || abbreviates(stem, w) }) {
				continue
			}
			best = candidate{s, 1.2, mention{kind: kindPhrase, start: i, end: i + 1, text: t.text}}
			n++
			break
		}
	}
	return best, n == 1
}

// naming finds where the question says s, whole or by its stems.
func (f *filler) naming(s string) (candidate, bool) {
	words := search.Words(s)
	if len(words) == 0 || len(words) > 8 {
		return candidate{}, false
	}
	for i := range words {
		words[i] = search.Stem(words[i])
	}
	for i := range f.r.tokens {
		end := f.r.says(i, words)
		if end > 0 {
			return candidate{score: 2 + float64(len(words)), span: mention{kind: kindPhrase, start: i, end: end, text: f.r.between(i, end)}}, true
		}
	}
	return candidate{}, false
}

// says reports whether words with these stems stand at token i, and returns the token after them.
func (r reading) says(i int, stems []string) int {
	j := 0
	for ; i < len(r.tokens) && j < len(stems); i++ {
		t := r.tokens[i]
		if t.punct() {
			if j == 0 {
				return 0
			}
			continue
		}
		for k, s := range t.stems {
			if k == 2 && strings.Contains(t.text, "-") {
				break
			}
			if j == len(stems) || s != stems[j] {
				return 0
			}
			j++
		}
	}
	if j < len(stems) {
		return 0
	}
	return i
}

// plainEnum matches numbers and booleans of an enumeration.
func (f *filler) plainEnum(q param, e any) (candidate, bool) {
	v, ok := e.(float64)
	if !ok {
		return candidate{}, false
	}
	for _, m := range f.r.mentions {
		if m.kind == kindNumber && m.number.value == v {
			_, unit := q.inUnit(v, m.number.unit)
			return candidate{value: numberValue(q, v), score: 0.5 + f.cue(q, m) + unit, span: m}, true
		}
	}
	return candidate{}, false
}

// chosen returns all values of an array's enumeration that the question names.
func (f *filler) chosen(q param) (candidate, bool) {
	enum := f.sayable(*q.items)
	if c, ok := f.chosenBy(enum, f.naming); ok {
		return c, true
	}
	c, ok := f.chosenBy(enum, func(s string) (candidate, bool) {
		one := *q.items
		one.enum = []any{s}
		return f.partly(one)
	})
	return c, ok && 2*len(c.value.([]any)) <= len(enum) // more only share a word with each other
}

// chosenBy returns the values that a way of finding them finds.
func (f *filler) chosenBy(enum []any, find func(string) (candidate, bool)) (candidate, bool) {
	var values []any
	out := candidate{}
	for _, e := range enum {
		s, ok := e.(string)
		if !ok {
			continue
		}
		if c, ok := find(s); ok {
			values = append(values, s)
			out.score = max(out.score, c.score)
			out.span = c.span
		}
	}
	out.value = values
	return out, len(values) > 0
}
