package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/breaker"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Supervise keeps the router's own session with the server until ctx ends. A disabled server has none.
func (s *Server) Supervise(ctx context.Context) {
	if !s.Config.Disabled && !s.Anyones() {
		defer s.RecoverPanic("supervising it", nil)
		s.Own.supervise(ctx, s.health.watch, s.health.rest)
	}
}

// supervise keeps a session in the connection until ctx ends: it connects, watches and reconnects. rest pauses between
// attempts and returns false when supervise has to end.
func (c *Connection) supervise(
	ctx context.Context,
	watch func(ctx context.Context, session *link.Session),
	rest func(ctx context.Context, d time.Duration) bool,
) {
	s := c.server
	connect := c.Connect
	if c.client != "" {
		connect = func(ctx context.Context) (*link.Session, error) {
			if why := s.health.machine.Cause(); why != nil && c.Session() == nil {
				return nil, why // one attempt for all clients detects the server's return
			}
			return c.Connect(ctx)
		}
	}
	short := 0 // consecutive short sessions
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(time.Second, s.opts.Health.Interval)),
		backoff.WithMaxInterval(s.opts.Health.Interval), backoff.WithMaxElapsedTime(0))
	for {
		session, err := connect(ctx)
		if ctx.Err() != nil || errors.Is(err, admission.ErrRetired) {
			return
		}
		if err == nil {
			began := time.Now()
			func() {
				defer s.RecoverPanic("watching a session", func(*link.Failure) { session.Close() })
				watch(ctx, session)
			}()
			if time.Since(began) >= s.opts.Health.Interval/2 {
				wait.Reset()
				short = 0
				continue
			}
			// A server that ends right after the handshake is restarted with pauses.
			if short++; short > 1 && c.client == "" {
				s.health.on(health.Refused, session.Err())
			}
		}
		if !rest(ctx, wait.NextBackOff()) {
			return
		}
	}
}

const checkAgain = time.Second // between pings caused by failed connections

// watch pings a session at the health interval and after failed connections, until the session is lost or a ping
// fails.
func (m *monitor) watch(ctx context.Context, session *link.Session) {
	// The random start spreads the pings of servers that start together.
	first := time.Duration(rand.Int64N(int64(m.server.opts.Health.Interval)/4 + 1))
	timer := time.NewTimer(m.server.opts.Health.Interval - first)
	defer timer.Stop()
	var checked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Done():
			m.failed(session.Err())
			m.logOutput()
			m.on(health.Ended, nil)
			return
		case <-m.doubted: // rate-limited pings after failed connections
			timer.Reset(time.Until(checked.Add(checkAgain)))
			continue
		case <-timer.C:
		}
		checked = time.Now()
		err := m.ping(ctx, session)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			m.on(health.Pinged, nil)
		} else {
			name := m.server.Config.Name
			m.server.opts.Logger.Warn("Health check failed for "+name+": "+err.Error(), "server", name)
			m.failed(err)
			m.on(health.Silent, nil)
			if session.InFlight() == 0 {
				session.Close() // no call can use it
				return
			}
		}
		timer.Reset(m.server.opts.Health.Interval)
	}
}

// ping succeeds with any JSON-RPC response, also an error.
func (m *monitor) ping(ctx context.Context, session *link.Session) error {
	cause := errors.New("no answer to ping within " + m.server.opts.Health.Timeout.String())
	ctx, cancel := context.WithTimeoutCause(ctx, m.server.opts.Health.Timeout, cause)
	defer cancel()
	err := session.Ping(ctx)
	if errors.Is(err, cause) {
		return m.server.failure(reason.Timeout, cause.Error())
	}
	return err
}

// loginLook is the interval at which a server without a token looks for one.
const loginLook = time.Second

// rest waits before the next attempt to open the router's own session. It ends early when a client's session opens or
// when someone logs in.
func (m *monitor) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-m.reached: // an old token
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	var look <-chan time.Time
	if m.server.tokens != nil {
		ticker := time.NewTicker(loginLook)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-timer.C:
			return true
		case <-m.reached:
			return true
		case <-look:
			if m.server.tokens.Changed() {
				return true
			}
		case <-ctx.Done():
			return false
		case <-m.server.ctx.Done():
			return false
		}
	}
}

// monitor tracks one server: its health, its circuit breaker and the duration of calls. Sessions and calls report
// their events to it.
type monitor struct {
	server  *Server
	machine *health.Machine
	breaker breaker.Breaker
	reached chan struct{} // has a token once a session could be opened
	doubted chan struct{} // has a token once a connection failed while the router's own session seems to live

	mu        sync.Mutex
	durations [latencyWindow]time.Duration // of the last calls
	calls     int                          // total number
}

const latencyWindow = 256 // number of calls in the percentiles

func newMonitor(s *Server) *monitor {
	return &monitor{
		server: s, machine: health.New(s.Config.Disabled || s.Anyones()),
		reached: make(chan struct{}, 1), doubted: make(chan struct{}, 1),
	}
}

// on handles an event of the server's health.
func (m *monitor) on(e health.Event, err error) {
	if m.machine.On(e, err) {
		defer m.server.RecoverPanic("reporting its return", nil)
		m.server.opts.OnReturn(m.server.Config.Name)
	}
}

// connected records a new session with the server: the router's own, or that of a client.
func (m *monitor) connected(client string, session *link.Session) {
	level := slog.LevelInfo
	if client != "" {
		level = slog.LevelDebug // clients determine the rate
	}
	m.server.opts.Logger.Log(context.Background(), level, "connected to server", "server", m.server.Config.Name,
		"protocol", session.Version)
	select {
	case m.reached <- struct{}{}:
	default: // there is a token
	}
	m.breaker.Reached()
	m.on(health.Opened, nil)
}

// unconnected records a failed connection attempt. An attempt for a client counts only if the connection itself
// failed: what a server answers to one client does not concern others.
func (m *monitor) unconnected(client string, err error) {
	var f *link.Failure
	known, own := errors.As(err, &f), client == ""
	level := slog.LevelWarn
	if m.server.caller != "" {
		level = slog.LevelDebug // callers determine the rate
	}
	last := m.machine.LastError()
	if known && f.Reason == reason.Unauthorized && last != nil && last.Reason == f.Reason && last.Message == f.Message {
		level = slog.LevelDebug // it lasts until someone logs in
	}
	m.failed(err)
	m.server.opts.Logger.Log(context.Background(), level, "cannot connect to server", "server", m.server.Config.Name,
		"error", err)
	if known && level == slog.LevelWarn && (last == nil || last.Message != f.Message) {
		m.logOutput()
	}
	unreached := []string{reason.Unavailable, reason.Timeout, reason.Disconnected}
	switch {
	case own && known && f.Reason == reason.Protocol:
		m.on(health.Garbled, err)
	case own, known && slices.Contains(unreached, f.Reason):
		m.on(health.Refused, err)
		m.doubt()
	}
}

// logOutput logs the end of the error output of a server whose process has ended.
func (m *monitor) logOutput() {
	if lines := Stderr(m.server); len(lines) > 0 {
		m.server.opts.Logger.Warn("last error output of server", "server", m.server.Config.Name,
			"lines", strings.Join(lines, "\n"))
	}
}

// unreached records a request that failed for a reason that may be a missing connection.
func (m *monitor) unreached(err error) {
	if f := (*link.Failure)(nil); errors.As(err, &f) && f.Reason == reason.Unavailable && !f.MaybeDelivered {
		m.on(health.Refused, err)
		m.doubt()
	}
}

// doubt makes watch check the router's own session.
func (m *monitor) doubt() {
	select {
	case m.doubted <- struct{}{}:
	default: // there is a token
	}
}

// failed stores err as the server's last error.
func (m *monitor) failed(err error) {
	var f *link.Failure
	if !errors.As(err, &f) {
		f = m.server.failure(reason.Disconnected, err.Error())
	}
	m.machine.Failed(f)
}

// percentiles returns the median and the 95th percentile of the durations of the last calls; zero before the first.
func (m *monitor) percentiles() (p50, p95 time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(m.calls, latencyWindow)
	if n == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(m.durations[:n]))
	return sorted[(n-1)*50/100], sorted[(n-1)*95/100]
}

// LeftOut logs that a request was answered without the server, with a warning only from time to time. That the server
// was not introduced does not matter to clients whose lists are remembered.
func (s *Server) LeftOut(method string, err error) {
	level := slog.LevelDebug
	known := Member(method) == "" && s.Memory.answers()
	if !known && s.health.machine.LeftOut() {
		level = slog.LevelWarn
	}
	s.opts.Logger.Log(context.Background(), level, "server is left out",
		"server", s.Config.Name, "method", method, "error", err)
}

// Observed records the duration and the failure of a call. It ignores calls refused before they reached the server.
func (s *Server) Observed(took time.Duration, err error) {
	var f *link.Failure
	if errors.As(err, &f) {
		if f.Refused {
			return
		}
		s.health.failed(f)
	}
	m := s.health
	m.mu.Lock()
	defer m.mu.Unlock()
	m.durations[m.calls%latencyWindow] = took
	m.calls++
}
