// Package server holds sessions with one downstream server.
//
// A [Server] has one [Connection] for the router itself, which clients may share, and one for each client that has its
// own session. A Connection opens a session when one is needed and replaces a lost one. [Server.Admit] lets calls
// wait in a fair queue and refuses them while the server fails. [Lists] caches what the server lists. [Clients] holds
// what clients have asked of servers, to restore sessions.
//
// All methods are safe for concurrent use. Every goroutine ends with [Server.Stop].
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/http1"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/stderr"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// StopTime is the time for a server to end cleanly.
const StopTime = 2 * time.Second

// DialFunc connects to a server in this process.
type DialFunc func(ctx context.Context) (io.ReadWriteCloser, error)

// Options are what all servers share. Only Tokens, Mask, Pins and Lists may be nil or empty.
type Options struct {
	Health       HealthConfig
	ListDeadline time.Duration // for the lists of one server
	AnswerLimit  time.Duration // for a client's answer to a request that belongs to no call
	MaxMessage   int           // bytes of one message from a server
	Version      string        // the router's version, for the handshake
	Logger       *slog.Logger
	Clients      *Clients
	Transport    *http1.Transport
	Embedded     map[string]DialFunc // servers in this process, by name
	Secrets
	Kept

	OnNotification func(Notification)  // see Notification
	OnReturn       func(server string) // clients may have lists that lack it, or old ones; must not block
	OnQuarantine   func(server string) // changed tools are not listed any more; must not block

	// OnRequest relays a server's request that belongs to no call to a client, like an Asker.
	OnRequest func(ctx context.Context, server, client string, q ServerRequest) (result, err []byte)
}

// Kept is what outlives the process.
type Kept struct {
	Pins  *pins.Store // of the tools of servers in other processes
	Lists string      // folder of the last lists, see Memory
}

// Secrets are what the router knows and servers must not repeat.
type Secrets struct {
	Tokens oauth.Store    // OAuth tokens
	Mask   *redact.Masker // removes secrets from failures; nil knows none
}

// NewTransport returns the transport for HTTP requests to servers.
func NewTransport() *http1.Transport {
	// With fewer idle connections, a busy router would dial for every call.
	return http1.New(&http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4096, IdleConnTimeout: 90 * time.Second,
		DialContext:        (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		DisableCompression: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
	})
}

// Server is one configured server with its connections.
type Server struct {
	Config Config
	Queue  *admission.Queue
	Own    *Connection          // of the router itself; shared by clients without one
	Where  []attribute.KeyValue // attributes of spans
	Pins   Pins                 // of its tools
	Memory *Memory              // of its last lists

	opts   *Options
	health *monitor
	lists  lastLists
	stderr stderr.Tail // of all processes
	era    link.Era    // of all sessions

	Login

	lifetime

	mu      sync.Mutex
	clients map[string]*Connection
}

// lifetime is that of a Server.
type lifetime struct {
	ctx    context.Context // ends with Stop; so do connection attempts and lists
	cancel context.CancelFunc
	wg     sync.WaitGroup // running connection attempts, lists and deliveries

	ended context.Context // ends when Stop has ended
	end   context.CancelFunc
	after []context.Context // those of servers that must have ended before this one connects
}

// Follow lets a server that is a process, and has not connected yet, connect only when its predecessor has stopped.
func Follow(s, predecessor *Server) {
	if s.Config.URL == "" {
		s.after = append(slices.Clip(predecessor.after), predecessor.ended)
	}
}

// New returns a server without sessions. One whose callers log in themselves never has any; its For has.
func New(c Config, opts *Options) *Server { return newServer(c, opts, "") }

// newServer returns a server for all callers or, with a caller, for that one.
func newServer(c Config, opts *Options, caller string) *Server {
	s := &Server{
		Config: c, Queue: admission.NewQueue(c.maxCalls(), c.maxWaiting()), Where: c.where(), opts: opts,
		lists: lastLists{byMethod: map[string]lastList{}}, clients: map[string]*Connection{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.ended, s.end = context.WithCancel(context.Background())
	s.Login.server, s.caller, s.failed = s, caller, make(chan struct{})
	s.Pins.server = s
	if opts.Embedded[c.Name] == nil {
		s.Pins.store = opts.Pins
	}
	s.Memory = newMemory(s, opts.Lists)
	s.health = newMonitor(s)
	if c.Unusable != "" {
		s.health.failed(s.failure(reason.Unavailable, c.Unusable))
	}
	if auth, ok := c.OAuth(); ok && !s.Anyones() {
		auth.Caller = caller
		s.tokens = oauth.NewSource(auth, opts.Tokens.For(caller), opts.Mask, opts.Logger)
	}
	s.Own = newConnection(s, "")
	return s
}

// where returns the span attributes that locate a server.
func (c Config) where() []attribute.KeyValue {
	if c.URL == "" {
		return []attribute.KeyValue{tracing.Transport.String(tracing.TransportPipe)}
	}
	out := []attribute.KeyValue{tracing.Transport.String(tracing.TransportTCP)}
	u, err := url.Parse(c.URL)
	if err != nil {
		return out
	}
	out = append(out, tracing.ServerAddress.String(u.Hostname()))
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	if n, err := strconv.Atoi(port); err == nil {
		out = append(out, tracing.ServerPort.Int(n))
	}
	return out
}

// Connection returns the connection of a client, which closes with the server. Clients that have not sent initialize,
// or have left, share the router's own.
func (s *Server) Connection(client string) *Connection {
	if c := s.clientConnection(client, true); c != nil {
		return c
	}
	return s.Own
}

// Existing is like Connection, but returns nil for a client whose own connection does not exist yet.
func (s *Server) Existing(client string) *Connection {
	if client == "" || !s.Config.PerClient() {
		return s.Own
	}
	return s.clientConnection(client, false)
}

// clientConnection returns a client's own connection, adding it if the client may have one; else nil.
func (s *Server) clientConnection(client string, add bool) *Connection {
	if client == "" || !s.Config.PerClient() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[client]
	if c != nil || !add || s.ctx.Err() != nil {
		return c
	}
	if initialize, _ := s.opts.Clients.Initialize(client); initialize == nil {
		return nil
	}
	c = newConnection(s, client)
	s.clients[client] = c
	return c
}

// Leave closes the own connection of a client that has left.
func (s *Server) Leave(client string) {
	s.mu.Lock()
	c := s.clients[client]
	delete(s.clients, client)
	s.mu.Unlock()
	if c != nil {
		defer s.RecoverPanic("closing a client's session", nil)
		c.close(StopTime)
	}
}

// Stopped is closed when Stop begins.
func (s *Server) Stopped() <-chan struct{} { return s.ctx.Done() }

// Stop closes every session, each within limit, and waits for the server's goroutines.
func (s *Server) Stop(limit time.Duration) {
	s.mu.Lock()
	s.cancel() // prevents new connections
	all := append(slices.Collect(maps.Values(s.clients)), s.Own)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			defer s.RecoverPanic("closing a session", nil)
			c.close(limit)
		})
	}
	wg.Wait()
	s.wg.Wait()
	s.mu.Lock()
	clear(s.clients) // not before: another Stop may have less time
	s.mu.Unlock()
	if s.tokens != nil {
		s.tokens.Close()
	}
	s.health.on(health.Ended, nil)
	s.end()
}

// Lists reports whether the server lists a tool, in any session.
func (s *Server) Lists(tool string) bool { return s.lists.last("tools/list").Tools.Tool(tool) != nil }

// RecoverPanic is deferred in goroutines that use the server. It converts a panic to an error and passes it to failed,
// which may be nil.
func (s *Server) RecoverPanic(doing string, failed func(f *link.Failure)) {
	safe.Caught(recover(), s.opts.Logger, doing+", server "+s.Config.Name, func(err error) {
		if failed != nil {
			failed(s.failure(reason.Unavailable, err.Error()))
		}
	})
}

func (s *Server) failure(reason, message string) *link.Failure {
	return &link.Failure{Server: s.Config.Name, Reason: reason, Message: s.opts.Mask.Text(message)}
}

// isLost reports whether a new session may succeed immediately, because the server does not know the old one.
func isLost(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Lost
}

// sleep waits for d and returns true; it returns false if ctx or stop ends first.
func sleep(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// Status describes the health of a server. Durations are in milliseconds.
type Status struct {
	Status string `json:"status"`
	Reached
	ProtocolVersion string      `json:"protocol_version"` // empty = not connected
	Tools           int         `json:"tools"`            // number in the last list of any session; 0 before the first
	Latency         Percentiles `json:"latency_ms"`
	Since           time.Time   `json:"since"`        // when Status last changed
	LastHealthy     *time.Time  `json:"last_healthy"` // nil = never
	LastError       *plan.Error `json:"last_error"`   // nil = none
	Breaker         string      `json:"breaker"`
	InFlight        int         `json:"in_flight"`
	Queued          int         `json:"queued"` // calls that wait for max_parallel
	Sessions        int         `json:"sessions"`
	TokenExpiresIn  *int        `json:"token_expires_in,omitempty"` // seconds, of a server with auth

	Quarantined []Quarantined `json:"quarantined_tools,omitempty"` // at most 100
	Review
}

// Reached tells how the router reaches a server.
type Reached struct {
	Transport string   `json:"transport"`
	Replica   string   `json:"replica,omitempty"` // that runs the server, with placement: one
	Stderr    []string `json:"stderr,omitempty"`  // see Stderr; set only where one server is asked about
}

// Review is what people should look at in the definitions of a server's tools. Each list has at most 1000 entries.
type Review struct {
	Changed  []string          `json:"changed,omitempty"`  // tools that are not as approved
	Findings []catalog.Finding `json:"findings,omitempty"` // hidden characters
}

// Quarantined is an unusable tool and the reason.
type Quarantined struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// Percentiles are latencies of the last calls in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// Quarantine adds a tool.
func (st *Status) Quarantine(tool, why string) {
	if len(st.Quarantined) < maxQuarantined {
		st.Quarantined = append(st.Quarantined, Quarantined{texts.VisibleName(tool), why})
	}
}

// Status returns the status that a caller may see.
func (s *Server) Status(see catalog.Visible) Status {
	st := Status{Reached: Reached{Transport: s.Config.Type, Replica: s.Config.Replica}, Breaker: s.health.breaker.State()}
	st.InFlight, st.Queued = s.Queue.Load()
	session := s.Own.Session()
	if session != nil {
		st.ProtocolVersion = session.Version
		st.Sessions++
	}
	if list := s.lists.last("tools/list").Tools; list != nil {
		for i := range list.Tools {
			if see == nil || see(s.Config.Name, list.Tools[i].Tool.Tool) {
				st.Tools++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(list.Quarantined)) {
			if see == nil || see(s.Config.Name, name) {
				st.Quarantine(name, list.Quarantined[name])
			}
		}
		for _, f := range list.Findings() {
			if len(st.Findings) < maxReported && (see == nil || see(s.Config.Name, f.Own)) {
				st.Findings = append(st.Findings, f)
			}
		}
	}
	for _, c := range s.Pins.store.Changes(s.Config.Name) {
		if s.Anyones() {
			break // which caller has the tool is not known; the log names it
		}
		if len(st.Changed) < maxReported && s.Config.Tools.Allows(c.Tool) && (see == nil || see(s.Config.Name, c.Tool)) {
			st.Changed = append(st.Changed, texts.VisibleName(c.Tool))
		}
	}
	s.mu.Lock()
	st.Sessions += len(s.clients)
	s.mu.Unlock()
	p50, p95 := s.health.percentiles()
	st.Latency = Percentiles{P50: milliseconds(p50), P95: milliseconds(p95)}
	h := s.health.machine.Report()
	st.Since = h.Since.UTC().Truncate(time.Millisecond)
	if st.Status = h.Status; h.Status == health.Connected && s.Own.lost() {
		st.Status = health.Disconnected // not yet noticed by the supervisor
	}
	if s.Anyones() && !s.Config.Disabled {
		st.Status = health.PerCaller
	}
	if !h.LastHealthy.IsZero() {
		at := h.LastHealthy.UTC().Truncate(time.Millisecond)
		st.LastHealthy = &at
	}
	if s.tokens != nil {
		if left, known := s.tokens.ExpiresIn(); known {
			seconds := int(left.Seconds())
			st.TokenExpiresIn = &seconds
		}
	}
	if h.LastError != nil {
		st.LastError = &plan.Error{Reason: h.LastError.Reason, Message: h.LastError.Message}
	}
	return st
}

// Bounds of the tools in a Status.
const (
	maxQuarantined = 100
	maxReported    = 1000 // changed ones, findings
)

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Transitions returns the last changes of the server's state since it was configured, oldest first.
func (s *Server) Transitions() []health.Transition { return s.health.machine.Past() }

// Stderr returns the last lines that the processes of a server wrote to their error output, at most 50, without
// secrets, oldest first.
func Stderr(s *Server) []string { return s.stderr.Last() }
