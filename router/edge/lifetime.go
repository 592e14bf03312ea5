package edge

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// stopGrace is how long Stop waits for handlers that it has cancelled.
const stopGrace = 2 * time.Second

// lifetime counts the work of an Edge, so that Stop can refuse new work and wait for the rest. Stop calls
// stop, busy.wait, close, posts.wait, exit and wait.
type lifetime struct {
	log *slog.Logger

	mu     sync.RWMutex
	closed bool // set by close: refuse all new work

	stopping atomic.Bool     // set by stop: refuse new requests
	ending   atomic.Bool     // set by Drain: refuse also the requests of sessions that are kept
	stopped  context.Context // ends when stopping becomes true
	halt     context.CancelFunc
	busy     count           // requests and notifications not yet served, and responses not yet written
	posts    count           // requests by POST that are not yet answered, also those that other replicas serve
	quit     context.Context // ends at the end of Stop
	exit     context.CancelFunc
	work     sync.WaitGroup // all goroutines, and what beginWork counts
}

func newLifetime(log *slog.Logger) *lifetime {
	l := &lifetime{log: log, busy: newCount(), posts: newCount()}
	l.stopped, l.halt = context.WithCancel(context.Background())
	l.quit, l.exit = context.WithCancel(context.Background())
	return l
}

// stop refuses new requests.
func (l *lifetime) stop() {
	l.stopping.Store(true)
	l.halt()
}

// beginWork counts an HTTP handler, or ServeStdio, until endWork. It reports false once the lifetime is closed.
func (l *lifetime) beginWork() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return false
	}
	l.work.Add(1)
	return true
}

func (l *lifetime) endWork() { l.work.Done() }

// spawn runs f in a goroutine that wait waits for. A panic is logged and ends only f.
func (l *lifetime) spawn(what string, f func()) {
	l.work.Go(func() {
		defer safe.Recover(l.log, what, nil)
		f()
	})
}

// count is a number of requests. A request must be counted before the check of stopping, so that Stop waits for all
// that is not refused.
type count struct {
	n    atomic.Int64
	none chan struct{} // receives when n falls to 0
}

func newCount() count { return count{none: make(chan struct{}, 1)} }

func (c *count) begin() { c.n.Add(1) }

func (c *count) end() {
	if c.n.Add(-1) == 0 {
		select {
		case c.none <- struct{}{}:
		default:
		}
	}
}

// wait waits until there are none or ctx ends.
func (c *count) wait(ctx context.Context) {
	for ctx.Err() == nil && c.n.Load() > 0 {
		select {
		case <-c.none:
		case <-ctx.Done():
		}
	}
}

// close refuses further work. It reports false if the lifetime was closed before.
func (l *lifetime) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	return true
}

// wait waits for all work to end, at most stopGrace.
func (l *lifetime) wait() error {
	ended := make(chan struct{})
	go func() {
		l.work.Wait()
		close(ended)
	}()
	if !within(stopGrace, ended) {
		return fmt.Errorf("stopping: %d requests and some connections do not end", l.busy.n.Load())
	}
	return nil
}

// within waits at most limit for done and reports whether it was closed.
func within(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
