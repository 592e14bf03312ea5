package history

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// stored is an entry and the bytes that it has in the store.
type stored struct {
	Entry
	bytes int
}

// index has the entries that are kept, in the order of their ids.
type index struct {
	cfg Config

	mu      sync.RWMutex
	entries []stored
	bytes   int
	last    uint64 // the newest id ever
}

// next returns the id after the newest.
func (x *index) next() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.last + 1
}

// add adds entries with ascending ids and drops the oldest beyond the bounds. It returns the oldest id that stays.
func (x *index) add(now time.Time, entries []stored) (oldest uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range entries {
		x.last = e.ID
		x.bytes += e.bytes
	}
	x.entries = append(x.entries, entries...)
	n, expired := 0, now.Add(-x.cfg.Age)
	for n < len(x.entries) &&
		(len(x.entries)-n > x.cfg.Entries || x.bytes > int(x.cfg.Bytes) || x.entries[n].At.Before(expired)) {
		x.bytes -= x.entries[n].bytes
		n++
	}
	x.entries = slices.Delete(x.entries, 0, n) // in place: making room anew would cost more than to move them
	return x.last + 1 - uint64(len(x.entries))
}

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
		page = append(page, *e)
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
	for i := range slices.Backward(l.index.entries) {
		if !f(&l.index.entries[i].Entry) {
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
	i, ok := slices.BinarySearchFunc(l.index.entries, id, func(e stored, id uint64) int {
		switch {
		case e.ID < id:
			return -1
		case e.ID > id:
			return 1
		}
		return 0
	})
	if !ok {
		return Entry{}, false
	}
	return l.index.entries[i].Entry, true
}

// Newest returns the id of the newest entry. It changes whenever entries are added.
func (l *Log) Newest() uint64 {
	if l == nil {
		return 0
	}
	return l.index.next() - 1
}
