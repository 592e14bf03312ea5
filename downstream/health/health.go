// Package health is the state machine of a server's health. Every session with the server, the router's own and those
// of clients, reports what happens to it with [Machine.On]. One table has the state that follows.
package health

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// What a server can be.
const (
	Connecting   = "connecting"   // the first attempt, or the first after a loss, is under way
	Connected    = "connected"    // the handshake is done and pings are answered
	Degraded     = "degraded"     // it does not answer pings
	Disconnected = "disconnected" // it cannot be reached, or the session was lost
	Quarantined  = "quarantined"  // something answers, but does not speak MCP
	Disabled     = "disabled"     // by the configuration
)

// state is more exact than what is shown.
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

// transitions says what a server becomes: the row is its state, the column the event. An attempt to connect does not
// change a server that had failed: only its outcome does. An answered call shows that a server which could not be
// reached is back; it says nothing about pings or about the router's own session.
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

const (
	lookAgain   = 2 * time.Second  // from one look at a server that was not there to the next
	missedAgain = 30 * time.Second // from one warning that a server is left out to the next
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
	lastErr *link.Failure // of whatever failed last
	lastOK  time.Time     // when it last opened a session or answered a ping
}

// New returns the machine of a server that nobody has connected to yet; off: that is disabled.
func New(off bool) *Machine {
	m := &Machine{since: time.Now()}
	if off {
		m.state = disabled
	}
	return m
}

// On takes an event; err says what failed. It returns true if requests were answered without the server that could
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

// Report is how a server is.
type Report struct {
	Status      string
	Since       time.Time     // when Status became what it is
	LastHealthy time.Time     // when a session was last opened or a ping answered; zero = never
	LastError   *link.Failure // nil = none
}

// Report returns how the server is.
func (m *Machine) Report() Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Report{m.state.String(), m.since, m.lastOK, m.lastErr}
}

// Cause returns why the server cannot be used; nil if it is worth a try.
func (m *Machine) Cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// Refuses is Cause for what does not ask for this server in particular, such as lists. Supervision comes back to a
// server with growing pauses. Where connections are refused, which takes no time, one request may look every lookAgain.
func (m *Machine) Refuses() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var f *link.Failure
	if m.why == nil || !errors.As(m.why, &f) || f.Reason != link.ReasonUnavailable || time.Since(m.tried) < lookAgain {
		return m.why
	}
	m.tried = time.Now()
	return nil
}

// LeftOut notes that something was answered without the server, and reports whether to warn: clients set the rate of
// such requests.
func (m *Machine) LeftOut() (warn bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if warn = time.Since(m.missed) >= missedAgain; warn {
		m.missed = time.Now()
	}
	return warn
}
