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

// slot holds one session with a server. Its states:
//
//   - empty: no session yet, or the last attempt to connect has failed
//   - connecting: attempt is in progress; session is the one that it replaces
//   - connected: session is open
//   - lost: session has ended
//   - closed: for good
//
// A slot connects when a session is needed and it has none that is open.
type slot struct {
	s      *endpoint
	client string // owner; empty for the router's own, which is also the shared one
	dial   dialFunc
	gone   func() // called once the slot is closed; may be nil
	lists  *listCache

	ctx    context.Context // ends when the slot is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	kept    bool // a goroutine replaces lost sessions
	session *link.Session
	attempt *attempt // to connect; nil if none is in progress
	closed  bool

	opened  atomic.Int64 // number of attempts so far, and of the last session
	mail    mail
	callers callers // callers of the current session
}

// dialFunc opens a session for a slot.
type dialFunc func(ctx context.Context, sl *slot) (*link.Session, error)

// attempt is one attempt to connect, shared by all requests that need the session.
type attempt struct {
	began   time.Time
	first   bool          // of the slot
	done    chan struct{} // closed at its end
	session *link.Session // its result
	err     error
}

// current returns the open session without connecting; nil if there is none.
func (sl *slot) current() *link.Session {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.open()
}

// open returns the open session. The caller holds sl.mu.
func (sl *slot) open() *link.Session {
	if sl.session == nil || sl.session.Err() != nil {
		return nil
	}
	return sl.session
}

// connect returns the session, connecting if there is none. The connection attempt is shared, so it does not end with
// ctx. If the server was replaced, the error is admission.ErrRetired.
func (sl *slot) connect(ctx context.Context) (*link.Session, error) {
	sl.mu.Lock()
	if session := sl.open(); session != nil {
		sl.mu.Unlock()
		return session, nil
	}
	a, err := sl.join()
	sl.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.session, a.err
	case <-sl.s.queue.Retired():
		return nil, admission.ErrRetired
	case <-ctx.Done():
		return nil, sl.gaveUp(ctx)
	}
}

// connectUnlessDown is like connect, for requests that concern many servers, such as lists. It does not connect to a
// server known to be unreachable.
func (sl *slot) connectUnlessDown(ctx context.Context) (*link.Session, error) {
	if session := sl.current(); session != nil {
		return session, nil
	}
	if err := sl.s.health.machine.Refuses(); err != nil {
		return nil, err
	}
	return sl.connect(ctx)
}

// join returns the attempt in progress, starting one if there is none. The caller holds sl.mu.
func (sl *slot) join() (*attempt, error) {
	switch {
	case sl.closed || sl.s.ctx.Err() != nil || sl.s.config.Disabled:
		return nil, sl.unused()
	case sl.s.queue.IsRetired():
		return nil, admission.ErrRetired
	case sl.attempt != nil:
		return sl.attempt, nil
	}
	a := &attempt{began: time.Now(), first: sl.opened.Load() == 0, done: make(chan struct{})}
	sl.attempt = a
	if sl.client == "" {
		sl.s.health.on(health.Dialing, nil)
	}
	old := sl.session
	sl.s.wg.Go(func() {
		defer sl.s.rescue("connecting", func(f *link.Failure) { sl.abandon(a, f) })
		sl.replace(old)
	})
	return a, nil
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
	if sl.attempt == nil || !sl.attempt.first {
		return nil
	}
	return sl.s.failure(reason.Unavailable, fmt.Sprintf("still starting (%s of at most %s)",
		seconds(time.Since(sl.attempt.began).Round(time.Second)), seconds(sl.s.config.ConnectLimit())))
}

// unused returns the failure of requests to a slot that does not connect.
func (sl *slot) unused() error {
	why := reason.Unavailable
	if sl.s.ctx.Err() == nil && !sl.s.config.Disabled {
		why = reason.Disconnected // its client has left; the server may be fine
	}
	return sl.s.failure(why, "it is not in use")
}

// replace makes the attempt in progress: it replaces the old session by a new one.
func (sl *slot) replace(old *link.Session) {
	sl.closeLost(old)
	// The attempt ends with the slot, not with the waiting requests: a command killed during its installation would
	// start from the beginning.
	ctx, cancel := context.WithTimeoutCause(sl.ctx, sl.s.config.ConnectLimit(), errors.New("the handshake took too long"))
	defer cancel()
	session, err := sl.dial(ctx, sl)
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
	if err == nil {
		sl.lists.sessionReplaced() // the new process may list other items
	}
	sl.settle(session, err)
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

// closeLost releases a lost session, which may be nil.
func (sl *slot) closeLost(old *link.Session) {
	switch {
	case old == nil:
	case sl.s.config.URL == "":
		old.Close() // a process must end before its successor starts
	default:
		sl.s.wg.Go(func() {
			defer sl.s.rescue("closing a session", nil)
			limit := stopTime
			if old.Drain(sl.s.ctx); sl.s.ctx.Err() != nil {
				limit = 0 // it was lost anyway
			}
			old.CloseWithin(limit)
		})
	}
}

// settle ends the attempt in progress. The caller holds sl.mu.
func (sl *slot) settle(session *link.Session, err error) {
	sl.attempt.session, sl.attempt.err = session, err
	close(sl.attempt.done)
	sl.session, sl.attempt = session, nil
}

// abandon ends a connection attempt that panicked.
func (sl *slot) abandon(a *attempt, f *link.Failure) {
	sl.s.health.unconnected(sl.client, f)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.attempt == a {
		sl.settle(nil, f)
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
	for _, call := range sl.s.clients.replay(sl.s.config.Name, sl.client, sl.s.perClient()) {
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

// lost reports whether the session has ended without a replacement.
func (sl *slot) lost() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.session != nil && sl.session.Err() != nil && sl.attempt == nil
}

// tell sends a notification in the current session without connecting.
func (sl *slot) tell(ctx context.Context, method string, params []byte) error {
	session := sl.current()
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
