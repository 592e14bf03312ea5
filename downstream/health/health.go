// Package health is the state machine of a server's health. Every session with the server, the router's own and those
// of clients, reports what happens to it with [Machine.On]. One table has the state that follows.
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
	Connecting   = "connecting"   // the first attempt, or the first after a loss, is under way
	Connected    = "connected"    // the handshake is done and pings are answered
	Degraded     = "degraded"     // it does not answer pings
	Disconnected = "disconnected" // it cannot be reached, or its session is lost
	Quarantined  = "quarantined"  // something responds that does not speak MCP
	Disabled     = "disabled"     // by the configuration
)

// state is more detailed than the states that are shown.
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

// Event is what happens to a server.
type Event uint8

// Events.
const (
	Dialing  Event = iota // the router's own session is being opened
	Opened                // a session was opened
	Answered              // a call was answered
	Pinged                // a ping in the router's own session was answered
	Silent                // a ping was not answered
	Refused               // a connection failed, of whichever session
	Garbled               // something answered the router's handshake that does not speak MCP
	Ended                 // the router's own session was lost or closed
	events   int   = iota
)

// transitions has the next state for a state (row) and an event (column). An attempt to connect does not change the
// state of a failed server; its result does. An answered call shows that an unreachable server is back. It shows
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

// Transition is a change of the state, as it is shown.
type Transition struct {
	At    time.Time `json:"at"`
	State string    `json:"state"`
}

// maxPast is how many transitions are remembered.
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
	since   time.Time     // when the state, as it is shown, began
	why     error         // of unreachable and quarantined
	tried   time.Time     // when the last attempt failed, or lists were let through since
	missed  time.Time     // of the last warning that the server is left out; zero = not since it was connected
	past    []Transition  // the last maxPast
	lastErr *link.Failure // of whatever failed last
	lastOK  time.Time     // when it last opened a session or answered a ping
}

// New returns the machine of a server without connections; off means disabled.
func New(off bool) *Machine {
	m := &Machine{since: time.Now()}
	if off {
		m.state = disabled
	}
	return m
}

// On handles an event; err says what failed. It returns true if requests were answered without the server and can
// include it from now on.
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

// Failed keeps f as the last error.
func (m *Machine) Failed(f *link.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastErr = f
}

// LastError returns what failed last; nil if nothing has.
func (m *Machine) LastError() *link.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastErr
}

// Connected reports whether a session was opened and pings are answered.
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

// Cause returns why the server cannot be used, nil if it may be tried.
func (m *Machine) Cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// Refuses is Cause for requests that do not need this server in particular, such as lists: until the server is back,
// they fail fast. If connections are refused, which takes no time, one caller may re-probe every lookAgain.
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

// Past returns the last transitions, the oldest first.
func (m *Machine) Past() []Transition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.past)
}

// LeftOut records that a request was answered without the server. It reports whether to warn, because clients set the
// rate of such requests.
func (m *Machine) LeftOut() (warn bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if warn = time.Since(m.missed) >= missedAgain; warn {
		m.missed = time.Now()
	}
	return warn
}
