// Package admission decides when calls are sent to a server.
//
// A [Queue] limits the concurrent calls of a server and shares its permits fairly among callers. A [Permit] belongs to
// one call. Both are safe for concurrent use and start no goroutines.
package admission

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Errors returned by [Queue.Enter].
var (
	ErrFull    = errors.New("too many calls are waiting")
	ErrRetired = errors.New("the queue is retired") // its server was replaced by one with another configuration
)

// Queue is a fair queue for the calls of one server.
//
// At most limit calls hold a place, at most room calls wait for one, and at most limit calls are suspended, that is,
// have given up their place to wait for someone else. Its memory grows only with these calls.
//
// Places are shared among callers, and among the sessions of one caller. A free place is assigned immediately, so a
// single caller may hold all of them. If calls wait, each free place goes
//
//  1. to the suspended call that has waited longest to resume;
//  2. else to the next caller in turn that holds less than half of the places;
//  3. else to the next caller in turn.
//
// Within a caller, sessions take turns. When room calls wait, a call of a caller with fewer waiting calls displaces
// the newest call of the caller with the most; the same holds among the sessions of one caller. If there is no such
// call, the new one is refused. A caller that floods a server thus delays and loses only its own calls.
type Queue struct {
	limit   int
	room    int
	retired chan struct{} // closed by Retire

	mu        sync.Mutex
	held      int
	waiting   int
	suspended int
	pinned    int
	shares    map[string]*share // by caller
	turns     list.List         // of *share: callers with waiting calls, next in turn first
	returning list.List         // of *Permit: suspended calls waiting to resume, oldest first
	spare     []*share          // for reuse: saves an allocation per call when few calls wait
	drained   chan struct{}     // closed when no call or pin is left; nil if nobody waits
}

const maxSpare = 64 // shares kept for reuse

// NewQueue returns a Queue with limit places and room for room waiting calls.
func NewQueue(limit, room int) *Queue {
	return &Queue{limit: limit, room: room, shares: map[string]*share{}, retired: make(chan struct{})}
}

// Enter waits until a call of a caller's session may begin and gives it a place; [Permit.Leave] must follow. The error
// is ErrFull, ErrRetired or the cause of ctx; then the call has no place.
func (q *Queue) Enter(ctx context.Context, p *Permit, caller, session string) error {
	q.mu.Lock()
	switch {
	case q.IsRetired():
		q.mu.Unlock()
		return ErrRetired
	case q.held < q.limit:
		s := q.shareOf(caller)
		s.calls++
		q.admit(p, s)
		q.mu.Unlock()
		return nil
	case q.waiting >= q.room && !q.makeRoom(caller, session):
		q.mu.Unlock()
		return ErrFull
	}
	w := q.push(p, q.shareOf(caller), session)
	q.mu.Unlock()
	select {
	case err := <-w.told:
		if err == nil && ctx.Err() != nil {
			p.Leave()
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
	}
	q.mu.Lock()
	if w.at != nil {
		q.drop(w)
		q.mu.Unlock()
		return context.Cause(ctx)
	}
	q.mu.Unlock()
	if <-w.told == nil {
		p.Leave() // it has got the place in the meantime
	}
	return context.Cause(ctx)
}

// admit gives a free place to a call.
func (q *Queue) admit(p *Permit, s *share) {
	s.held++
	q.held++
	p.q, p.share, p.state = q, s, holding
}

// free passes a caller's freed place to the call whose turn it is.
func (q *Queue) free(s *share) {
	s.held--
	q.held--
	if first := q.returning.Front(); first != nil {
		first.Value.(*Permit).restore()
		return
	}
	next := q.next()
	if next == nil {
		return
	}
	q.turns.MoveToBack(next.turn)
	l := next.turns.Front().Value.(*line)
	next.turns.MoveToBack(l.turn)
	w := l.waiters.Front().Value.(*waiter)
	q.remove(w)
	q.admit(w.place, next)
	w.told <- nil
}

// next returns the caller that gets the next free place, nil if no call waits. At most two callers can hold half of
// the places or more, so it examines at most three.
func (q *Queue) next() *share {
	for e := q.turns.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*share); 2*s.held < q.limit {
			return s
		}
	}
	if first := q.turns.Front(); first != nil {
		return first.Value.(*share)
	}
	return nil
}

// Pin makes Drain wait until Unpin, for uses other than calls. It reports false if the queue is retired.
func (q *Queue) Pin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.IsRetired() {
		return false
	}
	q.pinned++
	return true
}

// Unpin ends a Pin.
func (q *Queue) Unpin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pinned--
	q.settle()
}

// Retire refuses new and waiting calls with ErrRetired. Calls that have begun continue. It must be called once.
func (q *Queue) Retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.retired)
	for first := q.turns.Front(); first != nil; first = q.turns.Front() {
		l := first.Value.(*share).turns.Front().Value.(*line)
		w := l.waiters.Front().Value.(*waiter)
		q.drop(w)
		w.told <- ErrRetired
	}
}

// Retired is closed by Retire.
func (q *Queue) Retired() <-chan struct{} { return q.retired }

// IsRetired reports whether Retire was called.
func (q *Queue) IsRetired() bool {
	select {
	case <-q.retired:
		return true
	default:
		return false
	}
}

// Drain waits until all calls that have begun have left and nothing is pinned, or until stop is closed.
func (q *Queue) Drain(stop <-chan struct{}) {
	q.mu.Lock()
	if q.idle() {
		q.mu.Unlock()
		return
	}
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	drained := q.drained
	q.mu.Unlock()
	select {
	case <-drained:
	case <-stop:
	}
}

func (q *Queue) idle() bool { return q.held+q.suspended+q.pinned == 0 }

func (q *Queue) settle() {
	if q.idle() && q.drained != nil {
		close(q.drained)
		q.drained = nil
	}
}

// Load returns the number of calls that have begun, including suspended ones, and of those that wait.
func (q *Queue) Load() (begun, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held + q.suspended, q.waiting
}
