package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// stored is an entry in the index.
type stored struct {
	*Entry
	bytes   int
	inStore bool
	share   *share
}

// index holds the stored entries in the order of their ids.
type index struct {
	cfg Config

	mu      sync.RWMutex
	entries []stored
	kept    amount
	shares  map[shareKey]*share
	last    uint64    // the last id assigned
	aged    time.Time // when expired entries were last dropped
}

// agePause is the minimum time between two checks for expired entries.
const agePause = time.Minute

// small are limits up to which each addition examines all entries. Beyond them, a sixteenth of the space is freed at
// a time.
var small = amount{1000, 1 << 20}

// next returns the next id.
func (x *index) next() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.last + 1
}

// add adds entries with ascending ids, and drops entries beyond the limits and, from time to time, expired ones. It
// returns the ids to delete from the store.
func (x *index) add(now time.Time, entries []stored) (gone []uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		if e.share = x.shares[keyOf(e)]; e.share == nil {
			e.share = &share{}
			x.shares[keyOf(e)] = e.share
		}
		e.share.newest, x.last = e.ID, e.ID
		x.count(e, 1)
	}
	x.entries = append(x.entries, entries...)
	bounds := amount{x.cfg.Entries, int(x.cfg.Bytes)}
	if now.Sub(x.aged) >= agePause || x.kept[0] > bounds[0] || x.kept[1] > bounds[1] {
		x.aged = now
		oldest := x.oldest(now)
		gone = x.drop(gone, func(e *stored) bool { return e.At.Before(oldest) })
	}
	for d, bound := range bounds {
		if x.kept[d] > bound {
			x.allot(d, bound-max(bound-small[d], 0)/16)
			gone = x.drop(gone, func(e *stored) bool { return e.share.kept[d] > e.share.most })
		}
	}
	return gone
}

// expire drops expired entries and returns the ids to delete from the store.
func (x *index) expire(now time.Time) (gone []uint64) { return x.add(now, nil) }

// drop drops the chosen entries, oldest first. It appends their ids to gone if they are in the store.
func (x *index) drop(gone []uint64, chosen func(e *stored) bool) []uint64 {
	to := 0
	for i := range x.entries {
		e := &x.entries[i]
		if chosen(e) {
			x.count(e, -1)
			if e.inStore {
				gone = append(gone, e.ID)
			}
			continue
		}
		if to != i {
			x.entries[to] = *e // in place: moving is cheaper than reallocating
		}
		to++
	}
	clear(x.entries[to:])
	x.entries = x.entries[:to]
	return gone
}

// oldest returns the start time of the oldest entries shown.
func (x *index) oldest(now time.Time) time.Time { return now.Add(-x.cfg.Age) }

// Filter selects entries. Empty fields select all.
type Filter struct {
	Kind, Caller, Server, Tool, Outcome string
	Text                                string // part of the question, in any case, or the trace id; cut to maxSought
	Failed                              bool   // any outcome other than ok
	Since, Until                        time.Time
	Longer                              float64 // minimum in milliseconds
	See                                 func(e *Entry) bool
}

// maxSought limits the search text. Stored questions are not longer.
const maxSought = 300

// wants reports whether the filter selects an entry. Its text is in lower case.
func (f *Filter) wants(e *Entry) bool {
	uses := func(u Use) bool {
		return (f.Server == "" || u.Server == f.Server) && (f.Tool == "" || u.Tool == f.Tool)
	}
	return (f.See == nil || f.See(e)) && (f.Kind == "" || e.Kind == f.Kind) && (f.Caller == "" || e.Caller == f.Caller) &&
		(f.Outcome == "" || e.Outcome == f.Outcome) && (!f.Failed || e.Outcome != OutcomeOK) &&
		(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until)) &&
		e.Duration >= f.Longer && (f.Server == "" && f.Tool == "" || slices.ContainsFunc(e.Uses, uses)) &&
		(f.Text == "" || strings.Contains(strings.ToLower(e.Text), f.Text) || f.Text == e.TraceID)
}

// Find returns the newest entries that a filter selects, at most limit, with ids below before; 0 = all. more is the
// value of before for the next page, 0 if there is none.
func (l *Log) Find(f Filter, before uint64, limit int) (page []Entry, more uint64) {
	f.Text = strings.ToLower(f.Text[:min(len(f.Text), maxSought)])
	l.Each(func(e *Entry) bool {
		if before != 0 && e.ID >= before || !f.wants(e) {
			return true
		}
		if len(page) == limit {
			more = page[limit-1].ID
			return false
		}
		page = append(page, *e)
		return true
	})
	return page, more
}

// Each calls f for the entries, newest first, until it returns false. f must not retain or change the entry.
func (l *Log) Each(f func(e *Entry) bool) {
	if l == nil {
		return
	}
	l.index.mu.RLock()
	defer l.index.mu.RUnlock()
	oldest := l.index.oldest(time.Now())
	for _, e := range slices.Backward(l.index.entries) {
		if !e.At.Before(oldest) && !f(e.Entry) {
			return
		}
	}
}

// Get returns the entry with an id.
func (l *Log) Get(id uint64) (Entry, bool) {
	if l == nil {
		return Entry{}, false
	}
	l.index.mu.RLock()
	defer l.index.mu.RUnlock()
	i, ok := slices.BinarySearchFunc(l.index.entries, id, func(e stored, id uint64) int { return cmp.Compare(e.ID, id) })
	if !ok || l.index.entries[i].At.Before(l.index.oldest(time.Now())) {
		return Entry{}, false
	}
	return *l.index.entries[i].Entry, true
}

// Newest returns the id of the newest entry of the callers that see selects.
func (l *Log) Newest(see func(caller string) bool) (id uint64) {
	if l == nil {
		return 0
	}
	l.index.mu.RLock()
	defer l.index.mu.RUnlock()
	for key, s := range l.index.shares {
		if s.newest > id && see(key.caller) {
			id = s.newest
		}
	}
	return id
}

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
func keyOf(e *stored) shareKey { return shareKey{e.Kind, e.Caller} }

// count adds n to the entry counts that e belongs to. Shares without entries are removed.
func (x *index) count(e *stored, n int) {
	for d, size := range (amount{1, e.bytes}) {
		x.kept[d] += n * size
		e.share.kept[d] += n * size
	}
	if e.share.kept[0] == 0 {
		delete(x.shares, keyOf(e))
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
