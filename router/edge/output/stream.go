package output

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// laneMessages is how many messages of one request, or of a session's own, wait to be written.
const laneMessages = 1000

// Lane is the queue of one source of messages on a stream: a request, or the session itself. It is
// guarded by the mutex of its stream.
type Lane struct {
	queue  Queue[Message]
	vacant int  // places in ready whose messages were dropped
	closed bool // its response is queued or written
}

// dropOldest removes the oldest message that may be dropped; false if there is none.
func (l *Lane) dropOldest() (Message, bool) {
	for i := l.queue.off; i < len(l.queue.items); i++ {
		if m := l.queue.items[i]; !m.Keep {
			copy(l.queue.items[l.queue.off+1:i+1], l.queue.items[l.queue.off:i])
			l.queue.Pop()
			l.vacant++
			return m, true
		}
	}
	return Message{}, false
}

// stream is the queue before the one writer of a connection. Each message stands in its lane, and ready
// holds that lane once for it: messages go out in the order of arrival, and in a lane that is full the newest
// takes the place of a dropped one. What is queued or being written is charged to its payers.
type stream struct {
	budget *limit.Budget
	mu     sync.Mutex
	room   sync.Cond // told when messages were taken, or never will be
	ready  Queue[*Lane]
	bytes  int
	kept   int           // messages that must not be lost, queued or being written
	taken  int           // of those, the ones being written
	bound  int           // bytes; beyond it lanes lose their oldest, and responses wait
	wake   chan struct{} // holds one token while the writer has something to look at
	Lost   chan struct{} // closed when nobody will read any more
	turn   *writer       // of the present writer, if any
	shared bool          // many requests answer here: a response waits while too much is queued
	closed bool          // nothing more will come
	gone   bool          // nobody reads any more
}

// init prepares a stream.
func (s *stream) init(budget *limit.Budget, bound int) {
	s.budget = budget
	s.room.L = &s.mu
	s.bound = bound
	s.wake = make(chan struct{}, 1)
	s.Lost = make(chan struct{})
}

// put queues m in l and reports whether it, or something newer, will be written. last closes the lane. What is
// in the way of a message is dropped, oldest first, if it may be. On shared streams a last message waits while
// the queue is over its bound, or holds something and the payer has no room.
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
		s.room.Wait()
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
	}
	if m.Paid == 0 && m.Batch == nil {
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
		s.ready.Push(l)
	}
	s.signal()
	return true
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close tells the writer to end once everything is written.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signal()
}

// Abandon drops everything: nobody reads any more.
func (s *stream) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandonLocked()
}

// abandonUnread abandons a stream that nothing more comes to and that nobody reads.
func (s *stream) abandonUnread() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && s.turn == nil {
		s.abandonLocked()
	}
}

func (s *stream) abandonLocked() {
	if s.gone {
		return
	}
	s.gone = true
	for s.ready.Len() > 0 {
		l := s.ready.Pop()
		Settle(s.budget, l.queue.items[l.queue.off:]...)
		l.queue, l.vacant = Queue[Message]{}, 0
	}
	s.bytes = 0
	close(s.Lost)
	s.room.Broadcast()
	s.signal()
}

// Drain waits until the answers on a shared stream are written, nobody reads any more or ctx ends.
func (s *stream) Drain(ctx context.Context) {
	if !s.shared {
		return
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.room.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.kept > 0 && !s.gone && ctx.Err() == nil {
		s.room.Wait()
	}
}

// takeMessages and takeBytes bound what is written in one piece.
const (
	takeMessages = 64
	takeBytes    = 64 << 10
)

// take appends the next messages to ms; those before are written. done tells that none will follow.
func (s *stream) take(ms []Message) (_ []Message, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept -= s.taken
	s.taken = 0
	for n := 0; s.ready.Len() > 0 && len(ms) < takeMessages && n < takeBytes; {
		l := s.ready.Pop()
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
	s.room.Broadcast()
	return ms, len(ms) == 0 && (s.closed || s.gone)
}

// sink writes to one connection.
type sink interface {
	write([]Message) error // all of them, flushed
	heartbeat() error      // a sign of life
}

// writer is the right to write what a stream holds.
type writer struct {
	stop chan struct{} // closed when somebody else wants it
	done chan struct{} // closed when it is free
}

// errReplaced ends a writer whose stream is read on another connection now.
var errReplaced = errors.New("the stream is read on another connection")

// attach makes the caller the writer of s: a former one is told to stop and waited for. The caller ends
// its turn with detach.
func (s *stream) attach() *writer {
	t := &writer{stop: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	former := s.turn
	s.turn = t
	s.mu.Unlock()
	if former != nil {
		close(former.stop)
		<-former.done
	}
	return t
}

func (s *stream) detach(t *writer) {
	s.mu.Lock()
	if s.turn == t {
		s.turn = nil
	}
	s.mu.Unlock()
	close(t.done)
}

// run writes what is queued until the stream is done, its turn or the connection ends (gone is closed) or
// writing fails. A sign of life goes out whenever nothing was written for a heartbeat; 0 means never.
func (s *stream) run(t *writer, gone <-chan struct{}, w sink, heartbeat time.Duration) error {
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
		case <-t.stop:
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
			err := s.write(w, ms)
			if err != nil {
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
		case <-t.stop:
		case <-quiet:
			if err := w.heartbeat(); err != nil {
				return err
			}
			timer.Reset(heartbeat)
		}
	}
}

// write writes messages and settles them, also if the sink panics.
func (s *stream) write(w sink, ms []Message) error {
	defer func() {
		Settle(s.budget, ms...)
		clear(ms)
	}()
	return w.write(ms)
}
