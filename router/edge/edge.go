// Package edge serves MCP to clients: streamable HTTP of every protocol version, HTTP+SSE and stdio.
//
// It hands every request and notification to a Handler, with all that may be known about it, as an
// Exchange. What it promises:
//
//   - Concurrency: handlers run concurrently, also for one session, and may take their time: only their own
//     answer waits for them. All exported functions may be called from any goroutine.
//   - Ordering: one writer per stream. What an Exchange sends arrives in the order it was sent, on the
//     stream of its request, and before its response; after the response nothing follows. A session's
//     notifications keep their place among its requests and responses (see Exchange.Sent).
//   - Ownership: byte slices given to the edge belong to it from then on; slices in an Exchange belong to
//     the handler. Nothing is decoded and encoded again.
//   - Access: a client that has shown no key where one is needed is answered by the edge alone.
//   - Bounds: sessions, requests in flight, bodies, queues and replay logs are bounded, and what is in memory
//     for one caller is bounded in bytes. A client that does not read loses its oldest notifications, then its
//     connection; it never holds up anybody else.
//   - Ends: a session ends by DELETE, by the end of its SSE stream or of stdin, by idling, when the key of
//     its client is revoked, when another caller needs its place, or with the edge. Its requests are cancelled,
//     and when the last has returned, Handler.Ended is called once.
//   - Revival: a session of streamable HTTP that did not end by DELETE exists again when its client comes back
//     within 24 hours of its start. The handler is served the client's initialize and notifications/initialized
//     again before anything else; their answers go nowhere. See Edge.Keep.
package edge

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
	"github.com/agenticnexus/agenticnexus/router/edge/sessions"
)

// Handler serves the messages of one surface.
type Handler interface {
	// Serve handles one request or notification and returns when that is done. For a request it calls one
	// of Reply, Fail and FailRaw, as the last thing it does: a plain answer is written when Serve returns.
	// Without any of them the client gets -32603. ctx ends when the request is cancelled (the cause is a
	// *Cancelled), when its session ends (ErrSessionEnded), when its connection closes, where that counts
	// as cancelling, when its caller's key is revoked (ErrKeyRevoked), and when the edge stops (ErrStopped).
	Serve(ctx context.Context, x *Exchange)
	// Ended tells that a client session is over. Nothing of it is in flight any more.
	Ended(session string)
}

// Options are the dependencies and limits of an Edge. The zero value serves everybody within the default
// limits, and logs nothing.
type Options struct {
	Logger         *slog.Logger
	Name, Version  string     // of the server, as clients without a key are told
	Keys           *auth.Keys // nil = no keys
	Limits         limit.Config
	AllowedOrigins []string // "https://app.example.com", or the host alone
	TrustedProxies []netip.Prefix
	Loopback       bool          // bound to loopback: the Host header must be loopback too
	Public         bool          // bound beyond it: without keys the Host header must be an address or an allowed host
	Heartbeat      time.Duration // quiet time before a comment is sent; 0 = 15 s
}

// sessionStore holds the client sessions that exist. sessions.Table does so in memory.
type sessionStore interface {
	// Add stores s. Another session with its id is returned as existing instead. evicted has lost its place.
	Add(s *session) (existing, evicted *session, ok bool)
	Get(id string) *session // nil if there is none
	Remove(s *session)
	All() []*session
	Count() int
	Close() // refuses further sessions
}

// Edge holds the client sessions and all that is in flight. Create it with New and end it with Stop.
type Edge struct {
	log       *slog.Logger
	name      string
	version   string
	access    *access.Policy
	limits    limit.Config
	heartbeat time.Duration
	epoch     time.Time // all other times are counted from here

	life     *lifetime
	out      output.Outputs
	sessions sessionStore
	ids      *sessionid.IDs

	loose   scope         // exchanges without a session
	mrtrs   sync.Map      // *mrtr by the requestState of its next round
	budget  *limit.Budget // requests in flight and bytes in memory, by caller
	refused atomic.Int64  // requests that there was no room for
}

// New returns a running Edge.
func New(o Options) *Edge {
	e := &Edge{
		log:     o.Logger,
		name:    o.Name,
		version: o.Version,
		access: access.New(access.Options{Keys: o.Keys, AllowedOrigins: o.AllowedOrigins, TrustedProxies: o.TrustedProxies,
			Loopback: o.Loopback, Public: o.Public}),
		limits:    o.Limits,
		heartbeat: o.Heartbeat,
		epoch:     time.Now(),
		ids:       sessionid.New(),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.heartbeat <= 0 {
		e.heartbeat = 15 * time.Second
	}
	e.defaultLimits()
	e.life = newLifetime(e.log)
	e.budget = limit.NewBudget(e.limits.Bounds(), limit.NewMemory(e.log))
	e.out = output.Outputs{Budget: e.budget, Bound: int(e.limits.ResultBytes), Heartbeat: e.heartbeat, Now: e.now, Spawn: e.life.spawn,
		Stopping: e.life.stopping.Load}
	e.sessions = sessions.New[*session](e.limits.Sessions, e.now)
	e.life.work.Go(e.watch)
	return e
}

func (e *Edge) defaultLimits() {
	d := limit.Default()
	l := &e.limits
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
}

// Keep keeps the key of session ids in a folder, which is created if necessary, so that sessions survive a restart of
// the router. Without Keep, or if it fails, the key lives with the process. It is called once, before the edge serves.
// Several processes may use one folder.
func (e *Edge) Keep(folder string) error { return e.ids.Keep(folder) }

// Sessions returns the number of client sessions.
func (e *Edge) Sessions() int { return e.sessions.Count() }

// Tracked returns the number of requests in flight.
func (e *Edge) Tracked() int { return e.budget.InFlight() }

// Held returns the bytes of messages that the edge holds for its callers.
func (e *Edge) Held() int { return int(e.budget.Held()) }

// Refused returns the number of requests so far that there was no room for.
func (e *Edge) Refused() int { return int(e.refused.Load()) }

// Send queues a whole notification that belongs to no request for the session's own stream: the GET
// stream, the SSE stream or stdout. It reports whether the session exists and the message will be sent. As
// long as nobody reads, the newest 1,000 messages wait, within 1 MiB and what the client's caller may hold.
func (e *Edge) Send(session string, message []byte) bool {
	s := e.sessions.Get(session)
	if s == nil {
		return false
	}
	return s.send(output.Whole(message))
}

// Request asks the client of a session on the session's own stream and waits for the answer, which is a
// response with a result or an error. The error is ErrNoClient if there is no such stream, ErrClientGone if
// the answer cannot come any more, or the cause of ctx.
func (e *Edge) Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error) {
	s := e.sessions.Get(session)
	if s == nil {
		return jsonrpc.Message{}, ErrNoClient
	}
	return s.ask(ctx, method, params, func(m output.Message) (<-chan struct{}, bool) {
		return s.own.Lost(), s.Attached() && s.send(m)
	})
}

// now returns the time since the edge was made.
func (e *Edge) now() time.Duration { return time.Since(e.epoch) }

// watch runs the periodic work until the edge stops: it opens answers that have been quiet for long, and ends
// sessions that nobody uses and whatever belongs to revoked keys.
func (e *Edge) watch() {
	tick := time.NewTicker(max(min(time.Second, e.heartbeat/4, e.limits.SessionIdle/4), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.life.quit:
			return
		case <-tick.C:
		}
		now := e.now()
		e.lookAtLoose(now)
		for _, s := range e.sessions.All() {
			s.look(now)
		}
	}
}

func (e *Edge) lookAtLoose(now time.Duration) {
	defer safe.Recover(e.log, "watching requests", nil)
	e.loose.tick(now, e.heartbeat)
	e.loose.cancel(ErrKeyRevoked, e.revoked)
}

// Stop refuses new requests and sessions and ends the requests that were answered with a question. It waits until ctx
// ends for what else is in flight and for clients to read their answers, then cancels the rest, ends all sessions and closes their streams. The error tells what did not
// end in time. Stop may be called again.
func (e *Edge) Stop(ctx context.Context) error {
	e.life.stopping.Store(true)
	e.stopMRTRs()
	e.life.drain(ctx)
	for _, s := range e.sessions.All() {
		s.own.Drain(ctx)
	}
	e.loose.cancel(ErrStopped, all)
	for _, s := range e.sessions.All() {
		s.end(ErrStopped)
	}
	if !e.life.close() {
		return nil
	}
	e.sessions.Close()
	for _, s := range e.sessions.All() { // those opened meanwhile
		s.end(ErrStopped)
	}
	close(e.life.quit)
	return e.life.wait()
}
