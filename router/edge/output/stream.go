package output

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// pop removes and returns the oldest value of a queue.
func pop[T any](queue *[]T) T {
	var zero T
	q := *queue
	v := q[0]
	q[0] = zero
	if len(q) > 1 {
		*queue = q[1:]
	} else {
		*queue = q[:0] // the next value needs no new memory
	}
	return v
}

// queuedMessages limits the messages of one request that wait to be written.
const queuedMessages = 1000

// requestQueue holds the messages of one request, or of the session itself, on a stream. The zero value is empty. The
// mutex of its stream guards it.
type requestQueue struct {
	messages []Message
	vacant   int  // entries of stream.order whose messages were dropped
	closed   bool // the last message is queued or written
}

// dropOldest removes the oldest droppable message. It reports false if there is none.
func (q *requestQueue) dropOldest() (dropped Message, ok bool) {
	i := slices.IndexFunc(q.messages, func(m Message) bool { return !m.Keep })
	if i < 0 {
		return Message{}, false
	}
	dropped = q.messages[i]
	copy(q.messages[1:i+1], q.messages[:i])
	pop(&q.messages)
	q.vacant++
	return dropped, true
}

// stream is the queue before the only writer of a connection. Each message waits in the queue of its request; order
// lists that queue once per message. Messages leave in order of arrival; in a full queue the newest takes the position
// of a dropped one. Queued bytes and bytes being written are charged to their payers.
type stream struct {
	budget *limit.Budget
	mu     sync.Mutex
	space  sync.Cond // signals that messages were taken, or that the stream is gone
	order  []*requestQueue
	bytes  int
	kept   int           // undroppable messages, queued or being written
	taken  int           // of these, messages being written
	bound  int           // bytes; beyond it queues drop their oldest messages, and responses wait
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

// put queues m in q and reports whether m, or a newer message, will be written. last closes the queue. To make room
// for m, droppable messages are dropped, oldest first. On shared streams a last message waits while the stream exceeds
// its bound, or while the stream is not empty and the payer's limit is reached.
func (s *stream) put(q *requestQueue, m Message, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(q, m, last)
}

func (s *stream) putLocked(q *requestQueue, m Message, last bool) bool {
	if q.closed {
		return false
	}
	q.closed = last
	prepaid := m.Paid > 0
	for last && s.shared && !s.gone && s.bytes > 0 && (s.bytes > s.bound || !m.tryCharge(s.budget)) {
		s.space.Wait()
	}
	if s.gone || s.closed {
		if m.Paid > 0 && !prepaid {
			Release(s.budget, m)
		}
		return false
	}
	for !last && (len(q.messages) >= queuedMessages || s.bytes > 0 && s.bytes+m.Size() > s.bound ||
		!m.tryCharge(s.budget)) {
		old, ok := q.dropOldest()
		if !ok {
			return false
		}
		s.bytes -= old.Size()
		Release(s.budget, old)
		s.budget.Drop()
	}
	m.forceCharge(s.budget)
	s.bytes += m.Size()
	if m.Keep {
		s.kept++
	}
	q.messages = append(q.messages, m)
	if q.vacant > 0 {
		q.vacant--
	} else {
		s.order = append(s.order, q)
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
	for _, q := range s.order {
		Release(s.budget, q.messages...)
		q.messages, q.vacant = nil, 0
	}
	s.order, s.bytes = nil, 0
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
	for n := 0; len(s.order) > 0 && len(ms) < takeMessages && n < takeBytes; {
		q := pop(&s.order)
		if len(q.messages) == 0 {
			q.vacant--
			continue
		}
		m := pop(&q.messages)
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

// sink writes to one connection.
type sink interface {
	write([]Message) error // writes and flushes all messages
	heartbeat() error      // writes a no-op, such as a comment
}

// lineSink writes messages as lines.
type lineSink struct {
	w   io.Writer
	buf []byte
}

func (s *lineSink) write(ms []Message) (err error) {
	s.buf = s.buf[:0]
	for _, m := range ms {
		if s.buf, err = m.put(s.buf, s.w); err != nil {
			return err
		}
		s.buf = append(s.buf, '\n')
	}
	_, err = s.w.Write(s.buf)
	return err
}

func (s *lineSink) heartbeat() error { return nil }

// writer is the exclusive right to write a stream.
type writer struct {
	stop chan struct{} // closed when another writer is to replace it
	done chan struct{} // closed when it has ended
}

// errReplaced ends a writer whose stream is now read on another connection.
var errReplaced = errors.New("the stream is read on another connection")

// attach returns the writer of s after stopping the previous one and waiting for it. detach ends the writer.
func (s *stream) attach() *writer {
	w := &writer{stop: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	former := s.writer
	s.writer = w
	s.mu.Unlock()
	if former != nil {
		close(former.stop)
		<-former.done
	}
	return w
}

func (s *stream) detach(w *writer) {
	s.mu.Lock()
	if s.writer == w {
		s.writer = nil
	}
	s.mu.Unlock()
	close(w.done)
}

// run writes queued messages until the stream ends, the writer is replaced, the connection ends (gone is closed) or
// writing fails. It sends a heartbeat whenever nothing was written for that long; 0 means never.
func (s *stream) run(w *writer, gone <-chan struct{}, to sink, heartbeat time.Duration) error {
	var quiet <-chan time.Time
	var timer *time.Timer
	if heartbeat > 0 {
		timer = time.NewTimer(heartbeat)
		defer timer.Stop()
		quiet = timer.C
	}
	var ms []Message
	for {
		select {
		case <-w.stop:
			return errReplaced
		case <-gone:
			return context.Canceled
		default:
		}
		var last bool
		ms, last = s.take(ms[:0])
		if last {
			return nil
		}
		if len(ms) > 0 {
			if err := s.write(to, ms); err != nil {
				return err
			}
			if timer != nil {
				timer.Reset(heartbeat)
			}
			continue
		}
		select {
		case <-s.wake:
		case <-gone:
		case <-w.stop:
		case <-quiet:
			if err := to.heartbeat(); err != nil {
				return err
			}
			timer.Reset(heartbeat)
		}
	}
}

// write writes and releases messages, also if the sink panics.
func (s *stream) write(to sink, ms []Message) error {
	defer func() {
		Release(s.budget, ms...)
		clear(ms)
	}()
	return to.write(ms)
}
