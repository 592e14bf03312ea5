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
	"time"
)

// Errors returned by [Queue.Enter].
var (
	ErrFull    = errors.New("too many calls are waiting")
	ErrRetired = errors.New("the queue is retired") // its server was replaced by one with another configuration
)

// Queue is a fair queue for the calls of one server.
//
// At most limit calls hold a permit, at most room calls wait for one, and at most limit calls are suspended, that is,
// have given up their permit to wait for someone else. Its memory grows only with these calls.
//
// Permits are shared among callers, and among the sessions of one caller. A free permit is assigned immediately, so a
// single caller may hold all of them. If calls wait, each free permit goes
//
//  1. to the suspended call that has waited longest to resume;
//  2. else to the next caller, in a round, that holds less than half of the permits;
//  3. else to the next caller.
//
// Within a caller, sessions are served in turn. When room calls wait, a call of a caller with fewer waiting calls
// displaces the newest call of the caller with the most; the same holds among the sessions of one caller. If there is
// no such call, the new one is refused. A caller that floods a server thus delays and loses only its own calls.
type Queue struct {
	limit   int
	room    int
	retired chan struct{} // closed by Retire

	mu             sync.Mutex
	held           int
	waiting        int
	suspended      int
	pinned         int
	shares         map[string]*share // by caller
	waitingCallers list.List         // of *share: callers with waiting calls, the next first
	returning      list.List         // of *Permit: suspended calls waiting to resume, oldest first
	drained        chan struct{}     // closed when no call or pin is left; nil if nobody waits
}

// NewQueue returns a Queue with limit permits and room for room waiting calls.
func NewQueue(limit, room int) *Queue {
	return &Queue{limit: limit, room: room, shares: map[string]*share{}, retired: make(chan struct{})}
}

// Enter waits until a call of a caller's session may begin and gives it a permit; [Permit.Leave] must follow. The error
// is ErrFull, ErrRetired or the cause of ctx; then the call has no permit.
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
	case err := <-w.admitted:
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
	if <-w.admitted == nil {
		p.Leave() // it has got the permit in the meantime
	}
	return context.Cause(ctx)
}

// admit gives a free permit to a call.
func (q *Queue) admit(p *Permit, s *share) {
	s.held++
	q.held++
	p.q, p.share, p.state = q, s, holding
}

// free passes a caller's freed permit to the call that is next.
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
	q.waitingCallers.MoveToBack(next.element)
	l := next.waitingSessions.Front().Value.(*sessionQueue)
	next.waitingSessions.MoveToBack(l.element)
	w := l.waiters.Front().Value.(*waiter)
	q.remove(w)
	q.admit(w.permit, next)
	w.admitted <- nil
}

// next returns the caller that gets the next free permit, nil if no call waits. At most two callers can hold half of
// the permits or more, so it examines at most three.
func (q *Queue) next() *share {
	for e := q.waitingCallers.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*share); 2*s.held < q.limit {
			return s
		}
	}
	if first := q.waitingCallers.Front(); first != nil {
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
	for first := q.waitingCallers.Front(); first != nil; first = q.waitingCallers.Front() {
		l := first.Value.(*share).waitingSessions.Front().Value.(*sessionQueue)
		w := l.waiters.Front().Value.(*waiter)
		q.drop(w)
		w.admitted <- ErrRetired
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

// share is one caller's part of a Queue.
type share struct {
	caller          string
	calls           int // calls that hold a permit, wait or are suspended
	held            int
	waiting         int
	queues          map[string]*sessionQueue // by session
	waitingSessions list.List                // of *sessionQueue: sessions with waiting calls, the next first
	element         *list.Element            // in Queue.waitingCallers; nil if no call waits
}

// sessionQueue holds the waiting calls of one session of a caller.
type sessionQueue struct {
	share   *share
	session string
	waiters list.List     // of *waiter, oldest first
	element *list.Element // in share.waitingSessions
}

// waiter is a call waiting for a permit.
type waiter struct {
	permit   *Permit
	admitted chan error // receives nil with the permit, or the error; capacity 1
	queue    *sessionQueue
	at       *list.Element // in sessionQueue.waiters; nil after the wait
}

// shareOf returns the share of a caller.
func (q *Queue) shareOf(caller string) *share {
	s := q.shares[caller]
	if s == nil {
		s = &share{caller: caller}
		q.shares[caller] = s
	}
	return s
}

// end removes a call from its caller's share.
func (q *Queue) end(s *share) {
	if s.calls--; s.calls == 0 {
		delete(q.shares, s.caller)
	}
}

// push adds a call to the end of its session's queue.
func (q *Queue) push(p *Permit, s *share, session string) *waiter {
	if s.element == nil {
		s.element = q.waitingCallers.PushBack(s)
		s.queues = map[string]*sessionQueue{}
	}
	l := s.queues[session]
	if l == nil {
		l = &sessionQueue{share: s, session: session}
		l.element = s.waitingSessions.PushBack(l)
		s.queues[session] = l
	}
	w := &waiter{permit: p, admitted: make(chan error, 1), queue: l}
	w.at = l.waiters.PushBack(w)
	s.calls++
	s.waiting++
	q.waiting++
	return w
}

// remove removes a call from its session's queue. It still counts for its caller.
func (q *Queue) remove(w *waiter) {
	l, s := w.queue, w.queue.share
	l.waiters.Remove(w.at)
	w.at = nil
	s.waiting--
	q.waiting--
	if l.waiters.Len() == 0 {
		s.waitingSessions.Remove(l.element)
		delete(s.queues, l.session)
	}
	if s.waiting == 0 {
		q.waitingCallers.Remove(s.element)
		s.element, s.queues = nil, nil
	}
}

// drop removes a call that will not begin.
func (q *Queue) drop(w *waiter) {
	q.remove(w)
	q.end(w.queue.share)
}

// makeRoom refuses the newest call of the caller with the most waiting calls or, among the sessions of the same
// caller, of such a session, if that has more calls waiting than the new call's own would have. It reports false if
// there is none.
func (q *Queue) makeRoom(caller, session string) bool {
	own, ownQueue := q.shares[caller], 0
	if own == nil {
		own = &share{}
	} else if l := own.queues[session]; l != nil {
		ownQueue = l.waiters.Len()
	}
	most := own
	for e := q.waitingCallers.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*share); s.waiting > most.waiting {
			most = s
		}
	}
	// With a limit of 1, two callers cannot both wait; then the one that holds no permit waits.
	if most.waiting <= own.waiting+1 && (most.waiting == own.waiting || most.held <= own.held) {
		most = own
	}
	var longest *sessionQueue
	for e := most.waitingSessions.Front(); e != nil; e = e.Next() {
		if l := e.Value.(*sessionQueue); longest == nil || l.waiters.Len() >= longest.waiters.Len() {
			longest = l
		}
	}
	if longest == nil || most == own && longest.waiters.Len() <= ownQueue+1 {
		return false
	}
	w := longest.waiters.Back().Value.(*waiter)
	q.drop(w)
	w.admitted <- ErrFull
	return true
}

// Permit lets one call begin. The zero value is ready for Enter. A Permit is used once.
type Permit struct {
	Waited time.Duration // time in Enter; set by its caller

	q        *Queue
	share    *share
	state    permitState
	suspends int           // Suspend calls not yet resumed
	at       *list.Element // in Queue.returning; nil if it is not there
	back     chan struct{} // closed when the call leaves Queue.returning
}

type permitState uint8

const (
	outside permitState = iota // before Enter and after Leave
	holding
	suspended
)

// Leave ends the call's stay in the queue. Outside of a queue it does nothing.
func (p *Permit) Leave() {
	q := p.q
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := p.share
	switch p.state {
	case outside:
		return
	case holding:
		q.free(s)
	case suspended:
		q.suspended--
		p.stopReturn()
	}
	p.share, p.state = nil, outside
	q.end(s)
	q.settle()
}

// Suspend gives up the permit of a call while the call waits for someone else, such as a user. resume takes a permit
// again, ahead of all calls that have not begun. It waits for a permit until ctx ends, and must be called once. Beyond
// the limit of suspended calls, a call keeps its permit. Suspensions may overlap: the last resume counts.
func (p *Permit) Suspend() (resume func(ctx context.Context)) {
	q := p.q
	if q == nil {
		return func(context.Context) {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state == outside {
		return func(context.Context) {}
	}
	p.suspends++
	if p.state == holding && q.suspended < q.limit {
		p.state = suspended
		q.suspended++
		q.free(p.share)
	}
	return func(ctx context.Context) { p.resume(ctx) }
}

// resume takes a permit again, see Suspend.
func (p *Permit) resume(ctx context.Context) {
	q := p.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.suspends--; p.suspends > 0 || p.state != suspended {
		return
	}
	if q.held < q.limit {
		p.restore()
		return
	}
	if p.at == nil {
		p.at, p.back = q.returning.PushBack(p), make(chan struct{})
	}
	back := p.back
	q.mu.Unlock()
	select {
	case <-back:
		q.mu.Lock()
	case <-ctx.Done():
		q.mu.Lock()
		if p.back == back {
			p.stopReturn()
		}
	}
}

// restore gives a free permit to a suspended call. The caller holds the queue's lock.
func (p *Permit) restore() {
	p.stopReturn()
	p.q.suspended--
	p.q.held++
	p.share.held++
	p.state = holding
}

// stopReturn removes a call from Queue.returning and ends the wait in resume. The caller holds the queue's lock.
func (p *Permit) stopReturn() {
	if p.at != nil {
		p.q.returning.Remove(p.at)
		close(p.back)
		p.at, p.back = nil, nil
	}
}
