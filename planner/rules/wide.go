package rules

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// wideEnum is how many values an enumeration may have for all of them to be weighed. Of a wider one, those count that
// have most words, or their number, in common with the question.
const wideEnum = 300

// wideIndex finds the values of a wide enumeration by their stems, or numbers; nil for one that is not wide.
func wideIndex(enum []any) map[string][]int {
	if len(enum) <= wideEnum {
		return nil
	}
	index := map[string][]int{}
	for i, e := range enum {
		switch e := e.(type) {
		case string:
			for _, w := range search.Words(clip(e, 100)) {
				s := search.Stem(w)
				index[s] = append(index[s], i)
			}
		case float64:
			index[numberKey(e)] = append(index[numberKey(e)], i)
		}
	}
	return index
}

func numberKey(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// sayable returns the values of an enumeration that the question may name.
func (f *filler) sayable(q param) []any {
	if q.wide == nil {
		return q.enum
	}
	said := map[string]bool{}
	for _, t := range f.r.tokens {
		for _, s := range t.stems {
			said[s] = said[s] || !t.stop()
		}
	}
	for _, m := range f.r.mentions {
		if m.kind == kindNumber {
			said[numberKey(m.number.value)] = true
		}
	}
	shared := map[int]int{} // by value: how many of its words are said
	for s, ok := range said {
		if ok {
			for _, i := range q.wide[s] {
				shared[i]++
			}
		}
	}
	best := slices.SortedFunc(maps.Keys(shared), func(a, b int) int {
		return cmp.Or(cmp.Compare(shared[b], shared[a]), cmp.Compare(a, b))
	})
	var out []any
	for _, i := range best[:min(len(best), wideEnum)] {
		out = append(out, q.enum[i])
	}
	return out
}
