package downstream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// monitor tracks one server: its health, its circuit breaker and the duration of calls. Sessions and calls report
// their events to it.
type monitor struct {
	*identity
	machine  *health.Machine
	breaker  admission.Breaker
	returned func()        // called when a server that was left out is reachable again
	reached  chan struct{} // has a token once a session could be opened
	doubted  chan struct{} // has a token once a connection failed while the router's own session seems to live

	mu      sync.Mutex
	latency latencies
}

func newMonitor(of *identity, returned func()) *monitor {
	return &monitor{
		identity: of, machine: health.New(of.config.Disabled), returned: returned,
		reached: make(chan struct{}, 1), doubted: make(chan struct{}, 1),
	}
}

// on handles an event of the server's health.
func (m *monitor) on(e health.Event, err error) {
	if m.machine.On(e, err) {
		defer m.rescue("reporting its return", nil)
		m.returned()
	}
}

// connected records a new session with the server: the router's own, or that of a client.
func (m *monitor) connected(client string, session *link.Session) {
	level := slog.LevelInfo
	if client != "" {
		level = slog.LevelDebug // clients determine the rate
	}
	m.logger.Log(context.Background(), level, "connected to server", "server", m.config.Name, "protocol", session.Version)
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
	last := m.machine.LastError()
	if known && f.Reason == reason.Unauthorized && last != nil && last.Reason == f.Reason && last.Message == f.Message {
		level = slog.LevelDebug // it lasts until someone logs in
	}
	m.failed(err)
	m.logger.Log(context.Background(), level, "cannot connect to server", "server", m.config.Name, "error", err)
	unreached := []string{reason.Unavailable, reason.Timeout, reason.Disconnected}
	switch {
	case own && known && f.Reason == reason.Protocol:
		m.on(health.Garbled, err)
	case own, known && slices.Contains(unreached, f.Reason):
		m.on(health.Refused, err)
		m.doubt()
	}
}

// unreached records a request that failed for a reason that may be a missing connection.
func (m *monitor) unreached(err error) {
	if f := (*link.Failure)(nil); errors.As(err, &f) && f.Reason == reason.Unavailable && !f.Delivered {
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

// leftOut logs that a request was answered without the server, with a warning only from time to time.
func (m *monitor) leftOut(method string, err error) {
	level := slog.LevelDebug
	if m.machine.LeftOut() {
		level = slog.LevelWarn
	}
	m.logger.Log(context.Background(), level, "server is left out",
		"server", m.config.Name, "method", method, "error", err)
}

// failed stores err as the server's last error.
func (m *monitor) failed(err error) {
	var f *link.Failure
	if !errors.As(err, &f) {
		f = m.failure(reason.Disconnected, err.Error())
	}
	m.machine.Failed(f)
}

// observed records the duration and the failure of a call. It ignores calls refused before they reached the server.
func (m *monitor) observed(took time.Duration, err error) {
	if err != nil {
		var failure *link.Failure
		switch errors.As(err, &failure); {
		case errors.As(err, new(refused)):
			return
		case failure != nil:
			m.failed(failure)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latency.add(took)
}

// percentiles returns the median and the 95th percentile of the durations of the last calls.
func (m *monitor) percentiles() (p50, p95 time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latency.percentiles()
}
