package health

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// TestTransitions checks what must hold for each entry of the table.
func TestTransitions(t *testing.T) {
	for from := range transitions {
		for e, to := range transitions[from] {
			from, e := state(from), Event(e)
			bad := func(rule string) { t.Errorf("%d becomes %d by event %d: %s", from, to, e, rule) }
			if from == disabled || to == disabled {
				if from != to {
					bad("only the configuration disables a server")
				}
				continue
			}
			if to == connected && from != connected && !slices.Contains([]Event{Opened, Answered, Pinged}, e) {
				bad("only a success makes a server connected")
			}
			switch e {
			case Opened, Pinged:
				if to != connected {
					bad("a success of the protocol makes every server connected")
				}
			case Refused:
				if to != unreachable {
					bad("after a failed connection, of whichever session, the server counts as disconnected")
				}
			case Garbled:
				if to != quarantined {
					bad("what does not speak MCP is quarantined")
				}
			case Dialing:
				if failed := from == degraded || from == unreachable || from == quarantined; failed && to != from || !failed && to != connecting {
					bad("an attempt changes what a server is only if it had not failed")
				}
			case Answered:
				if from == unreachable && to != connected || from != unreachable && to != from {
					bad("an answer shows that a server can be reached, and nothing else")
				}
			case Silent:
				if to == connected || to == connecting {
					bad("a ping that was not answered is no good sign")
				}
			case Ended:
				if to.String() != Disconnected {
					bad("without a session of its own the router is not connected")
				}
			}
		}
	}
}

// Since is when the server became what is shown; LastHealthy when it last gave a sign of life.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(false)
		m.On(Opened, nil)
		healthy := time.Now()
		time.Sleep(time.Second)
		m.On(Ended, nil)
		since := time.Now()
		time.Sleep(time.Second)
		m.On(Refused, errors.New("down"))
		m.Failed(&link.Failure{Message: "down"})
		if r := m.Report(); !r.Since.Equal(since) || !r.LastHealthy.Equal(healthy) || r.LastError.Message != "down" {
			t.Errorf("got %+v, want it disconnected since %v, healthy at %v", r, since, healthy)
		}
	})
}

// A server that is not there is looked for now and then; one that took its time to fail is left to supervision.
func TestRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(false)
		for cause, again := range map[string]bool{reason.Unavailable: true, reason.Timeout: false} {
			why := &link.Failure{Reason: cause}
			m.On(Refused, why)
			if got := m.Refuses(); got != why {
				t.Errorf("%s: got %v at once, want %v", cause, got, why)
			}
			time.Sleep(lookAgain)
			if got := m.Refuses() == nil; got != again {
				t.Errorf("%s: got a look after %v: %t, want %t", cause, lookAgain, got, again)
			}
			if m.Refuses() != why {
				t.Errorf("%s: got a second look, want one", cause)
			}
		}
		m.On(Opened, nil)
		if m.Refuses() != nil || m.Cause() != nil {
			t.Error("a connected server is refused")
		}
	})
}

// Those that were answered without the server are told once that it is back; warnings are rare.
func TestLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(false)
		m.On(Refused, errors.New("down"))
		if !m.LeftOut() || m.LeftOut() {
			t.Error("want one warning")
		}
		time.Sleep(missedAgain)
		if !m.LeftOut() {
			t.Error("want another warning after a while")
		}
		if m.On(Refused, errors.New("down")) {
			t.Error("a server that refuses again is reported as back")
		}
		if !m.On(Answered, nil) || m.On(Opened, nil) {
			t.Error("want it reported once that the server is back")
		}
		m.On(Ended, nil)
		if m.On(Opened, nil) {
			t.Error("nobody has missed the server")
		}
		m.LeftOut() // for instance by a client whose own session is not open yet
		if m.On(Answered, nil) || !m.On(Opened, nil) {
			t.Error("want it reported when a session opens, not at each answer")
		}
	})
}
