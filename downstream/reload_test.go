package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// served is the tools that the catalog names.
func served(t *testing.T, m *downstream.Manager) string {
	t.Helper()
	return names(catalogOf(t, m).See(nil))
}

func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, changed, removed, added := newServer(tool("k")), newServer(tool("c")), newServer(tool("r")), newServer(tool("n"))
		o := pipes([]string{"kept", "changed", "removed", "added"}, kept, changed, removed, added)
		all := o.Servers
		o.Servers = all[:3]
		m := start(t, o)
		synctest.Wait()
		if got := served(t, m); got != "k@kept c@changed r@removed" {
			t.Errorf("at first: got %s", got)
		}
		other := all[1]
		other.Timeout = time.Minute
		changes := m.Apply([]downstream.ServerConfig{all[3], all[0], other})
		if fmt.Sprint(changes) != "{[added] [removed] [changed]}" || changes.None() {
			t.Errorf("got the changes %v", changes)
		}
		synctest.Wait()
		if got := served(t, m); got != "n@added k@kept c@changed" {
			t.Errorf("afterwards: got %s", got)
		}
		if got := m.Servers(); !slices.Equal(got, []string{"added", "kept", "changed"}) {
			t.Errorf("got the servers %v, want the new order", got)
		}
		for s, want := range map[*server]int{kept: 1, changed: 2, removed: 1, added: 1} {
			if got := s.connections(); got != want {
				t.Errorf("%v: got %d connections, want %d", s.tools, got, want)
			}
		}
		if kept.open() != 1 || changed.open() != 1 || removed.open() != 0 {
			t.Errorf("got %d, %d and %d connections open, want the old ones closed", kept.open(), changed.open(), removed.open())
		}
		var unknown *downstream.UnknownError
		if _, err := m.Call(t.Context(), request("removed", "r")); !errors.As(err, &unknown) {
			t.Errorf("calling what is gone: got %v, want it unknown", err)
		}
		if _, there := m.Status()["removed"]; there {
			t.Error("the status names a server that is gone")
		}
		if again := m.Apply([]downstream.ServerConfig{all[3], all[0], other}); !again.None() {
			t.Errorf("the same again: got %v, want no changes", again)
		}
		m.Stop()
		if after := m.Apply(all); !after.None() {
			t.Errorf("after Stop: got %v, want nothing to happen", after)
		}
	})
}

// A call in flight on a server that is changed or removed is answered by the session it went to, which
// closes then. What waited for it goes to its successor.
func TestApplyKeepsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, gone := newServer(), newServer(), newServer()
		o := pipes([]string{"a", "gone"}, first, gone)
		var moved atomic.Bool
		o.Embedded["a"] = func(ctx context.Context) (io.ReadWriteCloser, error) {
			if moved.Load() {
				return second.embedded(ctx)
			}
			return first.embedded(ctx)
		}
		o.Servers[0].MaxParallel = 1
		m := start(t, o)
		var wg sync.WaitGroup
		call := func(server, tool string) {
			wg.Go(func() {
				if _, err := m.Call(t.Context(), request(server, tool)); err != nil {
					t.Errorf("%s of %s: got %v, want an answer", tool, server, err)
				}
			})
			synctest.Wait()
		}
		call("a", "wait")
		call("a", "echo") // has to wait for it
		call("gone", "wait")
		moved.Store(true)
		c := o.Servers[0]
		c.MaxParallel = 2
		m.Apply([]downstream.ServerConfig{c})
		synctest.Wait()
		call("a", "echo")
		if first.count("tools/call") != 1 || second.count("tools/call") != 2 {
			t.Errorf("got %d calls at the old server and %d at the new one, want 1 and 2", first.count("tools/call"), second.count("tools/call"))
		}
		if first.open() != 1 || gone.open() != 1 {
			t.Errorf("got %d and %d connections, want those with calls in flight kept", first.open(), gone.open())
		}
		first.gate <- struct{}{}
		gone.gate <- struct{}{}
		wg.Wait()
		synctest.Wait()
		if first.open() != 0 || gone.open() != 0 || second.open() != 1 {
			t.Errorf("got %d, %d and %d connections afterwards, want the last alone", first.open(), gone.open(), second.open())
		}
		m.Stop()
	})
}

// What waits for a server that is removed is told so.
func TestApplyRefusesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 1
		m := start(t, o)
		var wg sync.WaitGroup
		wg.Go(func() { m.Call(t.Context(), request("a", "wait")) })
		synctest.Wait()
		wg.Go(func() {
			var unknown *downstream.UnknownError
			if _, err := m.Call(t.Context(), request("a", "echo")); !errors.As(err, &unknown) {
				t.Errorf("got %v, want the server to be unknown", err)
			}
		})
		synctest.Wait()
		m.Apply(nil)
		s.gate <- struct{}{}
		wg.Wait()
		m.Stop()
	})
}

// What has not got as far as a server when that is replaced, because it cannot be reached or does not let itself
// be connected to, goes on with the successor at once.
func TestApplyTakesAlongWhatWaits(t *testing.T) {
	for state, dial := range map[string]func(ctx context.Context) error{
		"cannot be reached": func(context.Context) error { return errors.New("nobody there") },
		"hangs":             func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		for what, use := range map[string]func(ctx context.Context, m *downstream.Manager) error{
			"a call": func(ctx context.Context, m *downstream.Manager) error {
				_, err := m.Call(ctx, request("a", "echo"))
				return err
			},
			"a list": func(ctx context.Context, m *downstream.Manager) error {
				_, err := m.Sessions().List(ctx, "a", "c", "tools/list")
				return err
			},
			"initialize": func(ctx context.Context, m *downstream.Manager) error {
				_, err := m.Sessions().Initialized(ctx, "a", "c")
				return err
			},
			"a notification": func(ctx context.Context, m *downstream.Manager) error {
				return m.Sessions().Notify(ctx, "a", "c", "notifications/x", nil)
			},
			"the catalog": func(ctx context.Context, m *downstream.Manager) error {
				c, err := m.Catalog(ctx)
				if err == nil && len(c.Missing) > 0 {
					return fmt.Errorf("without %v", c.Missing)
				}
				return err
			},
		} {
			if state == "cannot be reached" && what != "a call" {
				continue // they do not wait for such a server
			}
			t.Run(what+" of a server that "+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := newServer(), newServer()
					first.dial = dial
					o := pipes([]string{"a"}, first)
					var moved atomic.Bool
					o.Embedded["a"] = func(ctx context.Context) (io.ReadWriteCloser, error) {
						if moved.Load() {
							return second.embedded(ctx)
						}
						return first.embedded(ctx)
					}
					o.Servers[0].Session = downstream.SessionPerClient
					o.Execution.RetryDelay = time.Hour
					m := downstream.New(o)
					m.Sessions().Enter("c", hello("c"))
					done := make(chan error, 1)
					go func() { done <- use(t.Context(), m) }()
					synctest.Wait()
					moved.Store(true)
					changed := o.Servers[0]
					changed.MaxParallel = 2
					began := time.Now()
					m.Apply([]downstream.ServerConfig{changed})
					if err := <-done; err != nil || time.Since(began) > 0 {
						t.Errorf("got %v after %v, want success at once", err, time.Since(began))
					}
					m.Stop()
				})
			})
		}
	}
}

// A call that waits for another attempt ends as calls of the new configuration do, if that has no server or no
// such tool for it any more.
func TestApplyRefusesWhatIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *downstream.ServerConfig) []downstream.ServerConfig
		want   string
	}{
		"removed": {func(*downstream.ServerConfig) []downstream.ServerConfig { return nil }, "Unknown server: a"},
		"disabled": {func(c *downstream.ServerConfig) []downstream.ServerConfig {
			c.Disabled = true
			return []downstream.ServerConfig{*c}
		}, "Unknown server: a"},
		"without the tool": {func(c *downstream.ServerConfig) []downstream.ServerConfig {
			c.Tools.Deny = []string{"echo"}
			return []downstream.ServerConfig{*c}
		}, "Unknown tool: a__echo"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.dial = func(context.Context) error { return errors.New("nobody there") }
				o := pipes([]string{"a"}, s)
				o.Execution.RetryDelay = time.Hour
				m := downstream.New(o)
				done := make(chan error, 1)
				go func() { _, err := m.Call(t.Context(), request("a", "echo")); done <- err }()
				synctest.Wait()
				changed := o.Servers[0]
				began := time.Now()
				m.Apply(tc.change(&changed))
				var unknown *downstream.UnknownError
				if err := <-done; !errors.As(err, &unknown) || err.Error() != tc.want || time.Since(began) > 0 {
					t.Errorf("got %v after %v, want %s at once", err, time.Since(began), tc.want)
				}
				m.Stop()
			})
		})
	}
}

// Nor does a replaced server take more than its share of the time that there is to stop.
func TestStopWithinLimitOfReplacedServers(t *testing.T) {
	w := serveHTTP(t, newServer())
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	done := make(chan error, 1)
	go func() { _, err := m.Call(t.Context(), request("a", "hang")); done <- err }()
	mcptest.Eventually(t, "the call is there", func() bool { return w.count("tools/call") == 1 })
	w.mu.Lock()
	w.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete {
			<-r.Context().Done()
		}
	}
	w.mu.Unlock()
	m.Apply(nil)
	began := time.Now()
	m.StopWithin(0)
	if took := time.Since(began); took >= 2*time.Second { // what a replaced server gets while the router runs
		t.Errorf("stopped after %v, want the replaced server cut off", took)
	}
	if err := <-done; failureOf(err).Reason == "" {
		t.Errorf("got %v, want a failure", err)
	}
}

// Clients keep their sessions: the changed server gets one for each of them when they next need it.
func TestApplyWithinClientSessions(t *testing.T) {
	w := serveHTTP(t, newServer())
	c := w.config("a")
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{c}})
	m.Sessions().Enter("c1", hello("c1"))
	r := request("a", "echo")
	r.Client, r.Proxied = "c1", true
	for i := range 3 {
		if _, err := m.Call(t.Context(), r); err != nil {
			t.Errorf("call %d: got %v, want an answer", i, err)
		}
		mcptest.Eventually(t, "the router's own session is there", func() bool { return m.Status()["a"].Sessions == 2 })
		c.Timeout = time.Duration(i+1) * time.Minute
		m.Apply([]downstream.ServerConfig{c})
	}
	mcptest.Eventually(t, "the router's own session is there", func() bool { return m.Status()["a"].Sessions == 1 })
	m.Sessions().Leave("c1")
	m.Stop()
	if opened, ended := w.count("initialize"), len(w.seen(http.MethodDelete)); opened != ended {
		t.Errorf("got %d of %d sessions ended, want all", ended, opened)
	}
}

// Under load, with the configuration changing all the time, every call is answered.
func TestApplyUnderLoad(t *testing.T) {
	w := serveHTTP(t, newServer())
	o := pipes([]string{"pipe"}, newServer())
	o.Servers = append(o.Servers, w.config("http"))
	m := start(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var answered atomic.Int64
	for i := range 8 {
		server := []string{"pipe", "http"}[i%2]
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := m.Call(t.Context(), request(server, "echo")); err != nil {
					t.Errorf("%s: got %v, want an answer", server, err)
					return
				}
				answered.Add(1)
				m.Catalog(ctx)
				m.Status()
			}
		})
	}
	for i := range 30 {
		configs := slices.Clone(o.Servers)
		configs[i%2].Timeout = time.Duration(i+1) * time.Minute
		m.Apply(configs)
		before := answered.Load()
		mcptest.Eventually(t, "calls go on", func() bool { return answered.Load() > before+20 || t.Failed() })
	}
	cancel()
	wg.Wait()
	within(t, 20*time.Second, "Stop", m.Stop)
	if st := m.Status()["http"]; st.LastError != nil && st.LastError.Reason != reason.Disconnected {
		t.Errorf("got the last error %+v", st.LastError)
	}
}
