// Package edge serves MCP to clients: streamable HTTP of every protocol version, HTTP+SSE and stdio.
//
// [New] returns an [Edge]. [Edge.Streamable], [Edge.SSE] and [Edge.ServeStdio] each serve a [Handler] over one
// transport; [Edge.Stop] ends them all. The handler receives every request and notification as an [Exchange] and
// replies with [Exchange.Reply] or [Exchange.Fail]. [Edge.Send] and [Edge.Request] reach a client outside of its
// requests.
//
// A message passes these layers. Each is a package or files of this one, and uses only later layers:
//
//	transport     streamable.go, sse.go, stdio.go, batch.go, http.go
//	authorization access.go
//	homes         home.go: where a session is served; hop.go: at another replica; moving.go: what it takes along
//	sessions      registry.go, session.go, handshake.go, with sessionid
//	serving       serve.go, inflight.go
//	handler       exchange.go, mrtr.go, task.go, subscription.go
//	output        output: one writer for each stream, with queues, replay and batches
//	input         inbound: bodies, messages, versions and headers
//
// Guarantees:
//
//   - Concurrency: handlers run concurrently, also for one session, and only their own response waits for them. All
//     exported functions may be called from any goroutine.
//   - Ordering: each stream has one writer. What an Exchange sends arrives in the order in which it was sent, on the
//     stream of its request and before its response; nothing follows the response. Notifications are served when they
//     arrive, before later messages of a shared stream. A handler that passes messages on keeps their order by
//     [Exchange.Order] and [AwaitEarlier].
//   - Ownership: byte slices passed to the edge belong to it; slices in an Exchange belong to the handler. Messages are
//     passed on as they are, not decoded and encoded again.
//   - Access: the edge alone answers clients that have sent no key where one is needed.
//   - Bounds: sessions, requests in flight, bodies, queues and replay logs are bounded, and the memory held for each
//     caller is bounded in bytes. A client that does not read loses its oldest notifications, then its connection. It
//     does not delay others.
//   - Ends: a session ends by DELETE, with its SSE stream or stdin, when it is idle, when its key is revoked, when
//     another caller takes its place, or with the edge. Its requests are cancelled. After the last has returned,
//     Handler.Ended is called once.
//   - Revival: a session of streamable HTTP that did not end by DELETE is reopened if its client returns within 24
//     hours of its start. The handler first serves the client's initialize and notifications/initialized again; their
//     responses are dropped. See [Edge.Keep].
//   - Tasks: a request that its handler has made a task outlives its client, not the edge. What is kept of tasks is
//     bounded in number, bytes and time.
//   - Replicas: with a [cluster.Directory], a request of a session is served where the session lives, at its home.
//     If the home is gone, the replica that got the request revives the session with its log levels, its subscriptions
//     and what its handler saved; calls in flight at the former home end as outcome_unknown.
package edge

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// Handler serves the messages of one endpoint.
type Handler interface {
	// Serve handles one request or notification. For a request, its last action is one call of Reply, Fail or
	// FailRaw; a plain response is written when Serve returns. Without such a call the client gets -32603. ctx ends
	// when the request is cancelled (the cause is a *Cancelled), its session ends (ErrSessionEnded), its connection
	// closes in an era where that cancels, its caller's key is revoked (ErrKeyRevoked), or the edge stops
	// (ErrStopped). Serve must not wait for a notification of a session: the next messages are served after it.
	Serve(ctx context.Context, x *Exchange)
	// Ended is called when a client session has ended and nothing of it is in flight.
	Ended(session string)
}

// Options are the dependencies and limits of an Edge. The zero value serves every caller with default limits and logs
// nothing.
type Options struct {
	Logger         *slog.Logger
	Name, Version  string     // of the server, for unauthenticated clients
	Keys           *auth.Keys // nil = no keys or tokens
	Limits         limit.Config
	AllowedOrigins []string        // "https://app.example.com", or the host alone
	ForwardHeaders func() []string // names of headers that pages may send for servers; may be nil
	TrustedProxies []netip.Prefix
	Loopback       bool          // bound to loopback: the Host header must be loopback too
	Public         bool          // bound to other addresses: without keys, Host must be an address or an allowed host
	Heartbeat      time.Duration // quiet time before a comment is sent; 0 = 15 s
	Tracer         tracing.Tracer
	Served         func(Served)       // after each request; may be nil
	Directory      *cluster.Directory // of the replicas; nil = there are none
	IDKeys         sessionid.Keys     // that replicas share; nil = see Keep
}

// Edge holds the client sessions and the requests in flight. Create it with New and end it with Stop.
type Edge struct {
	log     *slog.Logger
	name    string
	version string
	access  *policy
	limits  limit.Config
	tracer  tracing.Tracer
	served  func(Served) // may be nil
	epoch   time.Time    // origin of all times

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
		access:  newPolicy(o),
		limits:  withDefaults(o.Limits),
		tracer:  o.Tracer,
		served:  o.Served,
		epoch:   time.Now(),
		life:    newLifetime(log),
	}
	memory := limit.NewMemory(log)
	e.budget = limit.NewBudget(e.limits.Bounds(), memory)
	e.out = output.Outputs{Budget: e.budget, Bound: int(e.limits.ResultBytes), Heartbeat: o.Heartbeat,
		Spawn: e.life.spawn, Stopping: e.life.stopping.Load}
	if e.out.Heartbeat <= 0 {
		e.out.Heartbeat = 15 * time.Second
	}
	e.sessions = registry{edge: e, ids: sessionid.New(), homes: homes{o.Directory, o.Directory != nil,
		limit.NewBudget(limit.Bounds{Requests: e.limits.Sessions}, memory)},
		byID: map[string]*session{}, ending: map[string]*session{}, owned: map[string]int{}}
	if o.Directory == nil {
		e.sessions.directory = cluster.Alone()
	}
	if o.IDKeys != nil {
		e.sessions.ids.Share(o.IDKeys)
	}
	e.mrtrs.tasks = taskTable{room: limit.NewBudget(limit.Bounds{Requests: maxTasks}, memory), byID: map[string]*task{}}
	e.life.work.Go(e.watch)
	return e
}

// withDefaults replaces unset limits with the defaults.
func withDefaults(l limit.Config) limit.Config {
	d := limit.Default()
	l.BodyBytes = cmp.Or(l.BodyBytes, d.BodyBytes)
	l.ResultBytes = cmp.Or(l.ResultBytes, d.ResultBytes)
	l.Sessions = cmp.Or(l.Sessions, d.Sessions)
	l.TrackedRequests = cmp.Or(l.TrackedRequests, d.TrackedRequests)
	l.SessionIdle = cmp.Or(l.SessionIdle, d.SessionIdle)
	return l
}

// Keep stores the key of session ids in a folder, created if necessary, so that sessions survive a restart of the
// router. Without Keep, or if it fails, the key is lost with the process. It must be called once, before the edge
// serves. Several processes may share a folder.
func (e *Edge) Keep(folder string) error { return e.sessions.ids.Keep(folder) }

// Sessions returns the number of client sessions.
func (e *Edge) Sessions() int { return e.sessions.count() }

// Tracked returns the number of requests in flight.
func (e *Edge) Tracked() int { return e.budget.InFlight() }

// Held returns the bytes of messages that the edge holds for its callers.
func (e *Edge) Held() int { return int(e.budget.Held()) }

// refusals counts refused requests by cause.
type refusals struct{ overloaded, unauthorized, insufficient, unverified, forbidden atomic.Int64 }

// CountRefused counts a request whose key or token is refused.
func CountRefused(e *Edge, refused *auth.Refusal) {
	switch refused.Status {
	case http.StatusServiceUnavailable:
		e.refusals.unverified.Add(1)
	case http.StatusForbidden:
		e.refusals.insufficient.Add(1)
	default:
		e.refusals.unauthorized.Add(1)
	}
}

// Refused returns the number of requests refused as overload.
func (e *Edge) Refused() int { return int(e.refusals.overloaded.Load()) }

// Losses returns the counts of refused requests, by cause, and of notifications dropped because clients read too
// slowly. The causes are overloaded; unauthorized (wrong or missing key or token); insufficient (token without the
// needed scopes or claims); unverified (token whose issuer is unreachable); and forbidden (foreign Host or Origin).
func (e *Edge) Losses() (refused map[string]int64, dropped int64) {
	r := &e.refusals
	return map[string]int64{"overloaded": r.overloaded.Load(), "unauthorized": r.unauthorized.Load(),
		"insufficient": r.insufficient.Load(), "unverified": r.unverified.Load(), "forbidden": r.forbidden.Load()}, e.budget.Dropped()
}

// Send queues a notification outside of any request on the session's own stream: the GET stream, the SSE stream or
// stdout. It reports whether the session exists and the message will be sent. While nobody reads the stream, the
// newest 1,000 messages are kept, up to 1 MiB and the caller's memory limit.
func (e *Edge) Send(session string, message []byte) bool {
	s := e.sessions.lookup(session)
	if s == nil {
		return false
	}
	return s.send(output.Whole(message))
}

// Request sends a request to a client on its session's own stream and waits for the response, a result or an error.
// The error is ErrNoClient if nobody reads that stream, ErrClientGone if no response can arrive, or the cause of ctx.
func (e *Edge) Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error) {
	s := e.sessions.lookup(session)
	if s == nil {
		return jsonrpc.Message{}, ErrNoClient
	}
	return s.requests.call(ctx, method, params, func(m output.Message) (<-chan struct{}, bool) {
		return s.own.Lost(), s.own.Attached() && s.send(m)
	})
}

// now returns the time since the edge was created.
func (e *Edge) now() time.Duration { return time.Since(e.epoch) }

// watch runs periodic work until the edge stops: the expiry of sessions and the revocation of keys.
func (e *Edge) watch() {
	tick := time.NewTicker(max(min(time.Second, e.limits.SessionIdle/4), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.life.quit.Done():
			return
		case <-tick.C:
		}
		now := e.now()
		e.checkSessionless()
		e.mrtrs.tasks.expire(e.budget, time.Now().Add(-taskLife))
		all := e.sessions.all()
		for _, s := range all {
			s.check(now)
		}
		e.sessions.drain(all)
	}
}

// checkSessionless cancels requests of revoked keys.
func (e *Edge) checkSessionless() {
	defer safe.Recover(e.log, "watching requests", nil)
	e.sessionless.cancel(ErrKeyRevoked, revoked)
}

// Drain begins to stop an Edge: it refuses new requests and sessions, and ends tasks and requests that wait for a retry
// of their client or that Listen. Until ctx ends, it waits for the other requests in flight and for clients to read
// their responses. Then it cancels the rest, ends all sessions and closes their streams. Requests of sessions that
// other replicas can take over are passed on until Stop.
func Drain(ctx context.Context, e *Edge) {
	e.life.stop()
	e.mrtrs.stop(ErrStopped)
	for range 2 {
		e.life.busy.wait(ctx)
		for _, s := range e.sessions.all() {
			s.own.Drain(ctx)
		}
		e.life.ending.Store(true) // what has begun in the meantime is waited for, too
	}
	e.sessionless.cancel(ErrStopped, all)
	e.sessions.endAll(ErrStopped)
	cancelled, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	e.life.busy.wait(cancelled)
}

// Stop drains the Edge and refuses all requests. Until ctx ends, it also waits for requests that other replicas serve.
// The error tells what did not end in time. Stop may be called more than once.
func (e *Edge) Stop(ctx context.Context) error {
	Drain(ctx, e)
	if !e.life.close() {
		return nil
	}
	e.sessions.close()
	e.sessions.endAll(ErrStopped) // sessions opened in the meantime
	e.life.posts.wait(ctx)
	e.life.exit()
	err := e.life.wait()
	e.mrtrs.tasks.expire(e.budget, time.Now())
	return err
}
