package link

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// dispatch is the context of one request with a message, and records how far the message got: it is an http1.Watch. It
// has the values of the context that it is made of, but ends only by cancel. It takes less than context.WithCancel and
// the hooks of httptrace, which matters because every call has one.
type dispatch struct {
	context.Context
	sent    func() // called when the message has been written, or given up; may be nil
	once    sync.Once
	started atomic.Bool // there was a connection for it: it may have reached the server

	mu    sync.Mutex
	done  chan struct{} // made when it is asked for
	ended bool
	after []*func() // which cancel calls, each on its own goroutine
}

// GetConn implements http1.Watch. If the request is made again on another connection, nothing of it was written on the
// one before.
func (d *dispatch) GetConn() { d.started.Store(false) }

// GotConn implements http1.Watch.
func (d *dispatch) GotConn() { d.started.Store(true) }

// WroteRequest implements http1.Watch.
func (d *dispatch) WroteRequest() {
	if d.sent != nil {
		d.once.Do(d.sent)
	}
}

// cancel ends the request.
func (d *dispatch) cancel() {
	d.mu.Lock()
	if !d.ended && d.done != nil {
		close(d.done)
	}
	d.ended = true
	after := d.after
	d.after = nil
	d.mu.Unlock()
	for _, f := range after {
		go (*f)()
	}
}

// Deadline implements context.Context.
func (d *dispatch) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (d *dispatch) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		if d.ended {
			close(d.done)
		}
	}
	return d.done
}

// Err implements context.Context.
func (d *dispatch) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return context.Canceled
	}
	return nil
}

// AfterFunc is context.AfterFunc, which calls it.
func (d *dispatch) AfterFunc(f func()) (stop func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		go f()
		return func() bool { return false }
	}
	d.after = append(d.after, &f)
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		i := slices.Index(d.after, &f)
		if i < 0 {
			return false
		}
		d.after = slices.Delete(d.after, i, i+1)
		return true
	}
}
