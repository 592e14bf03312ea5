//go:build unix

package downstream_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Each server is lost in its own way between two calls of a tool that must not run twice; the next calls,
// many at once, a list and a notification find it again.
func TestRestartIsNotNoticed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		open func(t *testing.T) (o downstream.Options, lose func(m *downstream.Manager))
	}{
		{"HTTP 404", func(t *testing.T) (downstream.Options, func(*downstream.Manager)) {
			w := serveHTTP(t, newServer())
			return downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}}, func(*downstream.Manager) { w.restart() }
		}},
		{"HTTP 400", func(t *testing.T) (downstream.Options, func(*downstream.Manager)) {
			w := serveHTTP(t, newServer())
			w.lost = http.StatusBadRequest
			return downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}}, func(*downstream.Manager) { w.restart() }
		}},
		{"HTTP with a standalone stream", func(t *testing.T) (downstream.Options, func(*downstream.Manager)) {
			w := serveHTTP(t, newServer())
			w.stream = true
			return downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}}, func(*downstream.Manager) { w.restart() }
		}},
		{"HTTP, another process", func(t *testing.T) (downstream.Options, func(*downstream.Manager)) {
			w := serveHTTP(t, newServer())
			at := strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/mcp")
			o := downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}}
			return o, func(m *downstream.Manager) {
				w.shut()
				var l net.Listener
				mcptest.Eventually(t, "the address is free", func() (free bool) { // something else may have got it for a moment
					var err error
					l, err = net.Listen("tcp", at)
					return err == nil
				})
				again := httptest.NewUnstartedServer(w)
				again.Listener.Close()
				again.Listener = l
				w.restart()
				again.Start()
				w.shut = func() { w.cut(); again.CloseClientConnections(); again.Close() }
				// What is written to a connection whose end has not been seen may have arrived.
				time.Sleep(50 * time.Millisecond)
			}
		}},
		{"SSE", func(t *testing.T) (downstream.Options, func(*downstream.Manager)) {
			s := newServer()
			c := serveSSE(t, s)
			c.Name = "a"
			return downstream.Options{Servers: []downstream.ServerConfig{c}}, func(m *downstream.Manager) {
				s.cut()
				mcptest.Eventually(t, "the cut is seen", func() bool { return m.Status()["a"].Status != downstream.StateConnected })
			}
		}},
		{"stdio", func(t *testing.T) (downstream.Options, func(*downstream.Manager)) {
			return downstream.Options{Servers: []downstream.ServerConfig{child("a", "1")}}, func(m *downstream.Manager) {
				reply, err := m.Call(t.Context(), request("a", "pid"))
				if err != nil {
					t.Fatal(err)
				}
				pid, _ := strconv.Atoi(resultText(reply))
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				gone(t, pid)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, lose := tc.open(t)
			var log mcptest.Log
			o.Logger = logger(&log)
			m := downstream.New(o) // nobody else reconnects
			defer m.Stop()
			if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
				t.Fatal(err)
			}
			check := func(what string, use func() error) {
				lose(m)
				if err := use(); err != nil {
					t.Errorf("%s after a restart: %v", what, err)
				}
			}
			check("one call", func() error { _, err := m.Call(t.Context(), request("a", "echo")); return err })
			check("calls at once", func() error {
				errs := make(chan error, 20)
				for range 20 {
					go func() { _, err := m.Call(t.Context(), request("a", "echo")); errs <- err }()
				}
				var first error
				for range 20 {
					if err := <-errs; err != nil {
						first = err
					}
				}
				return first
			})
			check("a list", func() error { _, err := m.Sessions().List(t.Context(), "a", "", "tools/list"); return err })
			if tc.name == "HTTP 400" {
				return // to a notification that may mean anything
			}
			check("a notification", func() error { return m.Sessions().Notify(t.Context(), "a", "", "notifications/x", nil) })
			if t.Failed() {
				t.Log(log.String())
			}
		})
	}
}

// A server that is restarted never runs twice: its process may hold a lock, or be the only one of a cluster.
func TestRestart_OneProcess(t *testing.T) {
	t.Parallel()
	configs := []downstream.ServerConfig{child("a", "1")}
	m := start(t, downstream.Options{Servers: configs})
	pid := func() int {
		reply, err := m.Call(t.Context(), request("a", "pid"))
		if err != nil {
			t.Error(err)
		}
		pid, _ := strconv.Atoi(resultText(reply))
		return pid
	}
	first := pid()
	cut := make(chan error, 1)
	go func() {
		_, err := m.Call(t.Context(), request("a", "wait"))
		cut <- err
	}()
	mcptest.Eventually(t, "the call is at the server", func() bool { return m.Status()["a"].InFlight == 1 })
	for range 2 { // the second one before the first process has ended
		downstream.Restart(m, configs, "a")
	}
	next := make(chan int, 1)
	go func() {
		now := pid()
		if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) && !zombieOfAnother(first) {
			t.Errorf("process %d answers beside %d", now, first)
		}
		next <- now
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	downstream.CloseReplaced(ctx, m, "a")
	if now := <-next; now == first || now == 0 {
		t.Errorf("got process %d after %d", now, first)
	}
	if err := <-cut; err == nil {
		t.Error("the call that never ends has ended")
	}
}

// Calls that a server still works on are not cut because it has forgotten the session; later ones get a
// session of their own.
func TestLostSessionLeavesCallsInFlight(t *testing.T) {
	w := serveHTTP(t, newServer())
	m := downstream.New(downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	defer m.Stop()
	first := make(chan error, 1)
	go func() {
		_, err := m.Call(t.Context(), request("a", "wait"))
		first <- err
	}()
	mcptest.Eventually(t, "the first call is at the server", func() bool { return w.count("tools/call") == 1 })
	w.Forget()
	if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
		t.Errorf("a call after the session was lost: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the call in flight ended: %v", err)
	default:
	}
	close(w.gate)
	if err := <-first; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
}

// A server that has gone is found out about by the end of its standalone stream, before anybody calls.
func TestStandaloneStreamTellsOfRestart(t *testing.T) {
	t.Parallel()
	w := serveHTTP(t, newServer())
	w.stream = true
	health := downstream.HealthConfig{Interval: time.Hour} // no ping finds out
	start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}, Health: health})
	mcptest.Eventually(t, "the stream is open", func() bool { return w.opened.Load() == 1 })
	w.restart()
	mcptest.Eventually(t, "there is a new session", func() bool { return w.count("initialize") == 2 })
}

func TestOverloadedServerIsGivenTime(t *testing.T) {
	t.Parallel()
	w := serveHTTP(t, newServer(tool("see", readOnly)))
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}, Execution: downstream.ExecutionConfig{RetryDelay: time.Millisecond}})
	catalogOf(t, m)
	w.mu.Lock()
	w.answers = func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // the session asks for its stream
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.mu.Lock()
		w.answers = nil
		w.mu.Unlock()
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
	}
	w.mu.Unlock()
	began := time.Now()
	if _, err := m.Call(t.Context(), request("a", "see")); err != nil || time.Since(began) < time.Second {
		t.Errorf("got %v after %v, want success after the second it asked for", err, time.Since(began))
	}
}
