//go:build unix

package downstream_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestStopInReverseOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	o := downstream.Options{}
	for _, name := range []string{"a", "b", "c"} {
		w := serveHTTP(t, newServer())
		o.Servers = append(o.Servers, w.config(name))
		w.mu.Lock()
		w.hook = func(r *http.Request) {
			if r.Method != http.MethodDelete {
				return
			}
			mu.Lock()
			order = append(order, "begin "+name)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond) // a server takes its time
			mu.Lock()
			order = append(order, "end "+name)
			mu.Unlock()
		}
		w.mu.Unlock()
	}
	m := start(t, o)
	for _, name := range m.Servers() {
		mcptest.Eventually(t, name+" is connected", func() bool { return m.Status()[name].Status == downstream.StateConnected })
	}
	m.Stop()
	if want := []string{"begin c", "end c", "begin b", "end b", "begin a", "end a"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	for _, name := range m.Servers() {
		if got := m.Status()[name].Status; got != downstream.StateDisconnected {
			t.Errorf("%s is %s after Stop", name, got)
		}
	}
}

// gone fails if a process is there, be it as a zombie.
func gone(t *testing.T, pid int) {
	t.Helper()
	mcptest.Eventually(t, "process "+strconv.Itoa(pid)+" is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombieOfAnother(pid) })
}

// zombieOfAnother reports whether the process has ended but whoever adopted it has not looked yet.
func zombieOfAnother(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0] == "Z" && fields[1] != strconv.Itoa(os.Getpid())
}

// Stop leaves neither the child nor its process group, where their ids are known, and does not wait for any.
func TestStopLeavesNoProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		mode    string
		script  string         // starts the child
		signal  syscall.Signal // before Stop
		nothing bool           // no time to stop
	}{
		"well-behaved":              {mode: "1"},
		"deaf to the end of input":  {mode: "deaf"},
		"stopped in its tracks":     {mode: "1", signal: syscall.SIGSTOP},
		"outputs held by a process": {mode: "1", script: `setsid sleep 20 & exec "$0"`}, // which has left the group
		"no time":                   {mode: "1", nothing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := child("a", tc.mode)
			if tc.script != "" {
				if _, err := exec.LookPath("setsid"); err != nil {
					t.Skip("no setsid")
				}
				c.Command, c.Args = "sh", []string{"-c", tc.script, os.Args[0]}
			}
			m := start(t, downstream.Options{Servers: []downstream.ServerConfig{c}})
			var pids []int
			for _, tool := range []string{"pid", "family"} {
				if tc.mode == "deaf" {
					break
				}
				reply, err := m.Call(t.Context(), request("a", tool))
				pid, bad := strconv.Atoi(resultText(reply))
				if err != nil || bad != nil {
					t.Fatalf("%s: %s, %v", tool, resultText(reply), err)
				}
				pids = append(pids, pid)
			}
			if tc.signal != 0 {
				if err := syscall.Kill(pids[0], tc.signal); err != nil {
					t.Fatal(err)
				}
			}
			if tc.nothing {
				within(t, 20*time.Second, "StopWithin", func() { m.StopWithin(0) })
			} else {
				within(t, 15*time.Second, "Stop", m.Stop)
			}
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

func TestStopWithoutStart(t *testing.T) {
	m := downstream.New(downstream.Options{Servers: []downstream.ServerConfig{child("a", "1")}})
	within(t, 15*time.Second, "Stop", m.Stop)
	m.Stop()
	if _, err := m.Call(t.Context(), request("a", "echo")); failureOf(err).Reason != reason.Unavailable {
		t.Errorf("got %v after Stop, want unavailable", err)
	}
	if c, err := m.Catalog(t.Context()); err != nil || len(c.Missing) != 1 {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestStopWhileConnecting(t *testing.T) {
	t.Parallel()
	hanging := serveHTTP(t, newServer())
	hanging.answers = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	o := pipes([]string{"a"}, newServer())
	o.Servers = append(o.Servers, hanging.config("b"), downstream.ServerConfig{Name: "c", URL: hanging.url, Type: downstream.TransportSSE})
	dialling := newServer()
	dialling.dial = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	o.Embedded["a"] = dialling.embedded
	m := start(t, o)
	mcptest.Eventually(t, "they connect", func() bool { return len(hanging.seen(http.MethodPost)) > 0 && len(hanging.seen(http.MethodGet)) > 0 })
	done := make(chan error, 3)
	for _, s := range m.Servers() {
		go func() { _, err := m.Call(t.Context(), request(s, "echo")); done <- err }()
	}
	within(t, 15*time.Second, "Stop", m.Stop)
	for range 3 {
		select {
		case err := <-done:
			if failureOf(err).Reason == "" {
				t.Errorf("got %v, want a failure", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a call goes on after Stop")
		}
	}
}

// Calls in flight and calls that wait for another attempt end with Stop.
func TestStopEndsCalls(t *testing.T) {
	w := serveHTTP(t, newServer())
	down := newServer()
	down.dial = func(context.Context) error { return errors.New("down") }
	o := pipes([]string{"down", "pipe"}, down, newServer())
	o.Servers = append(o.Servers, w.config("http"), serveSSE(t, newServer()), child("child", "1"))
	o.Execution.RetryDelay = time.Hour
	m := start(t, o)
	done := make(chan error, 5)
	for _, s := range m.Servers() {
		r := request(s, "hang")
		go func() { _, err := m.Call(t.Context(), r); done <- err }()
	}
	for _, s := range m.Servers()[1:] {
		mcptest.Eventually(t, "the call of "+s+" is in flight", func() bool { return m.Status()[s].InFlight == 1 && m.Status()[s].Sessions == 1 })
	}
	mcptest.Eventually(t, "HTTP has the call", func() bool { return w.count("tools/call") == 1 })
	within(t, 15*time.Second, "Stop", m.Stop)
	for range 5 {
		select {
		case err := <-done:
			if failureOf(err).Reason == "" {
				t.Errorf("got %v, want a failure", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a call goes on after Stop")
		}
	}
}

// Lists, calls and notifications of clients may come while everything stops.
func TestStopUnderLoad(t *testing.T) {
	w := serveHTTP(t, newServer())
	o := pipes([]string{"a"}, newServer())
	o.Servers = append(o.Servers, w.config("b"))
	m := start(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 8 {
		client := "c" + strconv.Itoa(i)
		wg.Go(func() {
			for ctx.Err() == nil {
				m.Sessions().Enter(client, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`))
				m.Sessions().List(ctx, "b", client, "tools/list")
				m.Sessions().Notify(ctx, "b", client, "notifications/x", nil)
				m.Catalog(ctx)
				m.Call(ctx, request("a", "echo"))
				m.Sessions().Leave(client)
			}
		})
	}
	mcptest.Eventually(t, "there is load", func() bool { return w.count("tools/list") > 10 })
	within(t, 15*time.Second, "Stop", m.Stop)
	cancel()
	wg.Wait()
}

// Servers that do not answer to DELETE share what time there is.
func TestStopWithinLimit(t *testing.T) {
	t.Parallel()
	o := downstream.Options{}
	for i := range 15 {
		w := serveHTTP(t, newServer())
		o.Servers = append(o.Servers, w.config("s"+strconv.Itoa(i)))
		w.mu.Lock()
		w.hook = func(r *http.Request) {
			if r.Method == http.MethodDelete {
				<-r.Context().Done()
			}
		}
		w.mu.Unlock()
	}
	m := start(t, o)
	for _, name := range m.Servers() {
		mcptest.Eventually(t, name+" is connected", func() bool { return m.Status()[name].Status == downstream.StateConnected })
	}
	within(t, 25*time.Second, "StopWithin", func() { m.StopWithin(2 * time.Second) }) // one by one they would take 30 s
}
