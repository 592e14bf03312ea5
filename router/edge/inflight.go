package edge

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// inFlight is the table of exchanges in flight of one session, or of all sessionless exchanges.
type inFlight struct {
	mu    sync.Mutex
	byID  map[string]*Exchange // requests that can be cancelled; nil without a session
	first *Exchange            // all exchanges, newest first
}

// entry is the place of an exchange in its table. The mutex of the table guards it.
type entry struct {
	table   *inFlight
	id      jsonrpc.ID    // id that cancels it
	barrier uint64        // number of preceding notifications
	sentCh  chan struct{} // closed when sent; created by the first waiter
	sent    bool          // see Exchange.Sent
	listed  bool
	prev    *Exchange
	next    *Exchange
}

// add adds an exchange without a session.
func (t *inFlight) add(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(x)
}

func (t *inFlight) remove(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(x)
}

// addLocked adds x and, for a request, its id. It reports false if the id is in use.
func (t *inFlight) addLocked(x *Exchange) bool {
	e := &x.entry
	if t.byID != nil && e.id != "" {
		key := e.id.Key()
		if _, taken := t.byID[key]; taken {
			return false
		}
		t.byID[key] = x
	}
	e.listed = true
	e.next = t.first
	if t.first != nil {
		t.first.entry.prev = x
	}
	t.first = x
	return true
}

// has reports whether a request with the id is in flight.
func (t *inFlight) has(id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id.Key()] != nil
}

// rename lists x under another id. x must have no id. It reports false if the new id is in use.
func (t *inFlight) rename(x *Exchange, id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		return true
	}
	if _, taken := t.byID[id.Key()]; taken {
		return false
	}
	x.entry.id = id
	t.byID[id.Key()] = x
	return true
}

// cancelRequest handles notifications/cancelled. It reports false if no live request has the id.
func (t *inFlight) cancelRequest(id jsonrpc.ID, c *Cancelled) bool {
	t.mu.Lock()
	x := t.byID[id.Key()]
	if x == nil || !x.out.state.CompareAndSwap(live, cancelled) {
		t.mu.Unlock()
		return false
	}
	t.freeIDLocked(x)
	t.mu.Unlock()
	x.abort(c)
	return true
}

// freeID frees the id of x after its response or cancellation.
func (t *inFlight) freeID(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freeIDLocked(x)
}

func (t *inFlight) freeIDLocked(x *Exchange) {
	if t.byID == nil || x.entry.id == "" {
		return
	}
	if key := x.entry.id.Key(); t.byID[key] == x {
		delete(t.byID, key)
	}
}

// removeLocked removes x after its handler has returned.
func (t *inFlight) removeLocked(x *Exchange) {
	t.freeIDLocked(x)
	t.markSentLocked(x)
	e := &x.entry
	if !e.listed {
		return
	}
	e.listed = false
	if e.prev != nil {
		e.prev.entry.next = e.next
	} else {
		t.first = e.next
	}
	if e.next != nil {
		e.next.entry.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

func (t *inFlight) markSent(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.markSentLocked(x)
}

func (t *inFlight) markSentLocked(x *Exchange) {
	if x.entry.sent {
		return
	}
	x.entry.sent = true
	if x.entry.sentCh != nil {
		close(x.entry.sentCh)
	}
}

// unsentLocked returns, for each unsent request, a channel that is closed when it is sent.
func (t *inFlight) unsentLocked() []<-chan struct{} {
	var waits []<-chan struct{}
	for x := t.first; x != nil; x = x.entry.next {
		if x.entry.sent || x.Message.ID == "" {
			continue
		}
		if x.entry.sentCh == nil {
			x.entry.sentCh = make(chan struct{})
		}
		waits = append(waits, x.entry.sentCh)
	}
	return waits
}

// cancel cancels the contexts of the exchanges that chosen selects.
func (t *inFlight) cancel(cause error, chosen func(*Exchange) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := t.first; x != nil; x = x.entry.next {
		if chosen(x) {
			x.abort(cause)
		}
	}
}

func all(*Exchange) bool { return true }

// connected reports whether any exchange still has its connection.
func (t *inFlight) connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := t.first; x != nil; x = x.entry.next {
		select {
		case <-x.out.conn:
		default:
			if x.out.conn != nil {
				return true
			}
		}
	}
	return false
}

const (
	orderTimeout        = 5 * time.Second // wait for earlier messages
	queuedNotifications = 1000            // per session
)

// notifications keeps the notifications of a session in order with its requests and responses. Two counters suffice:
// a request waits until all notifications that arrived before it have been served. The session's inFlight.mu guards
// the fields.
type notifications struct {
	session  *session
	arrived  uint64
	served   uint64
	queue    output.Queue[notification]
	serving  bool          // a goroutine serves the queue
	advanced chan struct{} // closed when served changes; created by the first waiter
}

// notification is a queued notification that waits for the requests before it.
type notification struct {
	ctx    context.Context
	x      *Exchange
	before []<-chan struct{}
}

// accept queues a notification. It reports false if the queue is full, the caller holds too much, or the session has
// ended.
func (n *notifications) accept(ctx context.Context, x *Exchange) bool {
	s := n.session
	e := s.surface.edge
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	if s.life.state != sessionOpen || n.queue.Len() >= queuedNotifications ||
		!e.budget.Reserve(x.Caller.ID, x.size()) {
		x.abort(nil)
		return false
	}
	e.life.begin()
	n.arrived++
	n.queue.Push(notification{ctx, x, s.inFlight.unsentLocked()})
	if !n.serving {
		n.serving = true
		s.life.refs++
		e.life.spawn("serving notifications", n.serve)
	}
	return true
}

// serve serves the queued notifications in order.
func (n *notifications) serve() {
	s := n.session
	e := s.surface.edge
	defer s.release()
	for {
		s.inFlight.mu.Lock()
		if n.queue.Len() == 0 {
			n.serving = false
			s.inFlight.mu.Unlock()
			return
		}
		next := n.queue.Pop()
		skip := s.life.state == sessionEnding
		if !skip {
			s.inFlight.addLocked(next.x)
		}
		s.inFlight.mu.Unlock()
		if !skip {
			n.waitFor(next.before)
			s.surface.run(next.ctx, next.x)
		}
		next.x.abort(nil)
		n.advance(next.x)
		e.budget.Release(next.x.Caller.ID, next.x.size())
		e.life.done()
	}
}

// advance counts a served notification.
func (n *notifications) advance(x *Exchange) {
	table := &n.session.inFlight
	table.mu.Lock()
	defer table.mu.Unlock()
	table.removeLocked(x)
	n.served++
	if n.advanced != nil {
		close(n.advanced)
		n.advanced = nil
	}
}

// waitFor waits until all channels are closed, at most orderTimeout or until the session ends.
func (n *notifications) waitFor(channels []<-chan struct{}) {
	if len(channels) == 0 {
		return
	}
	timeout := time.NewTimer(orderTimeout)
	defer timeout.Stop()
	for _, c := range channels {
		select {
		case <-c:
		case <-n.session.life.ending:
			return
		case <-timeout.C:
			return
		}
	}
}

// inOrder waits until barrier notifications are served, at most orderTimeout. It reports false if ctx ends first.
func (n *notifications) inOrder(ctx context.Context, barrier uint64) bool {
	mu := &n.session.inFlight.mu
	var timeout *time.Timer
	for {
		mu.Lock()
		if n.served >= barrier {
			mu.Unlock()
			return true
		}
		if n.advanced == nil {
			n.advanced = make(chan struct{})
		}
		advanced := n.advanced
		mu.Unlock()
		if timeout == nil {
			timeout = time.NewTimer(orderTimeout)
			defer timeout.Stop()
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return false
		case <-timeout.C:
			return true
		}
	}
}
