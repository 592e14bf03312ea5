package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// A server that cannot be reached costs five calls their retries; then calls are refused at once, one now
// and then tries, and once the server is back calls go through.
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
		var log records
		o := pipes([]string{"a"}, s)
		o.Logger = log.logger()
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
			if took, err := call(); failureOf(err).Reason != link.ReasonUnavailable && failureOf(err).Reason != link.ReasonDisconnected || took < time.Second {
				t.Errorf("got %v after %v, want a failure after retries", err, took)
			}
		}
		breaker("open")
		if !log.has("level=WARN", "calls are refused for a moment", "server=a") {
			t.Error("the log does not say that calls are refused")
		}
		was := m.Status()["a"]
		took, err := call()
		if f := failureOf(err); f.Reason != link.ReasonUnavailable || !downstream.Retryable(f) || took > 0 || !strings.Contains(f.Message, "down") {
			t.Errorf("got %v after %v, want unavailable at once, with the cause", err, took)
		}
		if now := m.Status()["a"]; now.LastError.Message != was.LastError.Message || now.Latency != was.Latency {
			t.Errorf("got %+v, want the last error and the latency to be of calls that were made: %+v", now, was)
		}
		for _, pause := range []time.Duration{1, 2, 4, 8, 8} { // seconds
			tries := s.connections()
			time.Sleep(pause*time.Second - time.Millisecond)
			if took, _ := call(); took > 0 || s.connections() != tries {
				t.Errorf("got %d connections before %d s were over, want none", s.connections()-tries, pause)
			}
			time.Sleep(pause*time.Second/5 + time.Millisecond)
			breaker("half-open")
			if took, _ := call(); took == 0 || s.connections() == tries {
				t.Errorf("after %d s: got a call refused, want one let through", pause)
			}
			breaker("open")
		}
		time.Sleep(10 * time.Second)
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
		if got := m.Status()["a"].Breaker; got != downstream.BreakerOpen {
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
				if _, err := m.Call(t.Context(), request("a", "hang")); failureOf(err).Reason != link.ReasonTimeout {
					t.Errorf("got %v, want a timeout", err)
				}
			}
			if got := m.Status()["a"].Breaker; (got == downstream.BreakerClosed) == deaf {
				t.Errorf("breaker: got %s with a server that is deaf: %t", got, deaf)
			}
			m.Stop()
		})
	}
}

// Of the calls that wait, those of a flooding client give way: others get their turn next, and a place.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 4
		m := start(t, o)
		var mu sync.Mutex
		var order []string
		overloaded := map[string]int{}
		var wg sync.WaitGroup
		call := func(client string) {
			wg.Go(func() {
				r := request("a", "wait")
				r.Client = client
				began := time.Now()
				_, err := m.Call(t.Context(), r)
				mu.Lock()
				defer mu.Unlock()
				switch f := failureOf(err); {
				case err == nil:
					order = append(order, client)
				case f.Reason == link.ReasonOverloaded && downstream.Retryable(f) && time.Since(began) == 0:
					overloaded[client]++
				default:
					t.Errorf("got %v after %v", err, time.Since(began))
				}
			})
			synctest.Wait()
		}
		for range 10 {
			call("flood")
		}
		if st := m.Status()["a"]; st.InFlight != 4 || st.Queued != 4 {
			t.Errorf("got %d in flight and %d waiting, want 4 and 4", st.InFlight, st.Queued)
		}
		call("b")
		call("c")
		call("b")
		for range 8 {
			s.gate <- struct{}{}
			synctest.Wait()
		}
		wg.Wait()
		if want := []string{"flood", "flood", "flood", "flood", "flood", "b", "c", "flood"}; !slices.Equal(order, want) {
			t.Errorf("got the turns %v, want %v", order, want)
		}
		if overloaded["flood"] != 4 || overloaded["b"] != 1 || overloaded["c"] != 0 {
			t.Errorf("got %v refused, want 4 of flood and the second of b", overloaded)
		}
		if st := m.Status()["a"]; st.InFlight != 0 || st.Queued != 0 || st.LastError != nil {
			t.Errorf("got %+v, want nothing in flight and no error", st)
		}
		m.Stop()
	})
}

// A call that is cancelled while it waits never begins, and its place is free.
// Who has few calls waiting keeps them, as long as there is a client with more.
func TestLongestLineGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 20
		m := start(t, o)
		var mu sync.Mutex
		refused := map[string]int{}
		var wg sync.WaitGroup
		call := func(client string, times int) {
			for range times {
				wg.Go(func() {
					r := request("a", "wait")
					r.Client = client
					if _, err := m.Call(t.Context(), r); err != nil {
						mu.Lock()
						defer mu.Unlock()
						refused[client]++
					}
				})
				synctest.Wait()
			}
		}
		call("flood", 40)
		for _, client := range []string{"b", "c", "d"} {
			call(client, 2)
		}
		if len(refused) != 1 || refused["flood"] != 6 {
			t.Errorf("got %v refused, want 6 of flood", refused)
		}
		close(s.gate)
		wg.Wait()
		m.Stop()
	})
}

func TestQueuedCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 1
		m := start(t, o)
		var wg sync.WaitGroup
		wg.Go(func() { m.Call(t.Context(), request("a", "wait")) })
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("changed my mind")
		wg.Go(func() {
			if _, err := m.Call(ctx, request("a", "echo")); !errors.Is(err, cause) {
				t.Errorf("got %v, want %v", err, cause)
			}
		})
		synctest.Wait()
		if st := m.Status()["a"]; st.Queued != 1 {
			t.Errorf("got %d waiting, want 1", st.Queued)
		}
		cancel(cause)
		synctest.Wait()
		if st := m.Status()["a"]; st.Queued != 0 {
			t.Errorf("got %d waiting after the cancellation, want none", st.Queued)
		}
		s.gate <- struct{}{}
		wg.Wait()
		if n := s.count("tools/call"); n != 1 {
			t.Errorf("the server got %d calls, want 1", n)
		}
		if n := s.count("notifications/cancelled"); n != 0 {
			t.Errorf("the server got %d cancellations, want none: it never saw the call", n)
		}
		m.Stop()
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
		if f := failureOf(err); f.Reason != link.ReasonOverloaded || !downstream.Retryable(f) {
			t.Errorf("got %v, want overloaded", err)
		}
		wg.Wait()
	})
}

// Calls that come, wait, end and are cancelled in any order never are more than may be, and leave nothing.
func TestQueueUnderLoad(t *testing.T) {
	s := newServer()
	o := pipes([]string{"a"}, s)
	o.Servers[0].MaxParallel = 3
	m := start(t, o)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				r := request("a", "echo")
				r.Client = fmt.Sprint("c", i%5)
				if n%3 == 0 {
					go cancel()
				}
				_, err := m.Call(ctx, r)
				if f := failureOf(err); err != nil && ctx.Err() == nil && f.Reason != link.ReasonOverloaded {
					t.Errorf("got %v, want an answer or overloaded", err)
				}
				if st := m.Status()["a"]; st.InFlight > 3 || st.Queued > 3 {
					t.Errorf("got %d in flight and %d waiting, want 3 of each at most", st.InFlight, st.Queued)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if st := m.Status()["a"]; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("got %d in flight and %d waiting, want none", st.InFlight, st.Queued)
	}
	if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
		t.Errorf("got %v afterwards, want nil", err)
	}
	m.Stop()
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
		if st.Status != downstream.StateQuarantined || st.LastError == nil || st.LastError.Reason != link.ReasonProtocol {
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
				if _, err := m.Call(t.Context(), request("a", "hang")); failureOf(err).Reason != link.ReasonOutcomeUnknown {
					t.Errorf("got %v, want outcome_unknown", err)
				}
			})
		}
		synctest.Wait()
		m.Call(t.Context(), request("a", "die"))
		wg.Wait()
		if got := m.Status()["a"].Breaker; got != downstream.BreakerClosed {
			t.Errorf("breaker: got %s after one loss, want closed", got)
		}
		if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
			t.Errorf("the next call: got %v, want nil", err)
		}
	})
}
