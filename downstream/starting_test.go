package downstream_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A command that takes longer to start than lists and calls may wait is not killed for that: they say that it is still
// starting, and use it once it has.
func TestSlowCommandIsNotKilled(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	c := child("a", "1")
	c.Env["DOWNSTREAM_TEST_WAIT"] = redact.Secret(ready)
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{c}, ListDeadline: 20 * time.Millisecond})
	defer m.Stop()
	starting := regexp.MustCompile(`^still starting \(\d+s of at most 120s\)$`)
	check := func(what, why, message string) {
		t.Helper()
		if why != reason.Unavailable || !starting.MatchString(message) {
			t.Errorf("%s: got %s: %s, want unavailable: still starting", what, why, message)
		}
	}
	for range 3 {
		for _, missing := range catalogOf(t, m).Missing {
			check("the catalog", missing.Reason, missing.Message)
		}
		_, err := m.Sessions().List(t.Context(), "a", "", "prompts/list")
		check("a list", failureOf(err).Reason, failureOf(err).Message)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err = m.Call(ctx, request("a", "echo"))
		cancel()
		check("a call", failureOf(err).Reason, failureOf(err).Message)
	}
	if st := m.Status()["a"]; st.Status != downstream.StateConnecting || st.Breaker != "closed" {
		t.Errorf("got %s with its breaker %s, want connecting and closed", st.Status, st.Breaker)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reply, err := m.Call(t.Context(), request("a", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	started, err := os.ReadFile(ready + ".started")
	if err != nil || strings.TrimSpace(string(started)) != resultText(reply) {
		t.Errorf("got %s to answer of the processes %s, %v; want one process", resultText(reply), started, err)
	}
	mcptest.Eventually(t, "its tools are listed", func() bool { return len(catalogOf(t, m).Missing) == 0 })
}

// A call waits for a server that starts as long as its own limit allows. A client that cancels gets no reason.
func TestCallWaitsForStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.dial = func(ctx context.Context) error {
			select {
			case <-time.After(12 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		m := start(t, pipes([]string{"a"}, s))
		defer m.Stop()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("changed my mind")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := m.Call(ctx, request("a", "echo")); !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		late, cancelLate := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancelLate()
		if _, err := m.Call(late, request("a", "echo")); failureOf(err).Message != "still starting (3s of at most 15s)" {
			t.Errorf("got %v, want it still starting", err)
		}
		began := time.Now()
		if _, err := m.Call(t.Context(), request("a", "echo")); err != nil || time.Since(began) != 9*time.Second {
			t.Errorf("got %v after %v, want an answer after 9 s", err, time.Since(began))
		}
		// After a loss it is no longer starting.
		s.cut()
		synctest.Wait()
		late, cancelLate = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancelLate()
		if _, err := m.Call(late, request("a", "echo")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// A list that was too late because its server was still starting does not shorten the wait for the first real list.
func TestListAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.dial = func(context.Context) error { time.Sleep(7 * time.Second); return nil } // of the fake clock
		s.list = func(*server, mcptest.Message) (string, string) {
			time.Sleep(time.Second)
			return `{"tools":[` + tool("echo") + `]}`, ""
		}
		m := start(t, pipes([]string{"a"}, s))
		defer m.Stop()
		if missing := catalogOf(t, m).Missing; len(missing) != 1 {
			t.Errorf("while it starts: got %v missing, want the server", missing)
		}
		time.Sleep(1950 * time.Millisecond)
		catalogOf(t, m) // its list begins before the session and is read in it
		time.Sleep(100 * time.Millisecond)
		if missing := catalogOf(t, m).Missing; len(missing) != 0 {
			t.Errorf("after its start: got %v missing, want none", missing)
		}
	})
}

// Who waits for the start of a server that a new configuration replaces waits for its successor, and for nothing if
// there is none.
func TestAwaitStartOfReplaced(t *testing.T) {
	for _, removed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			var dials atomic.Int64
			s.dial = func(ctx context.Context) error {
				if dials.Add(1) > 1 {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
			o := pipes([]string{"a"}, s)
			m := start(t, o)
			defer m.Stop()
			synctest.Wait()
			time.AfterFunc(time.Second, func() {
				var configs []downstream.ServerConfig
				if other := o.Servers[0]; !removed {
					other.Timeout = time.Minute
					configs = append(configs, other)
				}
				m.Apply(configs)
			})
			waited, err := m.AwaitStart(t.Context(), "a")
			if !waited || err != nil {
				t.Errorf("removed: %t: got %t, %v, want that it waits without an error", removed, waited, err)
			}
			if connected := m.Status()["a"].Status == downstream.StateConnected; connected == removed {
				t.Errorf("removed: %t: got connected: %t", removed, connected)
			}
		})
	}
}
