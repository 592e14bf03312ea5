package proxy_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// withKeys makes a world for the callers A and B.
func withKeys(t testing.TB, places ...place) *world {
	return newWorld(t, func(o *setup) { o.edge = edge.Options{Keys: restricted(t, keyOf("A"), keyOf("B"))} }, places...)
}

// dialWith opens a session with a key.
func (w *world) dialWith(key, path string) *client {
	w.t.Helper()
	c := w.newClient(path)
	c.header.Set("X-API-Key", "secret-"+key)
	c.hello()
	c.listen()
	return c
}

const (
	logged  = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a secret"}}`
	status7 = `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"7","status":"working"}}`
	changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

// On a session that callers share, log messages reach the caller that they belong to, or nobody.
func TestLogMessagesStayWithTheirCaller(t *testing.T) {
	s := newServer("echo", "hang")
	started, _ := hanging(s)
	w := withKeys(t, place{"s", overPipe, s, ""})
	a, again, b := w.dialWith("A", proxyPath), w.dialWith("A", proxyPath), w.dialWith("B", proxyPath)
	// everybody waits until all that was said before has been delivered.
	everybody := func() {
		t.Helper()
		before := len(b.heard())
		s.say(changed)
		for _, c := range []*client{a, again, b} {
			mcptest.Eventually(t, "the notification", func() bool { return slices.Contains(c.heard()[min(before, len(c.heard())):], changed) })
		}
	}
	told := func(c *client, raw string) (n int) {
		for _, m := range c.heard() {
			if m == raw {
				n++
			}
		}
		return n
	}
	a.call("s__echo")
	s.say(logged)
	s.say(status7)
	everybody()
	for _, raw := range []string{logged, status7} {
		if told(a, raw) != 1 || told(again, raw) != 1 || told(b, raw) != 0 {
			t.Errorf("%s: got it %d, %d and %d times, want it at the only caller's clients", raw, told(a, raw), told(again, raw), told(b, raw))
		}
	}
	// With calls of both in flight nobody can tell whose it is, and afterwards neither.
	b.beginCall("s__hang")
	receive(t, "the call", started)
	aCall := a.beginCall("s__hang")
	receive(t, "the call", started)
	s.say(logged)
	everybody()
	if told(a, logged) != 1 || told(again, logged) != 1 || told(b, logged) != 0 {
		t.Errorf("with two callers: got it %d, %d and %d times, want it dropped", told(a, logged), told(again, logged), told(b, logged))
	}
	if len(aCall.notes) > 0 {
		t.Errorf("on the stream of a call: got %q, want nothing", aCall.notes)
	}
	if !w.logs.Has("dropped a notification that may belong to any client") {
		t.Error("log: got no line for what was dropped")
	}
}

// Tasks of a session that clients share are nobody's to see.
func TestTasksNeedASessionOfTheirOwn(t *testing.T) {
	s := newServer("echo")
	s.on = func(r *request) bool {
		if strings.HasPrefix(r.Method, "tasks/") {
			r.result(`{"taskId":"7"}`)
			return true
		}
		return false
	}
	for _, row := range []struct {
		transport, session, key string
		own                     bool
	}{
		{overHTTP, "", "A", true}, {overHTTP, downstream.SessionShared, "A", false}, {overPipe, "", "A", false},
		{overPipe, downstream.SessionPerClient, "A", true}, {overHTTP, "", "LIMITED", false},
	} {
		w := newWorld(t, func(o *setup) {
			limited := keyOf("LIMITED")
			limited.Tools.Deny = []string{"s__echo"}
			o.edge = edge.Options{Keys: restricted(t, keyOf("A"), limited)}
		}, place{"s", row.transport, s, row.session})
		c := w.dialWith(row.key, "/servers/s/mcp")
		for _, method := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"} {
			a := c.do(method, `{"taskId":"7"}`)
			if row.own && a.result == "" || !row.own && !strings.Contains(a.err, "-32601") {
				t.Errorf("%+v, %s: got %s %s, want it served: %v", row, method, a.result, a.err, row.own)
			}
		}
		if a := w.dialWith("A", proxyPath).do("tasks/get", `{"taskId":"7"}`); !strings.Contains(a.err, "-32601") {
			t.Errorf("%+v, surface of all servers: got %s %s, want -32601", row, a.result, a.err)
		}
		loose := w.newClient("/servers/s/mcp")
		loose.header.Set("X-API-Key", "secret-A")
		if a := loose.do("tasks/get", `{"taskId":"7"}`); !strings.Contains(a.err, "-32601") {
			t.Errorf("%+v, without a session: got %s %s, want -32601", row, a.result, a.err)
		}
		w.stop()
	}
}

// Without a session there is nobody to tell of updates, and nothing is forwarded.
func TestSubscriptionsNeedASession(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"s", overPipe, s, ""})
	for path, uri := range map[string]string{proxyPath: "s__file:///x", "/servers/s/mcp": "file:///x"} {
		for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
			a := w.newClient(path).do(method, `{"uri":"`+uri+`"}`)
			if !strings.Contains(a.err, `-32600,"message":"`+method+` needs a session: send initialize first`) {
				t.Errorf("%s %s: got %s %s, want -32600 that says what to do", path, method, a.result, a.err)
			}
			if got := s.got(method); len(got) > 0 {
				t.Errorf("%s %s: got %q at the server, want nothing", path, method, got)
			}
			if m := w.modern(path, method, `"uri":"`+uri+`"`, ""); !strings.Contains(m.err+m.refused, "-32601") {
				t.Errorf("%s %s, 2026-07-28: got %s%s, want -32601", path, method, m.err, m.refused)
			}
		}
	}
}

// A client whose connection has ended does not keep others of its caller from being asked, but nobody is asked
// what may be for another caller. The server is told what to do.
func TestGoneClientsAreNotAsked(t *testing.T) {
	for _, row := range []struct {
		gone  string // whose client that is
		asked bool
	}{{"A", true}, {"B", false}} {
		s := newServer("hang", "ask")
		started, _ := hanging(s)
		hang := s.on
		asking(s)
		ask := s.on
		s.on = func(r *request) bool { return hang(r) || ask(r) }
		w := withKeys(t, place{"s", overPipe, s, ""})
		gone := w.newClient(proxyPath)
		gone.header.Set("X-API-Key", "secret-"+row.gone)
		gone.hello()
		c := w.dialWith("A", proxyPath)
		c.answers = func(jsonrpc.Message) string { return `"result":{"roots":[]}` }
		gone.beginCall("s__hang")
		receive(t, "the call", started)
		a := c.do("tools/call", askParams("s", "roots/list", `{}`))
		if !strings.Contains(a.result, "-32601") || !strings.Contains(a.result, "Set session: per_client for the server s") {
			t.Errorf("while both are there: got %s %s, want -32601 that says what to do", a.result, a.err)
		}
		gone.end()
		if row.asked {
			mcptest.Eventually(t, "the client is asked", func() bool {
				return strings.Contains(c.do("tools/call", askParams("s", "roots/list", `{}`)).result, `\"roots\":[]`)
			})
		} else if a := c.do("tools/call", askParams("s", "roots/list", `{}`)); !strings.Contains(a.result, "-32601") {
			t.Errorf("another caller's client is gone: got %s %s, want -32601", a.result, a.err)
		}
		w.stop()
	}
}

// In the modern era log messages go to requests that name a level, from that level on.
func TestModernLogLevel(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		s := newServer("talk")
		s.on = func(r *request) bool {
			if r.name() == "talk" {
				for _, level := range []string{"debug", "info", "error", "odd"} {
					r.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1}}`)
				}
				r.result(`{"content":[]}`)
			}
			return r.name() == "talk"
		}
		w := newWorld(t, nil, place{"s", transport, s, ""})
		for level, want := range map[string]int{"": 0, "debug": 3, "info": 2, "warning": 1, "emergency": 0, "odd": 0} {
			meta := modernMeta
			if level != "" {
				meta = strings.Replace(modernMeta, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+level+`",`, 1)
			}
			c := w.newClient(proxyPath)
			c.header = http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"s__talk"}}
			a := c.do("tools/call", `{`+meta+`,"name":"s__talk","arguments":{}}`)
			if len(a.notes) != want || a.result == "" {
				t.Errorf("%s, level %q: got %q and %s %s %s, want %d messages", transport, level, a.notes, a.result, a.err, a.refused, want)
			}
		}
		w.stop()
	}
}

// stuck is an edge whose client takes no messages.
type stuck struct {
	proxyClients
	until chan struct{}
	taken func()
}

type proxyClients interface {
	Send(session string, message []byte) bool
	Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error)
}

func (s *stuck) Send(session string, message []byte) bool {
	s.taken()
	<-s.until
	return s.proxyClients.Send(session, message)
}

// While notifications of a server cannot be delivered, its answers are read and calls go on.
func TestDeliveryDelaysNoCalls(t *testing.T) {
	s := newServer("echo")
	w := newWorld(t, nil, place{"s", overPipe, s, ""})
	c := w.dial(proxyPath)
	c.call("s__echo")
	until, sending := make(chan struct{}), make(chan struct{})
	w.proxy.Attach(&stuck{w.edge, until, sync.OnceFunc(func() { close(sending) })})
	for range 5000 {
		s.say(changed)
	}
	<-sending
	if a := c.call("s__echo"); a.result == "" {
		t.Errorf("got %s, want an answer", a.err)
	}
	other := w.dial(proxyPath)
	if a := other.call("s__echo"); a.result == "" {
		t.Errorf("another client: got %s, want an answer", a.err)
	}
	close(until)
	mcptest.Eventually(t, "the notifications", func() bool { return len(c.heard()) >= 1000 })
	if n := len(c.heard()); n > 1100 {
		t.Errorf("got %d notifications, want those that may wait", n)
	}
	if n := len(w.logs.Lines("dropped notifications of the server")); n != 1 {
		t.Errorf("log: got %d lines, want one for what was dropped", n)
	}
}

// ended is a search that notes which sessions have ended.
type ended struct {
	searched
	sessions chan string
}

func (e *ended) Ended(session string) { e.sessions <- session }

// What a session's searches found is forgotten with it.
func TestSearchEndsWithTheSession(t *testing.T) {
	search := &ended{sessions: make(chan string, 10)}
	w := newWorld(t, func(o *setup) { o.config.SearchAbove, o.search = 1, search }, place{"s", overHTTP, newServer("echo"), ""})
	c := w.newClient(proxyPath)
	c.hello()
	resp, err := c.request(http.MethodDelete, "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := receive(t, "the end", search.sessions); got != c.header.Get("Mcp-Session-Id") {
		t.Errorf("got %s, want the session that was ended", got)
	}
}
