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
//   - Bounds: sessions, requests in flight, bodies, queues and replay logs are bounded. A client that does
//     not read loses its oldest notifications, then its connection; it never holds up anybody else.
//   - Ends: a session ends by DELETE, by the end of its SSE stream or of stdin, by idling, when the key of
//     its client is revoked, or with the edge. Its requests are cancelled, and when the last has returned, Handler.Ended is called once.
package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/auth"
	"github.com/agenticnexus/agenticnexus/router/limit"
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

// Causes of ended contexts and reasons why a client does not answer.
var (
	ErrSessionEnded = errors.New("the client session has ended")
	ErrStopped      = errors.New("the server is shutting down")
	ErrNoClient     = errors.New("it takes no requests")
	ErrClientGone   = errors.New("the client went away before it answered")
	ErrKeyRevoked   = errors.New("the API key is not valid any more")
)

// Options are the dependencies and limits of an Edge. The zero value serves everybody within the default
// limits, and logs nothing.
type Options struct {
	Logger         *slog.Logger
	Keys           *auth.Keys // nil = no keys
	Limits         limit.Config
	AllowedOrigins []string // "https://app.example.com", or the host alone
	TrustedProxies []netip.Prefix
	Loopback       bool          // bound to loopback: the Host header must be loopback too
	Heartbeat      time.Duration // quiet time before a comment is sent; 0 = 15 s
}

// Edge holds the client sessions and all that is in flight. Create it with New and end it with Stop.
type Edge struct {
	log       *slog.Logger
	keys      *auth.Keys
	limits    limit.Config
	trusted   []netip.Prefix
	origins   map[string]bool
	loopback  bool
	heartbeat time.Duration
	epoch     time.Time // all other times are counted from here

	mu       sync.RWMutex
	sessions map[string]*session
	closed   bool // no more work of any kind

	loose    scope       // exchanges without a session
	trips    sync.Map    // *trip by the requestState that its client comes back with
	load     *limit.Load // requests in flight
	memory   *limit.Memory
	busy     atomic.Int64 // requests and notifications not yet served, and answers not yet written
	refused  atomic.Int64 // requests that there was no room for
	replayed atomic.Int64 // bytes in the replay logs of all sessions
	stopping atomic.Bool
	idle     chan struct{}  // told when busy falls to 0 while stopping
	quit     chan struct{}  // ends the janitor
	work     sync.WaitGroup // everything that runs here
}

// New returns a running Edge.
func New(o Options) *Edge {
	e := &Edge{
		log:       o.Logger,
		keys:      o.Keys,
		limits:    o.Limits,
		trusted:   o.TrustedProxies,
		origins:   make(map[string]bool, len(o.AllowedOrigins)),
		loopback:  o.Loopback,
		heartbeat: o.Heartbeat,
		epoch:     time.Now(),
		sessions:  make(map[string]*session),
		idle:      make(chan struct{}, 1),
		quit:      make(chan struct{}),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.heartbeat <= 0 {
		e.heartbeat = 15 * time.Second
	}
	e.defaultLimits()
	e.memory = limit.NewMemory(e.log)
	e.load = limit.NewLoad(e.limits.TrackedRequests, e.memory)
	for _, origin := range o.AllowedOrigins {
		if u, err := url.Parse(origin); err == nil && u.Host != "" {
			origin = u.Scheme + "://" + u.Host
		}
		e.origins[lower(origin)] = true
	}
	e.work.Go(e.watch)
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

// Sessions returns the number of client sessions.
func (e *Edge) Sessions() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.sessions)
}

// Tracked returns the number of requests in flight.
func (e *Edge) Tracked() int { return e.load.InFlight() }

// Refused returns the number of requests so far that there was no room for.
func (e *Edge) Refused() int { return int(e.refused.Load()) }

// Send queues a whole notification that belongs to no request for the session's own stream: the GET
// stream, the SSE stream or stdout. It reports whether the session exists and the message will be sent. As
// long as nobody reads, the newest 1,000 messages wait, within 1 MiB.
func (e *Edge) Send(session string, message []byte) bool {
	s := e.lookup(session)
	if s == nil {
		return false
	}
	return s.send(wholeMessage(message))
}

// Request asks the client of a session on the session's own stream and waits for the answer, which is a
// response with a result or an error. The error is ErrNoClient if there is no such stream, ErrClientGone if
// the answer cannot come any more, or the cause of ctx.
func (e *Edge) Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error) {
	s := e.lookup(session)
	if s == nil {
		return jsonrpc.Message{}, ErrNoClient
	}
	return s.ask(ctx, method, params, func(m message) (<-chan struct{}, bool) {
		return s.own.lost, s.attached() && s.send(m)
	})
}

// enter counts an activity that Stop waits for, unless the edge is closed.
func (e *Edge) enter() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return false
	}
	e.work.Add(1)
	return true
}

// now returns the time since the edge was made.
func (e *Edge) now() time.Duration { return time.Since(e.epoch) }

// watch does what time brings about until the edge stops: it opens the answers that have been quiet for
// long, and ends the sessions that nobody uses, and all that belongs to keys that are not valid any more.
func (e *Edge) watch() {
	tick := time.NewTicker(max(min(time.Second, e.heartbeat/4, e.limits.SessionIdle/4), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.quit:
			return
		case <-tick.C:
		}
		now := e.now()
		e.loose.tick(now, e.heartbeat)
		e.loose.cancel(ErrKeyRevoked, e.revoked)
		for _, s := range e.all() {
			inUse := s.scope.tick(now, e.heartbeat)
			s.endIfRevoked()
			if !inUse && !s.attached() && now-s.lastUsed() >= e.limits.SessionIdle {
				s.end(ErrSessionEnded)
			}
		}
	}
}

func (e *Edge) all() []*session {
	e.mu.RLock()
	defer e.mu.RUnlock()
	list := make([]*session, 0, len(e.sessions))
	for _, s := range e.sessions {
		list = append(list, s)
	}
	return list
}

// Stop refuses new requests and sessions, waits until ctx ends for what is in flight and for clients to read
// their answers, then cancels the rest, ends all sessions and closes their streams. The error tells what did not
// end in time. Stop may be called again.
func (e *Edge) Stop(ctx context.Context) error {
	e.stopping.Store(true)
	for ctx.Err() == nil && e.busy.Load() > 0 {
		select {
		case <-e.idle:
		case <-ctx.Done():
		}
	}
	for _, s := range e.all() {
		s.own.drain(ctx)
	}
	e.loose.cancel(ErrStopped, all)
	for _, s := range e.all() {
		s.end(ErrStopped)
	}
	e.mu.Lock()
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	if again {
		return nil
	}
	for _, s := range e.all() { // those that came in between
		s.end(ErrStopped)
	}
	close(e.quit)
	ended := make(chan struct{})
	go func() {
		e.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(stopGrace):
		return fmt.Errorf("stopping: %d requests and some connections do not end", e.busy.Load())
	}
}

// stopGrace is how long Stop waits for handlers that it has cancelled.
const stopGrace = 2 * time.Second
