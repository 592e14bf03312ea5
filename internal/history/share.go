package history

import (
	"maps"
	"math"
	"slices"
)

// amount is a number of entries and their bytes.
type amount [2]int

// share is the space used by the queries or the calls of one caller.
type share struct {
	kept   amount
	most   int // limit while entries are being dropped
	newest uint64
}

type shareKey struct{ kind, caller string }

// keyOf returns the key of the share that an entry belongs to.
func keyOf(e *stored) shareKey {
	if e.entry != nil {
		return shareKey{e.entry.Kind, e.entry.Caller}
	}
	return shareKey{KindCall, e.series.Caller}
}

// join links an entry with its share, and a call with its series.
func (x *index) join(e *stored) {
	key := keyOf(e)
	if e.share = x.shares[key]; e.share == nil {
		e.share = &share{}
		x.shares[key] = e.share
	}
	if e.entry != nil || e.series.calls > 0 { // keep has found the series
		return
	}
	known := x.series[e.series.Series]
	if known == nil {
		known = &series{Series: e.series.Series}
		x.series[known.Series] = known
	}
	e.series = known
}

// count adds n to the entry counts that e belongs to. Shares and series without entries are removed.
func (x *index) count(e *stored, n int) {
	for d, size := range (amount{1, e.bytes}) {
		x.kept[d] += n * size
		e.share.kept[d] += n * size
	}
	if e.share.kept[0] == 0 {
		delete(x.shares, keyOf(e))
	}
	if e.series == nil {
		return
	}
	if e.series.calls += n; e.series.calls == 0 {
		delete(x.series, e.series.Series)
	}
}

// allot divides the space for entries or bytes between queries and calls, and then equally among callers. Unused
// space goes to the others.
func (x *index) allot(d, bound int) {
	sizes, sums := map[string][]int{}, map[string]int{} // by kind
	for key, s := range x.shares {
		sizes[key.kind] = append(sizes[key.kind], s.kept[d])
		sums[key.kind] += s.kept[d]
	}
	half := fair(slices.Collect(maps.Values(sums)), bound)
	most := map[string]int{} // of a share
	for kind, sum := range sums {
		most[kind] = fair(sizes[kind], min(sum, half))
	}
	for key, s := range x.shares {
		s.most = most[key.kind]
	}
}

// fair returns the largest limit per size such that the limited sizes add up to at most bound.
func fair(sizes []int, bound int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if each := bound / (len(sizes) - i); size > each {
			return each
		}
		bound -= size
	}
	return math.MaxInt
}
