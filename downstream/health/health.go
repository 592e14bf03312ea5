// Package health is the state machine of a server's health. Every session with the server, the router's own and those
// of clients, reports its events to [Machine.On]. One table defines the transitions.
package health

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// States of a server.
const (
	Connecting   = "connecting"       // first connection attempt, also after a loss
	Connected    = "connected"        // the handshake is done and pings are answered
	Degraded     = "degraded"         // it does not answer pings
	Disconnected = "disconnected"     // it cannot be reached, or its session is lost
	Quarantined  = "quarantined"      // the peer does not speak MCP
	Disabled     = "disabled"         // by the configuration
	PerCaller    = "login per caller" // each caller has sessions of its own
)

// state is more detailed than the states shown.
type state uint8

const (
	connecting state = iota
	connected
	degraded
	lost        // the router's own session ended; it is opened again at once
	unreachable // the last attempt to connect failed
	quarantined
	disabled
	states int = iota
)

func (s state) String() string {
	return [states]string{Connecting, Connected, Degraded, Disconnected, Disconnected, Quarantined, Disabled}[s]
}

// Event is an event in the life of a server.
type Event uint8

// Events.
const (
	Dialing  Event = iota // the router's own session is being opened
	Opened                // a session was opened
	Answered              // a call was answered
	Pinged                // a ping in the router's own session was answered
	Silent                // a ping was not answered
	Refused               // a connection of any session failed
	Garbled               // the peer answered the router's handshake but does not speak MCP
	Ended                 // the router's own session was lost or closed
	events   int   = iota
)

// transitions maps a state (row) and an event (column) to the next state. A connection attempt does not change the
// state of a failed server; its result does. An answered call shows that an unreachable server is back, but says
// nothing about pings or the router's own session.
var transitions = [states][events]state{
	//            Dialing      Opened     Answered    Pinged     Silent       Refused      Garbled      Ended
	connecting:  {connecting, connected, connecting, connected, degraded, unreachable, quarantined, lost},
	connected:   {connecting, connected, connected, connected, degraded, unreachable, quarantined, lost},
	degraded:    {degraded, connected, degraded, connected, degraded, unreachable, quarantined, lost},
	lost:        {connecting, connected, lost, connected, lost, unreachable, quarantined, lost},
	unreachable: {unreachable, connected, connected, connected, unreachable, unreachable, quarantined, unreachable},
	quarantined: {quarantined, connected, quarantined, connected, quarantined, unreachable, quarantined, lost},
	disabled:    {disabled, disabled, disabled, disabled, disabled, disabled, disabled, disabled},
}

// Transition is a change of the shown state.
type Transition struct {
	At    time.Time `json:"at"`
	State string    `json:"state"`
}

// maxPast is the number of transitions kept.
const maxPast = 20

const (
	lookAgain   = 2 * time.Second  // during backoff, one caller may re-probe this often
	missedAgain = 30 * time.Second // between warnings that a server is left out
)

// Machine is the state machine of one server. It is safe for concurrent use.
type Machine struct {
	down atomic.Bool // the state is unreachable: saves a lock for each answered call

	mu      sync.Mutex
	state   state
	since   time.Time     // when the shown state began
	why     error         // reason for unreachable or quarantined
	tried   time.Time     // last failed attempt or later re-probe
	missed  time.Time     // last warning that the server is left out; zero = none since it was connected
	past    []Transition  // at most maxPast
	lastErr *link.Failure // the last failure of any kind
	lastOK  time.Time     // last opened session or answered ping
}

// New returns the machine of an unconnected server; off means disabled.
func New(off bool) *Machine {
	m := &Machine{since: time.Now()}
	if off {
		m.state = disabled
	}
	return m
}

// On handles an event; err is the failure, if any. It returns true if the server was left out of earlier answers and
// can be included again.
func (m *Machine) On(e Event, err error) (returned bool) {
	if e == Answered && !m.down.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.state
	m.state = transitions[before][e]
	m.down.Store(m.state == unreachable)
	now := time.Now()
	if m.state.String() != before.String() {
		m.since = now
		m.past = append(m.past[max(0, len(m.past)-maxPast+1):], Transition{now, m.state.String()})
	}
	switch e {
	case Opened, Pinged:
		m.lastOK = now
	case Refused, Garbled:
		m.why, m.tried = err, now
	}
	if m.state != unreachable && m.state != quarantined {
		m.why = nil
	}
	returned = m.state == connected && (e == Opened || before != connected) && !m.missed.IsZero()
	if returned {
		m.missed = time.Time{}
	}
	return returned
}

// Failed stores f as the last error.
func (m *Machine) Failed(f *link.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastErr = f
}

// LastError returns the last failure; nil if there is none.
func (m *Machine) LastError() *link.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastErr
}

// Connected reports whether a session is open and pings are answered.
func (m *Machine) Connected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state == connected
}

// Report is the health of a server.
type Report struct {
	Status      string
	Since       time.Time     // when Status last changed
	LastHealthy time.Time     // when a session was last opened or a ping answered; zero = never
	LastError   *link.Failure // nil = none
}

// Report returns the health of the server.
func (m *Machine) Report() Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Report{m.state.String(), m.since, m.lastOK, m.lastErr}
}

// Cause returns why the server cannot be used; nil if it may be tried.
func (m *Machine) Cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// Refuses is like Cause, for requests that do not need this particular server, such as lists: they fail fast until
// the server is back. If connections are refused, which takes no time, one caller may re-probe every lookAgain.
func (m *Machine) Refuses() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var f *link.Failure
	if m.why == nil || !errors.As(m.why, &f) || f.Reason != reason.Unavailable || time.Since(m.tried) < lookAgain {
		return m.why
	}
	m.tried = time.Now()
	return nil
}

// Past returns the last transitions, oldest first.
func (m *Machine) Past() []Transition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.past)
}

// LeftOut records that a request was answered without the server. It reports whether to warn; warnings are
// rate-limited, because clients determine the rate of such requests.
func (m *Machine) LeftOut() (warn bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if warn = time.Since(m.missed) >= missedAgain; warn {
		m.missed = time.Now()
	}
	return warn
}
