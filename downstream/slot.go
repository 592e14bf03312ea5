package downstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// slot holds one session with a server: connected, connecting or none. A lost session is replaced when it is next
// needed.
type slot struct {
	s      *endpoint
	client string // owner; empty for the router's own, which is also the shared one
	open   func(ctx context.Context, sl *slot) (*link.Session, error)
	gone   func() // called once the slot is closed; may be nil
	lists  *lister

	ctx    context.Context // ends when the slot is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	kept    bool // a goroutine replaces lost sessions
	session *link.Session
	attempt attempt // to connect
	closed  bool

	opened  atomic.Int64 // number of sessions so far
	mail    mail
	callers callers // callers of the current session
}

// attempt is the state of connecting.
type attempt struct {
	done  chan struct{} // closed at the end of the current attempt; nil if there is none
	began time.Time     // of the current attempt
	ended bool          // an attempt has ended
	err   error         // of the last attempt
}

// get returns the session, connecting if there is none. Callers share the connection attempt, so it does not end with
// ctx. If the server was replaced, the error is admission.ErrRetired.
func (sl *slot) get(ctx context.Context) (*link.Session, error) {
	sl.mu.Lock()
	if sl.session != nil && sl.session.Err() == nil {
		defer sl.mu.Unlock()
		return sl.session, nil
	}
	if sl.closed || sl.s.ctx.Err() != nil || sl.s.config.Disabled {
		sl.mu.Unlock()
		return nil, sl.unused()
	}
	if sl.s.queue.IsRetired() {
		sl.mu.Unlock()
		return nil, admission.ErrRetired
	}
	if sl.attempt.done == nil {
		sl.attempt.done, sl.attempt.began = make(chan struct{}), time.Now()
		if sl.client == "" {
			sl.s.health.on(health.Dialing, nil)
		}
		old := sl.session
		sl.s.wg.Go(func() {
			defer sl.s.rescue("connecting", sl.abandon)
			sl.connect(old)
		})
	}
	wait := sl.attempt.done
	sl.mu.Unlock()
	select {
	case <-wait:
	case <-sl.s.queue.Retired():
		return nil, admission.ErrRetired
	case <-ctx.Done():
		return nil, sl.gaveUp(ctx)
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.attempt.err != nil {
		return nil, sl.attempt.err
	}
	return sl.session, nil
}

// gaveUp returns the error of a request whose ctx ended while it waited for the session.
func (sl *slot) gaveUp(ctx context.Context) error {
	cause := context.Cause(ctx)
	if timedOut(cause) || errors.Is(cause, context.DeadlineExceeded) {
		if f := sl.starting(); f != nil {
			return f
		}
	}
	return cause
}

// starting returns a failure that reports the startup during the first connection attempt, which is long if a command
// must be installed. Otherwise it returns nil.
func (sl *slot) starting() *link.Failure {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.attempt.done == nil || sl.attempt.ended {
		return nil
	}
	return sl.s.failure(reason.Unavailable, fmt.Sprintf("still starting (%s of at most %s)",
		seconds(time.Since(sl.attempt.began).Round(time.Second)), seconds(sl.s.config.ConnectLimit())))
}

// reach is like get, for requests that concern many servers, such as lists. It does not connect to a server known to
// be unreachable.
func (sl *slot) reach(ctx context.Context) (*link.Session, error) {
	return sl.getUnless(ctx, sl.s.health.machine.Refuses)
}

// getUnless is like get, but fails with the error of refuses if it would have to connect.
func (sl *slot) getUnless(ctx context.Context, refuses func() error) (*link.Session, error) {
	if session := sl.alive(); session != nil {
		return session, nil
	}
	if err := refuses(); err != nil {
		return nil, err
	}
	return sl.get(ctx)
}

func (sl *slot) unused() error {
	why := reason.Unavailable
	if sl.s.ctx.Err() == nil && !sl.s.config.Disabled {
		why = reason.Disconnected // its client has left; the server may be fine
	}
	return sl.s.failure(why, "it is not in use")
}

// connect replaces the old session by a new one.
func (sl *slot) connect(old *link.Session) {
	switch {
	case old == nil:
	case sl.s.config.URL != "":
		sl.s.wg.Go(func() {
			defer sl.s.rescue("closing a session", nil)
			limit := stopTime
			if old.Drain(sl.s.ctx); sl.s.ctx.Err() != nil {
				limit = 0 // it was lost anyway
			}
			old.CloseWithin(limit)
		})
	default:
		old.Close() // a process must end before its successor starts
	}
	// The attempt ends with the slot, not with the waiting requests: a command killed during its installation would
	// start from the beginning.
	ctx, cancel := context.WithTimeoutCause(sl.ctx, sl.s.config.ConnectLimit(), errors.New("the handshake took too long"))
	defer cancel()
	session, err := sl.open(ctx, sl)
	// Update the health before the waiting requests continue.
	switch {
	case err == nil:
		sl.begin(ctx, session)
		sl.restore(ctx, session)
		sl.s.health.connected(sl.client, session)
	case sl.ctx.Err() == nil:
		sl.s.health.unconnected(sl.client, err)
	}

	sl.mu.Lock()
	sl.session = session
	sl.settle(err)
	if err == nil {
		sl.lists.forget() // the new process may list other items
	}
	closed := sl.closed
	sl.mu.Unlock()
	if session == nil {
		return
	}
	if closed {
		session.Close()
		return
	}
	sl.begin(ctx, session) // the client may have sent it while there was no session
}

// settle ends the current attempt. The caller holds sl.mu.
func (sl *slot) settle(err error) {
	close(sl.attempt.done)
	sl.attempt = attempt{ended: true, err: err}
}

// abandon ends a connection attempt that panicked.
func (sl *slot) abandon(f *link.Failure) {
	sl.s.health.unconnected(sl.client, f)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.attempt.done != nil {
		sl.session = nil
		sl.settle(f)
	}
}

// begin sends notifications/initialized first in a client's session, if the client has sent it.
func (sl *slot) begin(ctx context.Context, session *link.Session) {
	if sl.client == "" {
		return
	}
	if _, initialized := sl.s.clients.initialize(sl.client); !initialized {
		return
	}
	if err := session.Notify(ctx, "notifications/initialized", nil); err != nil {
		sl.s.logger.Debug("cannot send notifications/initialized", "server", sl.s.config.Name, "error", err)
	}
}

// restore replays log levels and subscriptions in a new session.
func (sl *slot) restore(ctx context.Context, session *link.Session) {
	ctx, cancel := context.WithTimeout(ctx, sl.s.deadline)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(restoring)
	for _, call := range sl.s.clients.replay(sl.s.config.Name, sl.client, !sl.s.perClient()) {
		g.Go(func() error {
			defer sl.s.rescue("restoring a session", nil)
			reply, err := session.Call(ctx, call)
			if err == nil && reply.Err == nil {
				return nil
			}
			sl.s.logger.Warn("cannot restore a log level or a subscription",
				"server", sl.s.config.Name, "method", call.Method, "error", err,
				"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
			return nil // continue with the others
		})
	}
	_ = g.Wait() // always nil
}

// keep makes the slot replace lost sessions immediately instead of on next use, because the client waits for
// notifications of the server. The router's own session is kept anyway.
func (sl *slot) keep() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.client == "" || sl.kept || sl.closed || sl.s.ctx.Err() != nil {
		return
	}
	sl.kept = true
	if sl.s.config.Disabled {
		return // until a new configuration
	}
	sl.s.wg.Go(func() {
		defer sl.s.rescue("keeping a session", nil)
		sl.supervise(sl.ctx, func(ctx context.Context, session *link.Session) {
			select {
			case <-session.Done():
			case <-ctx.Done():
			}
		}, func(ctx context.Context, d time.Duration) bool { return sleep(ctx, d, sl.s.ctx.Done()) })
	})
}

// alive returns the session without connecting; nil if there is none.
func (sl *slot) alive() *link.Session {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.session == nil || sl.session.Err() != nil {
		return nil
	}
	return sl.session
}

// lost reports whether the session has ended without a replacement.
func (sl *slot) lost() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.session != nil && sl.session.Err() != nil && sl.attempt.done == nil
}

// tell sends a notification in the current session without connecting.
func (sl *slot) tell(ctx context.Context, method string, params []byte) error {
	session := sl.alive()
	if session == nil {
		return sl.unused()
	}
	return session.Notify(ctx, method, params)
}

// close ends the session within limit. The slot opens no other session.
func (sl *slot) close(limit time.Duration) {
	sl.mu.Lock()
	sl.closed = true
	sl.cancel()
	session := sl.session
	sl.mu.Unlock()
	if session != nil {
		session.CloseWithin(limit)
	}
	if sl.gone != nil {
		sl.gone()
	}
}
