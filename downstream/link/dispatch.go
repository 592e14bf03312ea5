package link

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// dispatch is the context of one HTTP request and records how far the message got: it is an http1.Watch. It has the
// values of its parent context, but ends only by cancel. It is cheaper than context.WithCancel with the hooks of
// httptrace, which matters because every call has one.
type dispatch struct {
	context.Context
	sent    func() // called when the message has been written or abandoned; may be nil
	once    sync.Once
	started atomic.Bool // it had a connection and may have reached the server

	mu    sync.Mutex
	done  chan struct{} // created on first use
	ended bool
	after []*func() // called by cancel, each in its own goroutine
}

// GetConn implements http1.Watch. A request that is repeated on another connection was not written on the previous
// one.
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

// AfterFunc is called by context.AfterFunc.
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
