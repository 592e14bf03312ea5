package edge

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// laneMessages is how many messages of one request, or of a session's own, wait to be written.
const laneMessages = 1000

// lane is the queue of one source of messages on a stream: a request, or the session itself. It is
// guarded by the mutex of its stream.
type lane struct {
	queue  fifo[message]
	vacant int  // places in ready whose messages were dropped
	closed bool // its response is queued or written
}

// dropOldest removes the oldest message that may be dropped; false if there is none.
func (l *lane) dropOldest() (message, bool) {
	for i := l.queue.off; i < len(l.queue.items); i++ {
		if m := l.queue.items[i]; !m.keep {
			copy(l.queue.items[l.queue.off+1:i+1], l.queue.items[l.queue.off:i])
			l.queue.pop()
			l.vacant++
			return m, true
		}
	}
	return message{}, false
}

// stream is the queue before the one writer of a connection. Each message stands in its lane, and ready
// holds that lane once for it: messages go out in the order of arrival, and in a lane that is full the newest
// takes the place of a dropped one. What is queued or being written is charged to its payers.
type stream struct {
	budget *limit.Budget
	mu     sync.Mutex
	room   sync.Cond // told when messages were taken, or never will be
	ready  fifo[*lane]
	bytes  int
	kept   int           // messages that must not be lost, queued or being written
	taken  int           // of those, the ones being written
	bound  int           // bytes; beyond it lanes lose their oldest, and responses wait
	wake   chan struct{} // holds one token while the writer has something to look at
	lost   chan struct{} // closed when nobody will read any more
	turn   *turn         // of the present writer, if any
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
	s.lost = make(chan struct{})
}

// put queues m in l and reports whether it, or something newer, will be written. last closes the lane. What is
// in the way of a message is dropped, oldest first, if it may be. On shared streams a last message waits while
// the queue is over its bound, or holds something and the payer has no room.
func (s *stream) put(l *lane, m message, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(l, m, last)
}

func (s *stream) putLocked(l *lane, m message, last bool) bool {
	if l.closed {
		return false
	}
	l.closed = last
	prepaid := m.paid > 0
	for last && s.shared && !s.gone && s.bytes > 0 && (s.bytes > s.bound || !m.pay(s.budget)) {
		s.room.Wait()
	}
	if s.gone || s.closed {
		if m.paid > 0 && !prepaid {
			settle(s.budget, m)
		}
		return false
	}
	for !last && (l.queue.len() >= laneMessages || s.bytes > 0 && s.bytes+m.size() > s.bound || !m.pay(s.budget)) {
		old, ok := l.dropOldest()
		if !ok {
			return false
		}
		s.bytes -= old.size()
		settle(s.budget, old)
	}
	if m.paid == 0 && m.batch == nil {
		m.paid = m.size()
		s.budget.Charge(m.payer, m.paid)
	}
	s.bytes += m.size()
	if m.keep {
		s.kept++
	}
	l.queue.push(m)
	if l.vacant > 0 {
		l.vacant--
	} else {
		s.ready.push(l)
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

// abandon drops everything: nobody reads any more.
func (s *stream) abandon() {
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
	for s.ready.len() > 0 {
		l := s.ready.pop()
		settle(s.budget, l.queue.items[l.queue.off:]...)
		l.queue, l.vacant = fifo[message]{}, 0
	}
	s.bytes = 0
	close(s.lost)
	s.room.Broadcast()
	s.signal()
}

// drain waits until the answers on a shared stream are written, nobody reads any more or ctx ends.
func (s *stream) drain(ctx context.Context) {
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
func (s *stream) take(ms []message) (_ []message, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept -= s.taken
	s.taken = 0
	for n := 0; s.ready.len() > 0 && len(ms) < takeMessages && n < takeBytes; {
		l := s.ready.pop()
		if l.queue.len() == 0 {
			l.vacant--
			continue
		}
		m := l.queue.pop()
		n += m.size()
		s.bytes -= m.size()
		if m.keep {
			s.taken++
		}
		ms = append(ms, m)
	}
	s.room.Broadcast()
	return ms, len(ms) == 0 && (s.closed || s.gone)
}

// sink writes to one connection.
type sink interface {
	write([]message) error // all of them, flushed
	beat() error           // a sign of life
}

// turn is the right to write what a stream holds.
type turn struct {
	stop chan struct{} // closed when somebody else wants it
	done chan struct{} // closed when it is free
}

// errReplaced ends a writer whose stream is read on another connection now.
var errReplaced = errors.New("the stream is read on another connection")

// attach makes the caller the writer of s: a former one is told to stop and waited for. The caller ends
// its turn with detach.
func (s *stream) attach() *turn {
	t := &turn{stop: make(chan struct{}), done: make(chan struct{})}
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

func (s *stream) detach(t *turn) {
	s.mu.Lock()
	if s.turn == t {
		s.turn = nil
	}
	s.mu.Unlock()
	close(t.done)
}

// run writes what is queued until the stream is done, its turn or the connection ends (gone is closed) or
// writing fails. A sign of life goes out whenever nothing was written for a heartbeat; 0 means never.
func (s *stream) run(t *turn, gone <-chan struct{}, w sink, heartbeat time.Duration) error {
	var quiet <-chan time.Time
	var timer *time.Timer
	if heartbeat > 0 {
		timer = time.NewTimer(heartbeat)
		defer timer.Stop()
		quiet = timer.C
	}
	var ms []message
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
			if err := w.beat(); err != nil {
				return err
			}
			timer.Reset(heartbeat)
		}
	}
}

// write writes messages and settles them, also if the sink panics.
func (s *stream) write(w sink, ms []message) error {
	defer func() {
		settle(s.budget, ms...)
		clear(ms)
	}()
	return w.write(ms)
}
