package edge

import (
	"context"
	"errors"
	"sync"
	"time"
)

// laneMessages is how many messages of one request, or of a session's own, wait to be written.
const laneMessages = 1000

// lane is the queue of one source of messages on a stream: a request, or the session itself. It is
// guarded by the mutex of its stream.
type lane struct {
	queue  fifo[message]
	closed bool // its response is queued or written
}

// dropOldest removes the oldest message that may be dropped and returns its size; 0 if there is none.
func (l *lane) dropOldest() int {
	for i := l.queue.off; i < len(l.queue.items); i++ {
		if m := l.queue.items[i]; !m.keep {
			copy(l.queue.items[l.queue.off+1:i+1], l.queue.items[l.queue.off:i])
			l.queue.pop()
			return m.size()
		}
	}
	return 0
}

// stream is the queue before the one writer of a connection. Each message stands in its lane, and ready
// holds that lane once for it: so messages go out in the order of arrival, and a lane that is full can
// let its newest message take the place of its oldest.
type stream struct {
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
func (s *stream) init(bound int) {
	s.room.L = &s.mu
	s.bound = bound
	s.wake = make(chan struct{}, 1)
	s.lost = make(chan struct{})
}

// put queues m in l and reports whether it, or something newer, will be written. last closes the lane.
// On shared streams a last message waits while the queue is over its bound.
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
	for last && s.shared && s.bytes > s.bound && !s.gone {
		s.room.Wait()
	}
	if s.gone || s.closed {
		return false
	}
	if !last && (l.queue.len() >= laneMessages || s.bytes > 0 && s.bytes+m.size() > s.bound) {
		dropped := l.dropOldest()
		if dropped == 0 {
			return false
		}
		s.bytes += m.size() - dropped
		l.queue.push(m)
		return true
	}
	s.bytes += m.size()
	if m.keep {
		s.kept++
	}
	l.queue.push(m)
	s.ready.push(l)
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
	if s.gone {
		return
	}
	s.gone = true
	for s.ready.len() > 0 {
		s.ready.pop().queue = fifo[message]{}
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
		m := s.ready.pop().queue.pop()
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
			err := w.write(ms)
			clear(ms)
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
