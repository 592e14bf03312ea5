package edge

import (
	"context"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// orderTimeout is how long a message waits for those before it.
const orderTimeout = 5 * time.Second

// notesBound is how many notifications of one session wait to be served.
const notesBound = 1000

// order keeps a session's notifications in their place among its requests and responses, which pay for it
// with the comparison of two counters. It is guarded by the scope's mutex.
type order struct {
	arrived uint64 // notifications so far
	served  uint64
	queue   output.Queue[note]
	working bool
	advance chan struct{} // closed when served changes; made by those who wait
}

// note is a notification waiting for the requests before it.
type note struct {
	ctx    context.Context
	x      *Exchange
	before []<-chan struct{}
}

// accept queues a notification. It is false if too many wait, the caller holds too much, or the session is over.
func (s *session) accept(ctx context.Context, x *Exchange) bool {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	o := &s.order
	if s.retired || o.queue.Len() >= notesBound || !s.edge.budget.Reserve(x.Caller.ID, x.size()) {
		x.abort(nil)
		return false
	}
	s.edge.life.begin()
	o.arrived++
	o.queue.Push(note{ctx, x, s.scope.unsentLocked()})
	if !o.working {
		o.working = true
		s.refs++
		s.edge.life.spawn("serving notifications", s.serveNotes)
	}
	return true
}

// serveNotes serves the queued notifications one after another.
func (s *session) serveNotes() {
	defer s.release()
	for {
		s.scope.mu.Lock()
		if s.order.queue.Len() == 0 {
			s.order.working = false
			s.scope.mu.Unlock()
			return
		}
		n := s.order.queue.Pop()
		skip := s.ended
		if !skip {
			s.scope.addLocked(n.x)
		}
		s.scope.mu.Unlock()
		if !skip {
			s.waitFor(n.before)
			s.edge.run(n.ctx, s.surface.handler, n.x)
		}
		n.x.abort(nil)
		s.scope.mu.Lock()
		s.scope.removeLocked(n.x)
		s.order.served++
		if s.order.advance != nil {
			close(s.order.advance)
			s.order.advance = nil
		}
		s.scope.mu.Unlock()
		s.edge.budget.Release(n.x.Caller.ID, n.x.size())
		s.edge.life.done()
	}
}

// waitFor waits until all channels are closed, the session ends or the time is up.
func (s *session) waitFor(channels []<-chan struct{}) {
	if len(channels) == 0 {
		return
	}
	timeout := time.NewTimer(orderTimeout)
	defer timeout.Stop()
	for _, c := range channels {
		select {
		case <-c:
		case <-s.over:
			return
		case <-timeout.C:
			return
		}
	}
}

// inOrder waits until so many notifications are served or the time is up. It is false if ctx ends before.
func (s *session) inOrder(ctx context.Context, barrier uint64) bool {
	var timeout *time.Timer
	for {
		s.scope.mu.Lock()
		if s.order.served >= barrier {
			s.scope.mu.Unlock()
			return true
		}
		if s.order.advance == nil {
			s.order.advance = make(chan struct{})
		}
		advance := s.order.advance
		s.scope.mu.Unlock()
		if timeout == nil {
			timeout = time.NewTimer(orderTimeout)
			defer timeout.Stop()
		}
		select {
		case <-advance:
		case <-ctx.Done():
			return false
		case <-timeout.C:
			return true
		}
	}
}
