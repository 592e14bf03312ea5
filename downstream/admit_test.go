package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/breaker"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A server that cannot be reached costs five calls their retries; then calls are refused at once, and once the server is
// back calls go through.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var down atomic.Bool
		s.dial = func(context.Context) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		var log mcptest.Log
		o := pipes([]string{"a"}, s)
		o.Logger = logger(&log)
		m := downstream.New(o) // nobody else reconnects
		defer m.Stop()
		call := func() (took time.Duration, err error) {
			began := time.Now()
			_, err = m.Call(t.Context(), request("a", "echo"))
			return time.Since(began), err
		}
		breaker := func(want string) {
			t.Helper()
			if got := m.Status()["a"].Breaker; got != want {
				t.Errorf("breaker: got %s, want %s", got, want)
			}
		}
		down.Store(true)
		for range 5 {
			breaker("closed")
			if took, err := call(); failureOf(err).Reason != reason.Unavailable && failureOf(err).Reason != reason.Disconnected || took < time.Second {
				t.Errorf("got %v after %v, want a failure after retries", err, took)
			}
		}
		breaker("open")
		if !log.Has("level=WARN", "calls are refused temporarily", "server=a") {
			t.Error("the log does not say that calls are refused")
		}
		was := m.Status()["a"]
		took, err := call()
		if f := failureOf(err); f.Reason != reason.Unavailable || !downstream.Retryable(f) || took > 0 || !strings.Contains(f.Message, "down") {
			t.Errorf("got %v after %v, want unavailable at once, with the cause", err, took)
		}
		if now := m.Status()["a"]; now.LastError.Message != was.LastError.Message || now.Latency != was.Latency {
			t.Errorf("got %+v, want the last error and the latency to be of calls that were made: %+v", now, was)
		}
		time.Sleep(2 * time.Second)
		breaker("half-open")
		down.Store(false)
		if _, err := call(); err != nil {
			t.Errorf("got %v once it is back, want nil", err)
		}
		breaker("closed")
	})
}

// When the supervisor has found the server again, the next call tries, however long the breaker would stay
// open.
func TestBreakerAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var down atomic.Bool
		down.Store(true)
		s.dial = func(context.Context) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		o := pipes([]string{"a"}, s)
		o.Health.Interval = time.Second
		m := start(t, o)
		for range 8 {
			m.Call(t.Context(), request("a", "echo"))
			time.Sleep(2 * time.Second)
		}
		if got := m.Status()["a"].Breaker; got != breaker.Open {
			t.Fatalf("breaker: got %s, want open", got)
		}
		down.Store(false)
		for m.Status()["a"].Status != downstream.StateConnected {
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
			t.Errorf("got %v once it is connected, want nil", err)
		}
		m.Stop()
	})
}

// A tool that stays silent opens no breaker, unless the server does not answer pings either.
func TestBreakerAndSilence(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			if deaf {
				s.ping = func(func(result, err string)) {}
			}
			o := pipes([]string{"a"}, s)
			o.ProxyTimeout = 40 * time.Second
			m := start(t, o)
			hold := request("a", "slow") // keeps the session from being connected anew
			hold.Params = []byte(`{"name":"slow","arguments":{"rounds":30}}`)
			go m.Call(t.Context(), hold)
			time.Sleep(36 * time.Second) // a ping has failed
			for range 5 {
				if _, err := m.Call(t.Context(), request("a", "hang")); failureOf(err).Reason != reason.Timeout {
					t.Errorf("got %v, want a timeout", err)
				}
			}
			if got := m.Status()["a"].Breaker; (got == breaker.Closed) == deaf {
				t.Errorf("breaker: got %s with a server that is deaf: %t", got, deaf)
			}
			m.Stop()
		})
	}
}

// A caller that floods a server without a session, so that each of its requests looks like another client, makes room for
// other callers all the same. What is refused is refused at once.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 4
		m := start(t, o)
		defer m.Stop()
		const places, room = 4, 64
		var refused atomic.Int64
		var wg sync.WaitGroup
		call := func(caller, client string) {
			r := request("a", "wait")
			r.Caller, r.Client = caller, client
			began := time.Now()
			wg.Go(func() {
				_, err := m.Call(t.Context(), r)
				switch f := failureOf(err); {
				case err == nil:
				case caller == "flood" && f.Reason == reason.Overloaded && downstream.Retryable(f) && time.Since(began) == 0:
					refused.Add(1)
				default:
					t.Errorf("%s: got %v after %v", caller, err, time.Since(began))
				}
			})
			synctest.Wait()
		}
		for n := range places + room + 2 {
			call("flood", fmt.Sprint(n))
		}
		if st := m.Status()["a"]; st.InFlight != places || st.Queued != room || refused.Load() != 2 {
			t.Errorf("got %d in flight, %d waiting and %d refused, want %d, %d and 2", st.InFlight, st.Queued, refused.Load(), places, room)
		}
		call("b", "b")
		call("c", "c")
		for range places + room {
			s.gate <- struct{}{}
		}
		wg.Wait()
		if st := m.Status()["a"]; refused.Load() != 4 || st.InFlight != 0 || st.Queued != 0 || st.LastError != nil {
			t.Errorf("got %d refused and %+v, want 4, nothing in flight and no error", refused.Load(), st)
		}
	})
}

// A call whose time ends while it waits never began: the server is overloaded, the tool did not time out.
func TestQueuedCallRunsOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 1
		o.ProxyTimeout = 30 * time.Second
		m := start(t, o)
		defer m.Stop()
		hold := request("a", "slow")
		hold.Params = []byte(`{"name":"slow","arguments":{"rounds":3}}`) // progress resets its limit
		var wg sync.WaitGroup
		wg.Go(func() { m.Call(t.Context(), hold) })
		synctest.Wait()
		_, err := m.Call(t.Context(), request("a", "echo"))
		if f := failureOf(err); f.Reason != reason.Overloaded || !downstream.Retryable(f) {
			t.Errorf("got %v, want overloaded", err)
		}
		wg.Wait()
	})
}

// What answers but does not speak MCP is quarantined until it does.
func TestServerThatSpeaksSomethingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var odd atomic.Bool
		odd.Store(true)
		s.hello = func() string {
			if odd.Load() {
				return `{"capabilities":{}}`
			}
			return ""
		}
		m := start(t, pipes([]string{"a"}, s))
		time.Sleep(time.Minute)
		st := m.Status()["a"]
		if st.Status != downstream.StateQuarantined || st.LastError == nil || st.LastError.Reason != reason.Protocol {
			t.Errorf("got %+v, want it quarantined with a protocol error", st)
		}
		if age := time.Since(st.Since); age < 50*time.Second {
			t.Errorf("got it quarantined for %v, want since the first attempt", age)
		}
		odd.Store(false)
		time.Sleep(time.Minute)
		if st := m.Status()["a"]; st.Status != downstream.StateConnected || time.Since(st.Since) > time.Minute {
			t.Errorf("got %s since %v, want connected since a moment", st.Status, st.Since)
		}
		m.Stop()
	})
}

// Calls that one loss ends count once: the server may be back already.
func TestBreakerAndOneLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, pipes([]string{"a"}, newServer(tool("hang"), tool("die"), tool("echo"))))
		defer m.Stop()
		catalogOf(t, m)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := m.Call(t.Context(), request("a", "hang")); failureOf(err).Reason != reason.OutcomeUnknown {
					t.Errorf("got %v, want outcome_unknown", err)
				}
			})
		}
		synctest.Wait()
		m.Call(t.Context(), request("a", "die"))
		wg.Wait()
		if got := m.Status()["a"].Breaker; got != breaker.Closed {
			t.Errorf("breaker: got %s after one loss, want closed", got)
		}
		if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
			t.Errorf("the next call: got %v, want nil", err)
		}
	})
}
