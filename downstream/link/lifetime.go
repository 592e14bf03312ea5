package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// lifetime holds the lifecycle of a session and its goroutines.
type lifetime struct {
	server string
	logger *slog.Logger

	established bool        // the handshake is done; immutable once ctx has ended
	forgotten   atomic.Bool // the server no longer knows the session

	ctx      context.Context // ends when the session is lost or closed; its cause is the *Failure
	cancel   context.CancelCauseFunc
	closed   context.Context // ends with Close; calls over HTTP outlive the loss of the session
	finish   context.CancelFunc
	graceful context.Context // ends when the time for a clean end is over
	hurry    context.CancelFunc
	mu       sync.Mutex // orders spawn before the end of ctx, and thus before the wait in Close
	wg       sync.WaitGroup
	once     sync.Once
}

func newLifetime(server string, logger *slog.Logger) *lifetime {
	l := &lifetime{server: server, logger: logger}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.closed, l.finish = context.WithCancel(context.Background())
	l.graceful, l.hurry = context.WithCancel(context.Background())
	return l
}

// lose ends a session that no longer works and logs the reason. During the handshake, Connect returns it instead.
func (l *lifetime) lose(f *Failure) {
	if l.end(f) && l.established {
		l.logger.Warn("session with server lost", "server", l.server, "reason", f.Reason, "error", f.Message)
	}
}

// establish marks the end of the handshake. It fails if the session is already lost.
func (l *lifetime) establish() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.established = true
	}
	return context.Cause(l.ctx)
}

// end marks the session as ended. It reports false if it was ended before.
func (l *lifetime) end(f *Failure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	f.Lost = true
	l.cancel(f)
	return true
}

func (l *lifetime) failure(reason, format string, args ...any) *Failure {
	return &Failure{Server: l.server, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// asFailure returns err as a *Failure of this session.
func (l *lifetime) asFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return l.failure(reason.Disconnected, "%v", err)
}

// spawn runs f in a goroutine that Close waits for. After the end of the session it does nothing and reports false.
func (l *lifetime) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.run(f)
	return true
}

// run runs f in a goroutine that Close waits for. A panic in it ends the session.
func (l *lifetime) run(f func()) {
	l.wg.Go(func() {
		defer safe.Recover(l.logger, "handling messages of server "+l.server, func(err error) {
			l.lose(l.failure(reason.Disconnected, "%v", err))
		})
		f()
	})
}

// gone ends a session that the server no longer knows.
func (l *lifetime) gone() *Failure {
	l.forgotten.Store(true)
	f := l.failure(reason.Disconnected, "the session is gone")
	l.lose(f)
	return &Failure{Server: f.Server, Reason: f.Reason, Message: f.Message, Lost: true, Unknown: true}
}
