package proxy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// announcing returns a server of 2026-07-28 that announces changes of its tools.
func announcing() *server {
	s := newServer("echo")
	s.modern, s.caps = true, `{"tools":{"listChanged":true}}`
	return s
}

// announcements waits until the server announces on n requests.
func (s *server) announcements(t *testing.T, n int) {
	t.Helper()
	mcptest.Eventually(t, "the listen requests", func() bool { return s.streams() == n })
}

// Clients of both eras learn of list changes of a server of 2026-07-28 once, also after it has ended the request.
func TestModernServerAnnounces(t *testing.T) {
	for _, row := range []struct{ transport, session string }{
		{overHTTP, ""}, {overHTTP, "shared"}, {overPipe, ""},
	} {
		t.Run(row.transport+" "+row.session, func(t *testing.T) {
			s := announcing()
			w := newWorld(t, nil, place{"s", row.transport, s, row.session})
			w.wait("s")
			old, modern := w.newClient(proxyPath), w.newClient(proxyPath)
			old.hello()
			old.listen()
			onModern := modern.listens("7", `{"toolsListChanged":true}`)
			if got := acknowledged(modern, onModern, "toolsListChanged"); got != "true" {
				t.Fatalf("acknowledged: got %q, want true", got)
			}
			sessions := 1
			if row.transport == overHTTP && row.session == "" {
				sessions = 2 // the router's own, and that of the client
			}
			for round := range 2 {
				s.announcements(t, sessions)
				s.change(func() {
					s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":`+quote("new"+strings.Repeat("er", round))+`,`+object+`}`)
				})
				s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1}}}`)
				mcptest.Eventually(t, "the notifications", func() bool {
					return len(old.heard()) > round && len(modern.noted(onModern)) > round+1
				})
				want := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1}}}`
				if got := old.heard(); len(got) != round+1 || got[round] != want {
					t.Errorf("2025-11-25: got %q, want %d times %s", got, round+1, want)
				}
				if got := told(modern, onModern); len(got) != round+1 {
					t.Errorf("2026-07-28: got %q, want %d", got, round+1)
				}
				if got := old.tools(); len(got) != round+2 {
					t.Errorf("got tools %q, want the new one", got)
				}
				requests := len(s.got("subscriptions/listen"))
				for _, p := range s.all() {
					p.cutStream()
				}
				mcptest.Eventually(t, "other listen requests", func() bool {
					return len(s.got("subscriptions/listen")) == requests+sessions
				})
			}
			for _, params := range s.got("subscriptions/listen") {
				if got := string(jsonrpc.Get([]byte(params), "notifications")); got != `{"toolsListChanged":true}` {
					t.Errorf("asked for %s, want changes of tools alone", got)
				}
			}
			if status := w.manager.Status()["s"]; status.InFlight != 0 {
				t.Errorf("in flight: got %d, want no listen request", status.InFlight)
			}
		})
	}
}

// While its server announces changes, a list is requested once.
func TestModernServerIsCached(t *testing.T) {
	s := announcing()
	w := newWorld(t, nil, place{"s", overHTTP, s, "shared"})
	w.wait("s")
	c := w.newClient(proxyPath)
	c.hello()
	s.announcements(t, 1)
	mcptest.Eventually(t, "a cached list", func() bool {
		before := len(s.got("tools/list"))
		c.tools()
		return len(s.got("tools/list")) == before
	})
}

// A server that declares changes but does not know subscriptions/listen is asked once, and is used without.
func TestModernServerDoesNotListen(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := announcing()
			s.errors["subscriptions/listen"] = `{"code":-32601,"message":"Method not found"}`
			w := newWorld(t, nil, place{"s", transport, s, "shared"})
			w.wait("s")
			const refused = "the server declares changes of lists, but does not announce them"
			mcptest.Eventually(t, "the log line", func() bool { return w.logs.Has(refused) })
			c := w.newClient(proxyPath)
			c.hello()
			for range 2 {
				before := len(s.got("tools/list"))
				if got := c.tools(); !slices.Equal(got, []string{"s__echo"}) {
					t.Errorf("got tools %q, want s__echo", got)
				}
				if got := len(s.got("tools/list")); got != before+1 {
					t.Errorf("got %d requests of the list, want another", got-before)
				}
			}
			if lines, asked := w.logs.Lines(refused), s.got("subscriptions/listen"); len(lines) != 1 || len(asked) != 1 {
				t.Errorf("got %d requests and the log lines %q, want one each", len(asked), lines)
			}
		})
	}
}

// A listen request takes no place of a call and does not delay the end of the router.
func TestModernServerListensBesideCalls(t *testing.T) {
	s := announcing()
	w := newWorld(t, func(o *setup) {
		for i := range o.downstream.Servers {
			o.downstream.Servers[i].MaxParallel = 1
		}
	}, place{"s", overHTTP, s, "shared"})
	w.wait("s")
	s.announcements(t, 1)
	c := w.newClient(proxyPath)
	c.hello()
	if a := c.call("s__echo"); a.result == "" {
		t.Errorf("got %s, want a result", a.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.stop() }()
	select {
	case <-stopped:
	case <-ctx.Done():
		t.Fatal("the router does not stop")
	}
	s.announcements(t, 0)
	if w.logs.Has("session with server lost") {
		t.Error("got a lost session, want a closed one")
	}
	if state := w.manager.Status()["s"].Status; state == downstream.StateConnected {
		t.Errorf("got %s after the end", state)
	}
}
