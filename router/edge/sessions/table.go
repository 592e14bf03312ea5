// Package sessions stores the client sessions of a router in memory and shares the places between callers.
//
// [New] returns a [Table]. [Table.Add] gives a session a place, [Table.Get] finds it and [Table.Remove] frees the
// place. A caller may use all free places. When the table is full, a caller with less than half of the places evicts
// a session of the caller with the most: the least recently used one that is not in use.
//
// A Table is safe for concurrent use. It calls methods of sessions while it is locked, so these must not call it.
package sessions

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// Session is the view of a session that a Table needs. ID, Owner and Evictable never change.
type Session interface {
	comparable
	ID() string
	Owner() string           // id of the caller that its place counts for
	Evictable() bool         // false if it is never evicted
	LastUsed() time.Duration // since some fixed time
	Attached() bool          // it has a stream open
	InFlight() bool          // it has requests in flight
}

// Table holds sessions by id.
type Table[S Session] struct {
	limit int
	now   func() time.Duration // in the time of LastUsed

	mu     sync.RWMutex
	byID   map[string]*place[S]
	owners map[string]*owner[S] // callers with evictable sessions, by id
	ranks  ranks[S]             // the same
	closed bool                 // no more sessions
}

// owner is a caller that has sessions.
type owner[S Session] struct {
	caller string
	rank   int // index in ranks
	places places[S]
}

// place is the position of a session among those of its owner.
type place[S Session] struct {
	session S
	owner   *owner[S] // nil for a session that is not evictable
	index   int       // in the places of the owner
	since   time.Duration
}

const (
	busyPause = time.Second // until a session found in use is examined again
	maxTries  = 16          // owners, or sessions of one owner, examined per search
)

// New returns an empty Table with limit places.
func New[S Session](limit int, now func() time.Duration) *Table[S] {
	return &Table[S]{limit: limit, now: now, byID: map[string]*place[S]{}, owners: map[string]*owner[S]{}}
}

// Add gives s a place. If a session with its id exists, Add returns it as existing, and s gets no place. evicted is
// the session that lost its place; the caller of Add ends it. Both may be zero. ok is false if there is no place.
func (t *Table[S]) Add(s S) (existing, evicted S, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var none S
	if t.closed {
		return none, none, false
	}
	if p := t.byID[s.ID()]; p != nil {
		return p.session, none, true
	}
	if len(t.byID) >= t.limit {
		p := t.evictable(s.Owner())
		if p == nil {
			return none, none, false
		}
		evicted = p.session
		t.remove(p)
	}
	p := &place[S]{session: s}
	t.byID[s.ID()] = p
	if !s.Evictable() {
		return none, evicted, true
	}
	o := t.owners[s.Owner()]
	if o == nil {
		o = &owner[S]{caller: s.Owner()}
		t.owners[o.caller] = o
		heap.Push(&t.ranks, o)
	}
	p.owner, p.since = o, s.LastUsed()
	heap.Push(&o.places, p)
	heap.Fix(&t.ranks, o.rank)
	return none, evicted, true
}

// evictable returns the place that a new session of the caller may take, or nil.
func (t *Table[S]) evictable(caller string) *place[S] {
	share := max(t.limit/2, 1)
	own := t.owners[caller]
	held := 0
	if own != nil {
		held = len(own.places)
	}
	if held >= share {
		return nil
	}
	var tried []*owner[S]
	defer func() {
		for _, o := range tried {
			heap.Push(&t.ranks, o)
		}
	}()
	for len(t.ranks) > 0 && len(tried) < maxTries && len(t.ranks[0].places) > held {
		o := t.ranks[0]
		p := o.idlest(t.now())
		if p == nil && len(o.places) > share {
			p = o.waiting()
		}
		if p != nil {
			return p
		}
		tried = append(tried, heap.Pop(&t.ranks).(*owner[S]))
	}
	if own == nil {
		return nil
	}
	return own.idlest(t.now())
}

// idlest returns the place of the least recently used session that is not in use. It updates the order of the heap
// only now, so that using a session costs nothing.
func (o *owner[S]) idlest(now time.Duration) *place[S] {
	for {
		p := o.places[0]
		used := p.session.LastUsed()
		switch {
		case p.since > now: // all sessions were just found in use
			return nil
		case p.session.Attached() || p.session.InFlight():
			p.since = now + busyPause
		case p.since != used:
			p.since = used
		default:
			return p
		}
		heap.Fix(&o.places, 0)
	}
}

// waiting returns the place of a session without requests in flight; it may have an open stream.
func (o *owner[S]) waiting() *place[S] {
	n := len(o.places)
	first := rand.IntN(n)
	for i := range min(n, maxTries) {
		if p := o.places[(first+i)%n]; !p.session.InFlight() {
			return p
		}
	}
	return nil
}

// Remove removes s. Removing it again does nothing.
func (t *Table[S]) Remove(s S) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byID[s.ID()]; p != nil && p.session == s {
		t.remove(p)
	}
}

func (t *Table[S]) remove(p *place[S]) {
	delete(t.byID, p.session.ID())
	o := p.owner
	if o == nil {
		return
	}
	heap.Remove(&o.places, p.index)
	if len(o.places) > 0 {
		heap.Fix(&t.ranks, o.rank)
		return
	}
	heap.Remove(&t.ranks, o.rank)
	delete(t.owners, o.caller)
}

// Get returns the session with an id; zero if there is none.
func (t *Table[S]) Get(id string) (s S) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if p := t.byID[id]; p != nil {
		s = p.session
	}
	return s
}

// Count returns the number of sessions.
func (t *Table[S]) Count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byID)
}

// All returns all sessions in no particular order.
func (t *Table[S]) All() []S {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]S, 0, len(t.byID))
	for _, p := range t.byID {
		list = append(list, p.session)
	}
	return list
}

// Close makes the table refuse further sessions.
func (t *Table[S]) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
