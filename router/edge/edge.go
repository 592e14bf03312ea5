package edge

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
	"github.com/agenticnexus/agenticnexus/router/edge/sessions"
)

// Handler serves the messages of one surface.
type Handler interface {
	// Serve handles one request or notification. For a request it calls one of Reply, Fail and FailRaw, as the last
	// thing it does: a plain response is written when Serve returns. If it calls none, the client gets -32603. ctx ends
	// when the request is cancelled (the cause is a *Cancelled), when its session ends (ErrSessionEnded), when its
	// connection closes and that counts as cancelling, when its caller's key is revoked (ErrKeyRevoked), and when the
	// edge stops (ErrStopped).
	Serve(ctx context.Context, x *Exchange)
	// Ended tells that a client session has ended. Nothing of it is in flight any more.
	Ended(session string)
}

// Options are the dependencies and limits of an Edge. The zero value serves everybody within the default limits, and
// logs nothing.
type Options struct {
	Logger         *slog.Logger
	Name, Version  string     // of the server, for unauthenticated clients
	Keys           *auth.Keys // nil = neither keys nor tokens
	Limits         limit.Config
	AllowedOrigins []string // "https://app.example.com", or the host alone
	TrustedProxies []netip.Prefix
	Loopback       bool          // bound to loopback: the Host header must be loopback too
	Public         bool          // bound to other addresses: without keys, Host must be an address or an allowed host
	Heartbeat      time.Duration // quiet time before a comment is sent; 0 = 15 s
	Tracer         tracing.Tracer
	Served         func(Served) // after each request; may be nil
}

// Edge holds the client sessions and the requests in flight. Create it with New and end it with Stop.
type Edge struct {
	log     *slog.Logger
	name    string
	version string
	access  *access.Policy
	limits  limit.Config
	tracer  tracer
	served  func(Served) // may be nil
	epoch   time.Time    // all other times are counted from here

	life        *lifetime
	out         output.Outputs
	sessions    registry
	sessionless inFlight // exchanges without a session
	mrtrs       mrtrTable
	budget      *limit.Budget // requests in flight and bytes in memory, by caller
	refusals    refusals
}

// New returns a running Edge.
func New(o Options) *Edge {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Edge{
		log:     log,
		name:    o.Name,
		version: o.Version,
		access: access.New(access.Options{Keys: o.Keys, AllowedOrigins: o.AllowedOrigins,
			TrustedProxies: o.TrustedProxies, Loopback: o.Loopback, Public: o.Public}),
		limits: withDefaults(o.Limits),
		tracer: tracer{Tracer: o.Tracer},
		served: o.Served,
		epoch:  time.Now(),
		life:   newLifetime(log),
	}
	e.budget = limit.NewBudget(e.limits.Bounds(), limit.NewMemory(log))
	e.out = output.Outputs{Budget: e.budget, Bound: int(e.limits.ResultBytes), Heartbeat: o.Heartbeat, Now: e.now,
		Spawn: e.life.spawn, Stopping: e.life.stopping.Load}
	if e.out.Heartbeat <= 0 {
		e.out.Heartbeat = 15 * time.Second
	}
	store := sessions.New[*session](e.limits.Sessions, e.now)
	e.sessions = registry{edge: e, store: store, ids: sessionid.New()}
	e.life.work.Go(e.watch)
	return e
}

// withDefaults returns limits with default values for those that are not set.
func withDefaults(l limit.Config) limit.Config {
	d := limit.Default()
	if l.BodyBytes <= 0 {
		l.BodyBytes = d.BodyBytes
	}
	if l.ResultBytes <= 0 {
		l.ResultBytes = d.ResultBytes
	}
	if l.Sessions <= 0 {
		l.Sessions = d.Sessions
	}
	if l.TrackedRequests <= 0 {
		l.TrackedRequests = d.TrackedRequests
	}
	if l.SessionIdle <= 0 {
		l.SessionIdle = d.SessionIdle
	}
	return l
}

// Keep keeps the key of session ids in a folder, which is created if necessary, so that sessions survive a restart of
// the router. Without Keep, or if it fails, the key lives with the process. It is called once, before the edge serves.
// Several processes may use one folder.
func (e *Edge) Keep(folder string) error { return e.sessions.ids.Keep(folder) }

// Sessions returns the number of client sessions.
func (e *Edge) Sessions() int { return e.sessions.store.Count() }

// Tracked returns the number of requests in flight.
func (e *Edge) Tracked() int { return e.budget.InFlight() }

// Held returns the bytes of messages that the edge holds for its callers.
func (e *Edge) Held() int { return int(e.budget.Held()) }

// refusals counts requests that were refused, by cause.
type refusals struct{ overloaded, unauthorized, insufficient, unverified, forbidden atomic.Int64 }

// Refused returns the number of requests so far that were refused as overload.
func (e *Edge) Refused() int { return int(e.refusals.overloaded.Load()) }

// Losses returns what clients did not get so far: requests that were refused, by cause, and notifications that they
// did not read in time. The causes are overloaded, unauthorized for a wrong or missing key or token, insufficient for a
// token without scopes or claims that give access, unverified for one that cannot be checked because its issuer is out
// of reach, and forbidden for a foreign Host or Origin.
func (e *Edge) Losses() (refused map[string]int64, dropped int64) {
	r := &e.refusals
	return map[string]int64{"overloaded": r.overloaded.Load(), "unauthorized": r.unauthorized.Load(),
		"insufficient": r.insufficient.Load(), "unverified": r.unverified.Load(), "forbidden": r.forbidden.Load()}, e.budget.Dropped()
}

// Send queues a notification that belongs to no request for the session's own stream: the GET stream, the SSE stream or
// stdout. It reports whether the session exists and the message will be sent. While nobody reads the stream, the newest
// 1,000 messages are kept, within 1 MiB and what the client's caller may hold.
func (e *Edge) Send(session string, message []byte) bool {
	s := e.sessions.store.Get(session)
	if s == nil {
		return false
	}
	return s.send(output.Whole(message))
}

// Request sends a request to the client of a session on the session's own stream and waits for the response, which
// has a result or an error. The error is ErrNoClient if nobody reads that stream, ErrClientGone if the response
// cannot come any more, or the cause of ctx.
func (e *Edge) Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error) {
	s := e.sessions.store.Get(session)
	if s == nil {
		return jsonrpc.Message{}, ErrNoClient
	}
	return s.requests.call(ctx, method, params, func(m output.Message) (<-chan struct{}, bool) {
		return s.own.Lost(), s.Attached() && s.send(m)
	})
}

// now returns the time since the edge was created.
func (e *Edge) now() time.Duration { return time.Since(e.epoch) }

// watch runs periodic work until the edge stops: heartbeats, the expiry of sessions and the revocation of keys.
func (e *Edge) watch() {
	tick := time.NewTicker(max(min(time.Second, e.out.Heartbeat/4, e.limits.SessionIdle/4), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.life.quit:
			return
		case <-tick.C:
		}
		now := e.now()
		e.checkSessionless(now)
		for _, s := range e.sessions.store.All() {
			s.check(now)
		}
	}
}

// checkSessionless sends heartbeats and cancels requests of revoked keys.
func (e *Edge) checkSessionless(now time.Duration) {
	defer safe.Recover(e.log, "watching requests", nil)
	e.sessionless.tick(now, e.out.Heartbeat)
	e.sessionless.cancel(ErrKeyRevoked, revoked)
}

// Stop refuses new requests and sessions, and ends requests that wait for a retry of their client. Until ctx ends it
// waits for other requests in flight, and for clients to read their responses. Then it cancels what is left, ends all
// sessions and closes their streams. The error tells what did not end in time. Stop may be called again.
func (e *Edge) Stop(ctx context.Context) error {
	e.life.stopping.Store(true)
	e.mrtrs.stop()
	e.life.drain(ctx)
	for _, s := range e.sessions.store.All() {
		s.own.Drain(ctx)
	}
	e.sessionless.cancel(ErrStopped, all)
	e.sessions.endAll(ErrStopped)
	if !e.life.close() {
		return nil
	}
	e.sessions.store.Close()
	e.sessions.endAll(ErrStopped) // those opened meanwhile
	close(e.life.quit)
	return e.life.wait()
}
