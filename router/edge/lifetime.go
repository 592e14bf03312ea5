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
// stop, drain, close, exit and wait.
type lifetime struct {
	log *slog.Logger

	mu     sync.RWMutex
	closed bool // set by close: refuse all new work

	stopping atomic.Bool     // set by stop: refuse new requests
	stopped  context.Context // ends when stopping becomes true
	halt     context.CancelFunc
	busy     atomic.Int64    // requests and notifications not yet served, and responses not yet written
	idle     chan struct{}   // receives when busy falls to 0 while stopping
	quit     context.Context // ends at the end of Stop
	exit     context.CancelFunc
	work     sync.WaitGroup // all goroutines, and what beginWork counts
}

func newLifetime(log *slog.Logger) *lifetime {
	l := &lifetime{log: log, idle: make(chan struct{}, 1)}
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

// beginRequest counts a request or notification until endRequest. It must precede the check of stopping, because drain
// waits for all work that is not refused.
func (l *lifetime) beginRequest() { l.busy.Add(1) }

func (l *lifetime) endRequest() {
	if l.busy.Add(-1) == 0 && l.stopping.Load() {
		select {
		case l.idle <- struct{}{}:
		default:
		}
	}
}

// drain waits until nothing is busy or ctx ends.
func (l *lifetime) drain(ctx context.Context) {
	for ctx.Err() == nil && l.busy.Load() > 0 {
		select {
		case <-l.idle:
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
		return fmt.Errorf("stopping: %d requests and some connections do not end", l.busy.Load())
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
