package admission

import "container/list"

// share is one caller's part of a Queue. A spare share is zero.
type share struct {
	caller  string
	calls   int // calls that hold a place, wait or are suspended
	held    int
	waiting int
	lines   map[string]*line // by session
	turns   list.List        // of *line: sessions with waiting calls, next in turn first
	turn    *list.Element    // in Queue.turns
}

// line holds the waiting calls of one session of a caller.
type line struct {
	share   *share
	session string
	waiters list.List // of *waiter, oldest first
	turn    *list.Element
}

// waiter is a call waiting for a place.
type waiter struct {
	place *Permit
	told  chan error // receives nil with the place, or the error; capacity 1
	line  *line
	at    *list.Element // in line.waiters; nil after the wait
}

// shareOf returns the share of a caller.
func (q *Queue) shareOf(caller string) *share {
	s := q.shares[caller]
	if s != nil {
		return s
	}
	if n := len(q.spare); n > 0 {
		s = q.spare[n-1]
		q.spare = q.spare[:n-1]
	} else {
		s = &share{}
	}
	s.caller = caller
	q.shares[caller] = s
	return s
}

// end removes a call from its caller's share.
func (q *Queue) end(s *share) {
	if s.calls--; s.calls > 0 {
		return
	}
	delete(q.shares, s.caller)
	if s.caller = ""; len(q.spare) < maxSpare {
		q.spare = append(q.spare, s)
	}
}

// push adds a call to the end of its session's line.
func (q *Queue) push(p *Permit, s *share, session string) *waiter {
	if s.turn == nil {
		s.turn = q.turns.PushBack(s)
		s.lines = map[string]*line{}
	}
	l := s.lines[session]
	if l == nil {
		l = &line{share: s, session: session}
		l.turn = s.turns.PushBack(l)
		s.lines[session] = l
	}
	w := &waiter{place: p, told: make(chan error, 1), line: l}
	w.at = l.waiters.PushBack(w)
	s.calls++
	s.waiting++
	q.waiting++
	return w
}

// remove removes a call from its session's line. It still counts for its caller.
func (q *Queue) remove(w *waiter) {
	l, s := w.line, w.line.share
	l.waiters.Remove(w.at)
	w.at = nil
	s.waiting--
	q.waiting--
	if l.waiters.Len() == 0 {
		s.turns.Remove(l.turn)
		delete(s.lines, l.session)
	}
	if s.waiting == 0 {
		q.turns.Remove(s.turn)
		s.turn, s.lines = nil, nil
	}
}

// drop removes a call that will not begin.
func (q *Queue) drop(w *waiter) {
	q.remove(w)
	q.end(w.line.share)
}

// makeRoom refuses the newest call of the caller with the most waiting calls or, among the sessions of the same
// caller, of such a session, if that has more calls waiting than the new call's own would have. It reports false if
// there is none.
func (q *Queue) makeRoom(caller, session string) bool {
	own, ownLine := q.shares[caller], 0
	if own == nil {
		own = &share{}
	} else if l := own.lines[session]; l != nil {
		ownLine = l.waiters.Len()
	}
	most := own
	for e := q.turns.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*share); s.waiting > most.waiting {
			most = s
		}
	}
	// With a limit of 1, two callers cannot both wait; then the one that holds no place waits.
	if most.waiting <= own.waiting+1 && (most.waiting == own.waiting || most.held <= own.held) {
		most = own
	}
	var longest *line
	for e := most.turns.Front(); e != nil; e = e.Next() {
		if l := e.Value.(*line); longest == nil || l.waiters.Len() >= longest.waiters.Len() {
			longest = l
		}
	}
	if longest == nil || most == own && longest.waiters.Len() <= ownLine+1 {
		return false
	}
	w := longest.waiters.Back().Value.(*waiter)
	q.drop(w)
	w.told <- ErrFull
	return true
}
