package output

import (
	"context"
	"errors"
	"time"
)

// sink writes to one connection.
type sink interface {
	write([]Message) error // writes and flushes all messages
	heartbeat() error      // writes a no-op, such as a comment
}

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

// write writes and settles messages, also if the sink panics.
func (s *stream) write(to sink, ms []Message) error {
	defer func() {
		Settle(s.budget, ms...)
		clear(ms)
	}()
	return to.write(ms)
}
