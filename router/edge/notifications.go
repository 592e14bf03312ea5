package edge

import (
	"context"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

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
