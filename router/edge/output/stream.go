package output

import (
	"context"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// stream is the queue before the only writer of a connection. Each message waits in its lane; order lists the lane
// once per message. Messages leave in order of arrival; in a full lane the newest takes the place of a dropped one.
// Queued bytes and bytes being written are charged to their payers.
type stream struct {
	budget *limit.Budget
	mu     sync.Mutex
	space  sync.Cond // signals that messages were taken, or that the stream is gone
	order  Queue[*Lane]
	bytes  int
	kept   int           // undroppable messages, queued or being written
	taken  int           // of these, messages being written
	bound  int           // bytes; beyond it lanes drop their oldest messages, and responses wait
	wake   chan struct{} // holds one token while there may be something to write
	lost   chan struct{} // closed when nobody can read the stream
	writer *writer       // the present one; nil if there is none
	shared bool          // carries many responses, which wait while the stream exceeds its bound
	closed bool          // accepts no more messages
	gone   bool          // nobody can read the stream
}

// init prepares a stream.
func (s *stream) init(budget *limit.Budget, bound int) {
	s.budget = budget
	s.space.L = &s.mu
	s.bound = bound
	s.wake = make(chan struct{}, 1)
	s.lost = make(chan struct{})
}

// put queues m in l and reports whether m, or a newer message, will be written. last closes the lane. To make room
// for m, droppable messages are dropped, oldest first. On shared streams a last message waits while the queue exceeds
// its bound, or while the queue is not empty and the payer's limit is reached.
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

// close ends the writer once everything is written.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signal()
}

// Abandon drops all messages, because nobody can read the stream.
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

// Drain waits until the responses on a shared stream are written, nobody can read the stream, or ctx ends.
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

// Limits of one write.
const (
	takeMessages = 64
	takeBytes    = 64 << 10
)

// take appends the next messages to ms; those of the previous call have been written. done means that none follow.
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
