package downstream

import (
	"maps"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// States of a server.
const (
	StateConnecting   = health.Connecting
	StateConnected    = health.Connected
	StateDegraded     = health.Degraded
	StateDisconnected = health.Disconnected
	StateQuarantined  = health.Quarantined
	StateDisabled     = health.Disabled
)

// Status describes the health of a server. Durations are in milliseconds.
type Status struct {
	Status          string      `json:"status"`
	Transport       string      `json:"transport"`
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

// Status returns the status of all servers by name.
func (m *Manager) Status() map[string]Status { return m.StatusFor(nil) }

// StatusFor returns the status of the servers that a caller may see, without data of other tools.
func (m *Manager) StatusFor(see Visible) map[string]Status {
	order := m.servers.all().order
	out := make(map[string]Status, len(order))
	for _, s := range order {
		if see == nil || see(s.config.Name, "") {
			out[s.config.Name] = s.status(see)
		}
	}
	for _, c := range m.conflicts() {
		why := c.Error()
		if see != nil && slices.ContainsFunc(c.Servers, func(name string) bool { return !see(name, c.Tool) }) {
			why = "its name is also used by another server"
		}
		for _, name := range c.Servers[1:] {
			if st, ok := out[name]; ok && (see == nil || see(name, c.Tool)) {
				st.quarantine(c.Tool, why)
				out[name] = st
			}
		}
	}
	return out
}

func (st *Status) quarantine(tool, why string) {
	if len(st.Quarantined) < maxQuarantined {
		st.Quarantined = append(st.Quarantined, Quarantined{tool, why})
	}
}

func (s *server) status(see Visible) Status {
	st := Status{Transport: s.config.Type, Breaker: s.health.breaker.State()}
	st.InFlight, st.Queued = s.queue.Load()
	session := s.own.current()
	if session != nil {
		st.ProtocolVersion = session.Version
		st.Sessions++
	}
	if list := s.known.last("tools/list").tools; list != nil {
		for i := range list.Tools {
			if see == nil || see(s.config.Name, list.Tools[i].Tool.Tool) {
				st.Tools++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(list.Quarantined)) {
			if see == nil || see(s.config.Name, name) {
				st.quarantine(name, list.Quarantined[name])
			}
		}
	}
	st.Sessions += s.sessions()
	p50, p95 := s.health.percentiles()
	st.Latency = Percentiles{P50: milliseconds(p50), P95: milliseconds(p95)}
	h := s.health.machine.Report()
	st.Since = h.Since.UTC().Truncate(time.Millisecond)
	if st.Status = h.Status; h.Status == StateConnected && s.own.lost() {
		st.Status = StateDisconnected // not yet noticed by the supervisor
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

// Transitions returns the last changes of a server's state since it was configured, oldest first.
func (m *Manager) Transitions(name string) []health.Transition {
	if s := m.servers.server(name); s != nil {
		return s.health.machine.Past()
	}
	return nil
}

// maxQuarantined limits the quarantined tools in a Status.
const maxQuarantined = 100

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
