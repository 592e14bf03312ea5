package history

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// stored is an entry that is kept.
type stored struct {
	id    uint64
	at    int64 // Unix time in nanoseconds
	bytes int   // in the store
	lost  bool  // the store refused it
	share *share
	entry *Entry // nil for a call

	series           *series // of a call, as the rest
	took             time.Duration
	result, attempts int
}

// series is that of calls that are kept.
type series struct {
	Series
	calls int
}

// index has the entries that are kept, in the order of their ids.
type index struct {
	cfg Config

	mu      sync.RWMutex
	entries []stored
	kept    amount
	shares  map[shareKey]*share
	series  map[Series]*series
	last    uint64    // the newest id ever
	aged    time.Time // when entries were last dropped for their age
}

// agePause is the least time between two looks at the age of all entries.
const agePause = time.Minute

// small are bounds at which each addition looks at all entries. Of what is beyond, a sixteenth is made free at once.
var small = amount{1000, 1 << 20}

// next returns the id after the newest.
func (x *index) next() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.last + 1
}

// keep returns what is kept of a record under an id. It is called where add is.
func (x *index) keep(r *record, id uint64) stored {
	if w := r.entry; w != nil {
		w.ID = id
		w.encode()
		e := w.Entry // alone: the detail is not kept
		return stored{id: id, at: e.At.UnixNano(), bytes: len(w.summary) + len(w.detailed), entry: &e}
	}
	c := &r.call
	known := x.series[c.Series]
	if known == nil {
		known = &series{Series: c.Series}
	}
	return stored{id: id, at: c.At.UnixNano(), bytes: callBytes, series: known, took: c.Duration, result: c.Bytes,
		attempts: c.Attempts}
}

// add adds entries with ascending ids, and drops what is too much and, now and then, what is too old. It returns the
// ids that the store is to drop.
func (x *index) add(now time.Time, entries []stored) (gone []uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		x.join(e)
		e.share.newest, x.last = e.id, e.id
		x.count(e, 1)
	}
	x.entries = append(x.entries, entries...)
	bounds := amount{x.cfg.Entries, int(x.cfg.Bytes)}
	if now.Sub(x.aged) >= agePause || x.kept[0] > bounds[0] || x.kept[1] > bounds[1] {
		x.aged = now
		oldest := x.oldest(now)
		gone = x.drop(gone, func(e *stored) bool { return e.at < oldest })
	}
	for d, bound := range bounds {
		if x.kept[d] > bound {
			x.allot(d, bound-max(bound-small[d], 0)/16)
			gone = x.drop(gone, func(e *stored) bool { return e.share.kept[d] > e.share.most })
		}
	}
	return gone
}

// drop drops the entries that a function chooses, the oldest first. It appends the ids that the store has to gone.
func (x *index) drop(gone []uint64, chosen func(e *stored) bool) []uint64 {
	to := 0
	for i := range x.entries {
		e := &x.entries[i]
		if chosen(e) {
			x.count(e, -1)
			if !e.lost {
				gone = append(gone, e.id)
			}
			continue
		}
		if to != i {
			x.entries[to] = *e // in place: making room anew would cost more than to move them
		}
		to++
	}
	clear(x.entries[to:])
	x.entries = x.entries[:to]
	return gone
}

// oldest is when the oldest entries that are shown began.
func (x *index) oldest(now time.Time) int64 { return now.Add(-x.cfg.Age).UnixNano() }

// Filter chooses entries. Empty fields choose all.
type Filter struct {
	Kind, Caller, Server, Tool, Outcome string
	Text                                string // in the question, in either case; the first maxSought bytes count
	Failed                              bool   // any outcome but ok
	Since, Until                        time.Time
	Longer                              float64 // milliseconds, at least
	See                                 func(e *Entry) bool
}

// maxSought bounds the text that entries are searched for. What is kept of a question is no longer.
const maxSought = 300

// wants reports whether the filter chooses an entry. Its text is in lower case.
func (f *Filter) wants(e *Entry) bool {
	uses := func(u Use) bool {
		return (f.Server == "" || u.Server == f.Server) && (f.Tool == "" || u.Tool == f.Tool)
	}
	return (f.See == nil || f.See(e)) && (f.Kind == "" || e.Kind == f.Kind) && (f.Caller == "" || e.Caller == f.Caller) &&
		(f.Outcome == "" || e.Outcome == f.Outcome) && (!f.Failed || e.Outcome != OutcomeOK) &&
		(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until)) &&
		e.Duration >= f.Longer && (f.Server == "" && f.Tool == "" || slices.ContainsFunc(e.Uses, uses)) &&
		(f.Text == "" || strings.Contains(strings.ToLower(e.Text), f.Text))
}

// Find returns the newest entries that a filter chooses, at most limit, with ids below before; 0 = all. more is the
// value of before for the next ones, 0 if there are none.
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
		kept := *e
		kept.Uses = slices.Clone(e.Uses)
		page = append(page, kept)
		return true
	})
	return page, more
}

// Each calls f for the entries, the newest first, until it returns false. f must not keep or change the entry.
func (l *Log) Each(f func(e *Entry) bool) {
	if l == nil {
		return
	}
	l.index.mu.RLock()
	defer l.index.mu.RUnlock()
	oldest := l.index.oldest(time.Now())
	var call Entry
	for i := range slices.Backward(l.index.entries) {
		if e := &l.index.entries[i]; e.at >= oldest && !f(e.view(&call)) {
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
	i, ok := slices.BinarySearchFunc(l.index.entries, id, func(e stored, id uint64) int { return cmp.Compare(e.id, id) })
	if !ok || l.index.entries[i].at < l.index.oldest(time.Now()) {
		return Entry{}, false
	}
	return *l.index.entries[i].view(&Entry{}), true
}

// Newest returns the id of the newest entry of the callers that see chooses. It changes whenever they add one.
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
