package server

import (
	"maps"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/internal/plan"
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

// Quarantine adds a tool.
func (st *Status) Quarantine(tool, why string) {
	if len(st.Quarantined) < maxQuarantined {
		st.Quarantined = append(st.Quarantined, Quarantined{tool, why})
	}
}

// Status returns the status that a caller may see.
func (s *Server) Status(see catalog.Visible) Status {
	st := Status{Transport: s.Config.Type, Breaker: s.health.breaker.State()}
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

// maxQuarantined limits the quarantined tools in a Status.
const maxQuarantined = 100

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Transitions returns the last changes of the server's state since it was configured, oldest first.
func (s *Server) Transitions() []health.Transition { return s.health.machine.Past() }
