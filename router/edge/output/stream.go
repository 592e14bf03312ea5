package output

import (
	"context"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// stream is the queue before the one writer of a connection. Each message waits in its lane, and order has the lane
// once for each message: they leave in the order of arrival, and in a full lane the newest takes the place of a
// dropped one. What is queued or being written is charged to its payers.
type stream struct {
	budget *limit.Budget
	mu     sync.Mutex
	space  sync.Cond // signals that messages were taken, or never will be
	order  Queue[*Lane]
	bytes  int
	kept   int           // messages that must not be dropped, queued or being written
	taken  int           // of those, the ones being written
	bound  int           // bytes; beyond it lanes drop their oldest messages, and responses wait
	wake   chan struct{} // holds one token while there may be something to write
	lost   chan struct{} // closed when nobody can read the stream any more
	writer *writer       // the present one; nil if there is none
	shared bool          // many requests respond here: a response waits while the stream is over its bound
	closed bool          // nothing more will be queued
	gone   bool          // nobody can read the stream any more
}

// init prepares a stream.
func (s *stream) init(budget *limit.Budget, bound int) {
	s.budget = budget
	s.space.L = &s.mu
	s.bound = bound
	s.wake = make(chan struct{}, 1)
	s.lost = make(chan struct{})
}

// put queues m in l and reports whether it, or something newer, will be written. last closes the lane. Messages that
// may be dropped give way to m, oldest first. On shared streams a last message waits while the queue is over its
// bound, or while the queue is not empty and the payer has no room.
func (s *stream) put(l *Lane, m Message, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(l, m, last)
}

func (s *stream) putLocked(l *Lane, m Message, last bool) bool {
	if l.closed {
		return false
	}
	l.closed = last
	prepaid := m.Paid > 0
	for last && s.shared && !s.gone && s.bytes > 0 && (s.bytes > s.bound || !m.pay(s.budget)) {
		s.space.Wait()
	}
	if s.gone || s.closed {
		if m.Paid > 0 && !prepaid {
			Settle(s.budget, m)
		}
		return false
	}
	for !last && (l.queue.Len() >= laneMessages || s.bytes > 0 && s.bytes+m.Size() > s.bound || !m.pay(s.budget)) {
		old, ok := l.dropOldest()
		if !ok {
			return false
		}
		s.bytes -= old.Size()
		Settle(s.budget, old)
		s.budget.Drop()
	}
	if m.Paid == 0 && m.batch == nil {
		m.Paid = m.Size()
		s.budget.Charge(m.Payer, m.Paid)
	}
	s.bytes += m.Size()
	if m.Keep {
		s.kept++
	}
	l.queue.Push(m)
	if l.vacant > 0 {
		l.vacant--
	} else {
		s.order.Push(l)
	}
	s.signal()
	return true
}

// signal wakes the writer.
func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close makes the writer end once everything is written.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signal()
}

// Abandon drops everything: nobody can read the stream any more.
func (s *stream) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandonLocked()
}

// abandonUnread abandons a closed stream that has no writer.
func (s *stream) abandonUnread() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && s.writer == nil {
		s.abandonLocked()
	}
}

func (s *stream) abandonLocked() {
	if s.gone {
		return
	}
	s.gone = true
	for s.order.Len() > 0 {
		l := s.order.Pop()
		Settle(s.budget, l.queue.items[l.queue.off:]...)
		l.queue, l.vacant = Queue[Message]{}, 0
	}
	s.bytes = 0
	close(s.lost)
	s.space.Broadcast()
	s.signal()
}

// Drain waits until the responses on a shared stream are written, nobody can read it any more, or ctx ends.
func (s *stream) Drain(ctx context.Context) {
	if !s.shared {
		return
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.space.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.kept > 0 && !s.gone && ctx.Err() == nil {
		s.space.Wait()
	}
}

// Bounds of what is written at once.
const (
	takeMessages = 64
	takeBytes    = 64 << 10
)

// take appends the next messages to ms; those of the last call are written. With done none will follow.
func (s *stream) take(ms []Message) (_ []Message, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept -= s.taken
	s.taken = 0
	for n := 0; s.order.Len() > 0 && len(ms) < takeMessages && n < takeBytes; {
		l := s.order.Pop()
		if l.queue.Len() == 0 {
			l.vacant--
			continue
		}
		m := l.queue.Pop()
		n += m.Size()
		s.bytes -= m.Size()
		if m.Keep {
			s.taken++
		}
		ms = append(ms, m)
	}
	s.space.Broadcast()
	return ms, len(ms) == 0 && (s.closed || s.gone)
}
