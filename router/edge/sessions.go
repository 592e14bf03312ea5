package edge

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// sessions is the table of the sessions that exist. A caller may fill it while nobody else wants a place. When it
// is full, a caller that has less than its share, half of the table, takes the place of a session of the caller
// that has most: the least recently used one that is not in use.
type sessions struct {
	most int
	now  func() time.Duration

	mu      sync.RWMutex
	byID    map[string]*session
	holders map[string]*holder // by caller
	ranks   ranks              // of all holders
	closed  bool               // no more sessions
}

// holder is a caller that has sessions.
type holder struct {
	caller   string
	rank     int // index in ranks
	sessions seats
}

// seat is the place of a session among those of its holder.
type seat struct {
	holder *holder // nil for the session of stdio, which nobody else can take the place of
	index  int
	since  time.Duration // not after the last use of the session; in the future where it was found in use
}

const (
	busyPause = time.Second // before a session that was found in use is looked at again
	maxTries  = 16          // holders, or sessions of one, that are looked at for a place
)

// add gives s a place. Where another session has its id already, that one is returned and s has none. gone is the
// session that has lost its place: the caller ends it. ok is false if there is no place.
func (t *sessions) add(s *session) (other, gone *session, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, false
	}
	if other := t.byID[s.id]; other != nil {
		return other, nil, true
	}
	if len(t.byID) >= t.most {
		if gone = t.leastNeeded(s.owner.ID); gone == nil {
			return nil, nil, false
		}
		t.removeLocked(gone)
	}
	t.byID[s.id] = s
	if s.local {
		return nil, gone, true
	}
	h := t.holders[s.owner.ID]
	if h == nil {
		h = &holder{caller: s.owner.ID}
		t.holders[h.caller] = h
		heap.Push(&t.ranks, h)
	}
	s.seat.holder, s.seat.since = h, s.lastUsed()
	heap.Push(&h.sessions, s)
	heap.Fix(&t.ranks, h.rank)
	return nil, gone, true
}

// leastNeeded returns the session that gives way to a new one of the caller, if there is one.
func (t *sessions) leastNeeded(caller string) *session {
	share := max(t.most/2, 1)
	own := t.holders[caller]
	held := 0
	if own != nil {
		held = len(own.sessions)
	}
	if held >= share {
		return nil
	}
	var tried []*holder
	defer func() {
		for _, h := range tried {
			heap.Push(&t.ranks, h)
		}
	}()
	for len(t.ranks) > 0 && len(tried) < maxTries && len(t.ranks[0].sessions) > held {
		h := t.ranks[0]
		s := h.idlest(t.now())
		if s == nil && len(h.sessions) > share {
			s = h.waiting()
		}
		if s != nil {
			return s
		}
		tried = append(tried, heap.Pop(&t.ranks).(*holder))
	}
	if own == nil {
		return nil
	}
	return own.idlest(t.now())
}

// idlest returns the least recently used session that is not in use. A session that is used after it got its seat
// gets another one only when it is looked at, so that using it costs nothing.
func (h *holder) idlest(now time.Duration) *session {
	for {
		s := h.sessions[0]
		used := s.lastUsed()
		switch {
		case s.seat.since > now: // all others, too, were found in use a moment ago
			return nil
		case s.attached() || s.inFlight():
			s.seat.since = now + busyPause
		case s.seat.since != used:
			s.seat.since = used
		default:
			return s
		}
		heap.Fix(&h.sessions, 0)
	}
}

// waiting returns a session that has a stream open, but nothing in flight.
func (h *holder) waiting() *session {
	for range maxTries {
		if s := h.sessions[rand.IntN(len(h.sessions))]; !s.inFlight() {
			return s
		}
	}
	return nil
}

// remove takes s off the table. It may be called again.
func (t *sessions) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(s)
}

func (t *sessions) removeLocked(s *session) {
	if t.byID[s.id] != s {
		return
	}
	delete(t.byID, s.id)
	h := s.seat.holder
	if h == nil {
		return
	}
	heap.Remove(&h.sessions, s.seat.index)
	if len(h.sessions) > 0 {
		heap.Fix(&t.ranks, h.rank)
		return
	}
	heap.Remove(&t.ranks, h.rank)
	delete(t.holders, h.caller)
}

func (t *sessions) get(id string) *session {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byID[id]
}

func (t *sessions) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byID)
}

func (t *sessions) all() []*session {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*session, 0, len(t.byID))
	for _, s := range t.byID {
		list = append(list, s)
	}
	return list
}

// close refuses further sessions.
func (t *sessions) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// seats is a heap of sessions, the least recently used first.
type seats []*session

func (s seats) Len() int           { return len(s) }
func (s seats) Less(i, j int) bool { return s[i].seat.since < s[j].seat.since }
func (s seats) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].seat.index, s[j].seat.index = i, j
}
func (s *seats) Push(x any) {
	x.(*session).seat.index = len(*s)
	*s = append(*s, x.(*session))
}
func (s *seats) Pop() any { return pop((*[]*session)(s)) }

// ranks is a heap of holders, the one with most sessions first.
type ranks []*holder

func (r ranks) Len() int           { return len(r) }
func (r ranks) Less(i, j int) bool { return len(r[i].sessions) > len(r[j].sessions) }
func (r ranks) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].rank, r[j].rank = i, j
}
func (r *ranks) Push(x any) {
	x.(*holder).rank = len(*r)
	*r = append(*r, x.(*holder))
}
func (r *ranks) Pop() any { return pop((*[]*holder)(r)) }

func pop[T any](list *[]*T) *T {
	last := len(*list) - 1
	v := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return v
}
