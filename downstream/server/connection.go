package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// ProtocolVersion is the version that the router offers to downstream servers in the handshake.
const ProtocolVersion = string(protocol.V20251125)

// MaxRestoring is the number of concurrent requests that replay or end subscriptions.
const MaxRestoring = 16

// Connection holds one session with a server. Its states:
//
//   - empty: no session yet, or the last attempt to connect has failed
//   - connecting: attempt is in progress; session is the one that it replaces
//   - connected: session is open
//   - lost: session has ended
//   - closed: for good
//
// A connection connects when a session is needed and it has none that is open.
type Connection struct {
	Lists *Lists

	server *Server
	client string // owner; empty for the router's own, which is also the shared one

	ctx    context.Context // ends when the connection is closed
	cancel context.CancelFunc

	mu       sync.Mutex
	kept     bool // a goroutine replaces lost sessions
	session  *link.Session
	attempt  *attempt // to connect; nil if none is in progress
	attempts int64    // number of attempts so far, and of the last session

	notifications notifications
	callers       callers // callers of the current session
}

// attempt is one attempt to connect, shared by all requests that need the session.
type attempt struct {
	began   time.Time
	number  int64
	done    chan struct{} // closed at its end
	session *link.Session // its result
	err     error
}

// newConnection returns the connection of a client, or the router's own if client is empty.
func newConnection(s *Server, client string) *Connection {
	c := &Connection{server: s, client: client}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.Lists = newLists(c)
	return c
}

// Session returns the open session without connecting; nil if there is none.
func (c *Connection) Session() *link.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open()
}

// open returns the open session unless another replica may run the server now. The caller holds c.mu.
func (c *Connection) open() *link.Session {
	if c.session == nil || c.session.Err() != nil || !held(c.server.Config.Lease) {
		return nil
	}
	return c.session
}

// Connect returns the session, connecting if there is none. The connection attempt is shared, so it does not end with
// ctx. If the server was replaced, the error is admission.ErrRetired.
func (c *Connection) Connect(ctx context.Context) (*link.Session, error) {
	c.mu.Lock()
	if session := c.open(); session != nil {
		c.mu.Unlock()
		return session, nil
	}
	a, err := c.join()
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.session, a.err
	case <-c.server.Queue.Retired():
		return nil, admission.ErrRetired
	case <-ctx.Done():
		return nil, c.interrupted(ctx)
	}
}

// ConnectUnlessDown is like Connect, for requests that concern many servers, such as lists. It does not connect to a
// server known to be unreachable.
func (c *Connection) ConnectUnlessDown(ctx context.Context) (*link.Session, error) {
	if session := c.Session(); session != nil {
		return session, nil
	}
	if err := c.server.health.machine.Refuses(); err != nil {
		return nil, err
	}
	return c.Connect(ctx)
}

// join returns the attempt in progress, starting one if there is none. The caller holds c.mu.
func (c *Connection) join() (*attempt, error) {
	switch {
	case c.ctx.Err() != nil || c.server.Config.Disabled:
		return nil, c.unused()
	case c.server.Queue.IsRetired():
		return nil, admission.ErrRetired
	case c.server.Anyones():
		return nil, c.server.failure(reason.Unauthorized, anyones)
	case !held(c.server.Config.Lease): // it is about to be replaced
		return nil, c.server.failure(reason.Unavailable, "this replica has lost the lease under which it ran it")
	case c.attempt != nil:
		return c.attempt, nil
	}
	c.attempts++
	a := &attempt{began: time.Now(), number: c.attempts, done: make(chan struct{})}
	c.attempt = a
	if c.client == "" {
		c.server.health.on(health.Dialing, nil)
	}
	old := c.session
	c.server.wg.Go(func() { c.replace(old, a) })
	return a, nil
}

// interrupted returns the error of a request whose ctx ended while it waited for the session.
func (c *Connection) interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	var f *link.Failure
	if errors.Is(cause, context.DeadlineExceeded) || errors.As(cause, &f) && f.Reason == reason.Timeout {
		if starting := c.Starting(); starting != nil {
			return starting
		}
	}
	return cause
}

// Starting returns a failure that reports the startup during the first connection attempt, which is long if a command
// must be installed. Otherwise it returns nil.
func (c *Connection) Starting() *link.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempt == nil || c.attempt.number > 1 {
		return nil
	}
	return c.server.failure(reason.Unavailable, fmt.Sprintf("still starting (%s of at most %s)",
		Seconds(time.Since(c.attempt.began).Round(time.Second)), Seconds(c.server.Config.ConnectLimit())))
}

// Seconds formats a duration in seconds, without a fraction if it is whole.
func Seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

// unused returns the failure of requests to a connection that does not connect.
func (c *Connection) unused() error {
	why := reason.Unavailable
	if c.server.ctx.Err() == nil && !c.server.Config.Disabled {
		why = reason.Disconnected // its client has left; the server may be fine
	}
	return c.server.failure(why, "it is not in use")
}

// replace makes an attempt: it replaces the old session, which may be nil, by a new one.
func (c *Connection) replace(old *link.Session, a *attempt) {
	for _, ended := range c.server.after {
		select {
		case <-ended.Done():
		case <-c.ctx.Done():
		}
	}
	// The attempt ends with the connection, not with the waiting requests: a command killed during its installation
	// would start from the beginning.
	ctx, cancel := context.WithTimeout(c.ctx, c.server.Config.ConnectLimit())
	defer cancel()
	session, err := c.establish(ctx, old, a.number)
	c.mu.Lock()
	if err == nil {
		c.Lists.sessionReplaced() // the new process may list other items
	}
	a.session, a.err = session, err
	c.session, c.attempt = session, nil
	close(a.done)
	closed := c.ctx.Err() != nil
	c.mu.Unlock()
	switch {
	case session == nil:
	case closed:
		session.Close()
	default:
		c.sendInitialized(ctx, session) // the client may have sent it while there was no session
	}
	if c.client == "" {
		c.server.Memory.prove(err)
	}
}

// establish opens and restores a session. It updates the health before the waiting requests continue.
func (c *Connection) establish(
	ctx context.Context, old *link.Session, number int64,
) (session *link.Session, err error) {
	s := c.server
	defer s.RecoverPanic("connecting", func(f *link.Failure) {
		if session != nil {
			session.Close()
		}
		session, err = nil, f
		s.health.unconnected(c.client, f)
	})
	c.closeLost(old)
	if session, err = c.dial(ctx, number); err != nil {
		if c.ctx.Err() == nil {
			s.health.unconnected(c.client, err)
		}
		return nil, err
	}
	c.sendInitialized(ctx, session)
	c.restore(ctx, session)
	s.health.connected(c.client, session)
	return session, nil
}

// closeLost releases a lost session, which may be nil.
func (c *Connection) closeLost(old *link.Session) {
	s := c.server
	switch {
	case old == nil:
	case s.Config.URL == "":
		old.CloseWithin(link.EndTime(s.Config.ConnectLimit())) // a process must end before its successor starts
	default:
		s.wg.Go(func() {
			defer s.RecoverPanic("closing a session", nil)
			limit := StopTime
			if old.Drain(s.ctx); s.ctx.Err() != nil {
				limit = 0 // it was lost anyway
			}
			old.CloseWithin(limit)
		})
	}
}

// dial opens a session.
func (c *Connection) dial(ctx context.Context, number int64) (*link.Session, error) {
	s, cfg := c.server, c.server.Config
	target := link.Target{
		Env: cfg.Env, Dir: cfg.Cwd, URL: cfg.URL, Headers: cfg.Headers, SSE: cfg.Type == TransportSSE,
		Dial: s.opts.Embedded[cfg.Name],
	}
	if cfg.Command != "" {
		target.Command = append([]string{cfg.Command}, cfg.Args...)
	}
	var transport http.RoundTripper = s.opts.Transport
	switch {
	case cfg.Via != nil:
		transport = cfg.Via
	case s.tokens != nil:
		transport = s.tokens.Transport(transport)
	}
	params, initialized := s.opts.Clients.Initialize(c.client)
	// The client of a session has done the handshake and expects what the server does then. So do other replicas, and
	// the clients that share a process.
	handshake := params != nil || cfg.Via != nil || target.URL == ""
	if params == nil {
		none := struct{}{}
		initialized = true
		params, _ = json.Marshal(map[string]any{
			"protocolVersion": ProtocolVersion,
			// The server's requests are relayed to the client of the call, which may have these capabilities.
			"capabilities": map[string]any{"elicitation": none, "roots": none, "sampling": none},
			"clientInfo":   map[string]string{"name": "agenticnexus-router", "version": s.opts.Version},
		})
	}
	if capabilities := jsonrpc.Get(params, "capabilities"); capabilities != nil {
		params = jsonrpc.Set(params, "capabilities", cfg.Announced(capabilities))
	}
	return link.Connect(ctx, link.Options{
		Server: cfg.Name, Target: target, Initialize: params, Handler: handler{c, number},
		MaxMessage: s.opts.MaxMessage, HTTP: transport, Logger: s.opts.Logger, Mask: s.opts.Mask,
		Errors: &s.stderr, ClientDriven: !initialized,
		Era: &s.era, Handshake: handshake,
	})
}

// sendInitialized sends notifications/initialized in a client's session, if the client has sent it.
func (c *Connection) sendInitialized(ctx context.Context, session *link.Session) {
	if _, initialized := c.server.opts.Clients.Initialize(c.client); !initialized {
		return
	}
	if err := session.Notify(ctx, "notifications/initialized", nil); err != nil {
		c.server.opts.Logger.Debug("cannot send notifications/initialized", "server", c.server.Config.Name, "error", err)
	}
}

// restore replays log levels and subscriptions in a new session.
func (c *Connection) restore(ctx context.Context, session *link.Session) {
	s := c.server
	ctx, cancel := context.WithTimeout(ctx, s.opts.ListDeadline)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(MaxRestoring)
	for _, call := range s.opts.Clients.replay(s.Key(), c.client, s.Config.PerClient()) {
		g.Go(func() error {
			defer s.RecoverPanic("restoring a session", nil)
			if reply, err := session.Call(ctx, call); err != nil || reply.Err != nil {
				s.opts.Logger.Warn("cannot restore a log level or a subscription",
					"server", s.Config.Name, "method", call.Method, "error", err,
					"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
			}
			return nil // continue with the others
		})
	}
	_ = g.Wait() // always nil
}

// Keep makes a client's connection replace lost sessions immediately instead of on next use, because the client waits
// for notifications of the server. The router's own session is kept anyway.
func (c *Connection) Keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == "" || c.kept || c.ctx.Err() != nil || c.server.Config.Disabled || c.server.Anyones() {
		return
	}
	c.kept = true
	c.server.wg.Go(func() {
		defer c.server.RecoverPanic("keeping a session", nil)
		c.supervise(c.ctx, func(ctx context.Context, session *link.Session) {
			select {
			case <-session.Done():
			case <-ctx.Done():
			}
		}, func(ctx context.Context, d time.Duration) bool { return sleep(ctx, d, nil) })
	})
}

// lost reports whether the session has ended without a replacement.
func (c *Connection) lost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != nil && c.session.Err() != nil && c.attempt == nil
}

// Notify sends a notification in the current session without connecting.
func (c *Connection) Notify(ctx context.Context, method string, params []byte) error {
	session := c.Session()
	if session == nil {
		return c.unused()
	}
	return session.Notify(ctx, method, params)
}

// close ends the session within limit. The connection opens no other session.
func (c *Connection) close(limit time.Duration) {
	c.mu.Lock()
	c.cancel()
	session := c.session
	c.mu.Unlock()
	if session != nil {
		session.CloseWithin(limit)
	}
}

// Call sends a request, connecting if there is no session. tool is the tool's own name, for tools/call.
func (c *Connection) Call(ctx context.Context, call *link.Call, tool string) (link.Reply, error) {
	c.callers.add(call.Caller)
	session, err := c.Connect(ctx)
	if err != nil {
		if failure, ok := errors.AsType[*link.Failure](err); ok {
			// The failure is that of the handshake, not of the call.
			unsent := *failure
			unsent.MaybeDelivered, unsent.Lost, unsent.Unknown = false, false, false
			err = &unsent
		}
		return link.Reply{}, err
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(tracing.ProtocolVersion.String(session.Version))
	}
	if tool != "" && session.ChecksParamHeaders() {
		return c.Lists.callWithParamHeaders(ctx, session, call, tool)
	}
	return session.Call(ctx, call)
}
