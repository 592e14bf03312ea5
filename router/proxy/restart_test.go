package proxy_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func refuseDial(context.Context) error { return errors.New("refused") }

// A session that a server has lost is begun anew inside the client's, who does not notice.
func TestRestartedServer(t *testing.T) {
	for _, row := range []struct{ transport, session string }{
		{overHTTP, ""}, {overSSE, ""}, {overPipe, ""}, {overPipe, downstream.SessionPerClient}, {overHTTP, downstream.SessionShared},
	} {
		for _, path := range []string{proxyPath, "/servers/s/mcp"} {
			t.Run(row.transport+row.session+path, func(t *testing.T) {
				s := newServer("echo")
				w := newWorld(t, nil, place{"s", row.transport, s, row.session})
				c, other := w.dial(path), w.dial(path)
				name := "s__echo"
				if path != proxyPath {
					name = "echo"
				}
				for n := range 4 {
					before := len(s.got("notifications/n"))
					for _, c := range []*client{c, other} {
						if a := c.call(name); a.result == "" {
							t.Fatalf("after %d restarts: got %s, want a result", n, a.err)
						}
						if got := c.tools(); !slices.Equal(got, []string{name}) {
							t.Errorf("after %d restarts: got %q, want %s", n, got, name)
						}
						c.notify("notifications/n", "")
					}
					// One that a restart cut may come again.
					mcptest.Eventually(t, "the notifications", func() bool { return len(s.got("notifications/n")) >= before+2 })
					if row.transport == overHTTP { // the loss shows in the next call
						s.restart()
						continue
					}
					// A call on a stream that was cut unnoticed would have an unknown outcome.
					lost := func() int { return len(w.logs.Lines("session with server lost")) }
					sessions := 0
					mcptest.Eventually(t, "the end of handshakes", func() bool {
						sessions = len(s.all())
						return sessions == len(w.logs.Lines("connected to server"))-lost()
					})
					before = lost()
					s.restart()
					mcptest.Eventually(t, "the loss", func() bool { return lost() >= before+sessions })
				}
				for _, params := range s.got("initialize") {
					own := strings.Contains(params, "agenticnexus-router")
					if !own && params != initializeParams {
						t.Errorf("introduced: got %s, want the client's own words each time", params)
					}
				}
				if got := len(s.got("tools/call")); got != 8 {
					t.Errorf("calls: got %d at the server, want each of 8 once", got)
				}
			})
		}
	}
}

// A call that a restart cut is not repeated, unless its tool says that this does no harm.
func TestRestartDuringACall(t *testing.T) {
	for _, transport := range transports {
		s := newServer("write")
		s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":"read",`+object+`,"annotations":{"readOnlyHint":true}}`)
		started := make(chan *request, 10)
		s.on = func(r *request) bool {
			if r.Method != "tools/call" {
				return false
			}
			started <- r
			if len(s.got("tools/call")) > 2 { // the first of each name waits for the restart
				return false
			}
			<-r.ctx.Done()
			return true
		}
		w := newWorld(t, nil, place{"s", transport, s, ""})
		c := w.dial(proxyPath)
		c.tools()
		write := c.beginCall("s__write")
		read := c.beginCall("s__read")
		receive(t, "a call", started)
		receive(t, "a call", started)
		s.restart()
		if c.wait(write); !strings.Contains(write.err, `"code":-32000`) || !strings.Contains(write.err, `"reason":"outcome_unknown","retryable":false`) {
			t.Errorf("%s: a write: got %s %s, want outcome_unknown", transport, write.result, write.err)
		}
		if c.wait(read); read.result == "" {
			t.Errorf("%s: a read: got %s, want the result of another try", transport, read.err)
		}
		calls := map[string]int{}
		for _, params := range s.got("tools/call") {
			calls[jsonrpc.Text(jsonrpc.Get([]byte(params), "name"))]++
		}
		if calls["write"] != 1 || calls["read"] != 2 {
			t.Errorf("%s: got %v at the server, want one write and two reads", transport, calls)
		}
		w.stop()
	}
}

// A child process that is killed is started again by the next call.
func TestKilledChild(t *testing.T) {
	for _, session := range []string{downstream.SessionShared, downstream.SessionPerClient} {
		w := newWorld(t, func(o *setup) {
			o.downstream.Servers = append(o.downstream.Servers, downstream.ServerConfig{
				Name: "child", Type: downstream.TransportStdio, Command: os.Args[0], Session: session, Env: map[string]redact.Secret{asChild: "1"},
			})
		})
		a, b := w.dial(proxyPath), w.dial(proxyPath)
		pid := func(c *client) int {
			n := 0
			for _, digit := range string(jsonrpc.Get([]byte(c.call("child__pid").result), "pid")) {
				n = 10*n + int(digit-'0')
			}
			return n
		}
		first, others := pid(a), pid(b)
		if same := first == others; same != (session == downstream.SessionShared) || first == 0 {
			t.Fatalf("%s: got processes %d and %d, want one for each client only if asked for", session, first, others)
		}
		if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		mcptest.Eventually(t, "another process", func() bool {
			again := pid(a)
			return again != 0 && again != first
		})
		if session == downstream.SessionPerClient && pid(b) != others {
			t.Errorf("%s: the other client's process: got another, want it untouched", session)
		}
		mine := pid(a)
		a.leave()
		if session == downstream.SessionPerClient {
			mcptest.Eventually(t, "the end of the process", func() bool { return syscall.Kill(mine, 0) != nil })
		}
		w.stop()
		for _, p := range []int{first, others, mine} {
			if syscall.Kill(p, 0) == nil {
				t.Errorf("%s: process %d: got it alive after the end, want it gone", session, p)
			}
		}
	}
}

// A client that came while a server was away finds it when it is back, on the same session.
func TestServerComesBack(t *testing.T) {
	s, fine := newServer("echo"), newServer("echo")
	s.dial = refuseDial
	w := newWorld(t, func(o *setup) { o.downstream.Health.Interval = 20 * time.Millisecond },
		place{"s", overPipe, s, ""}, place{"fine", overPipe, fine, ""})
	c := w.dial(proxyPath)
	if a := c.call("s__echo"); !strings.Contains(a.err, `"reason":"unavailable"`) {
		t.Errorf("got %s %s, want it unavailable", a.result, a.err)
	}
	if got := c.tools(); !slices.Equal(got, []string{"fine__echo"}) {
		t.Errorf("got %q, want the other's", got)
	}
	s.change(func() { s.dial = nil })
	if a := c.call("s__echo"); a.result == "" {
		t.Errorf("got %s, want a result: the next call connects", a.err)
	}
	if got := c.tools(); !slices.Equal(got, []string{"s__echo", "fine__echo"}) {
		t.Errorf("got %q, want both in order", got)
	}
}
