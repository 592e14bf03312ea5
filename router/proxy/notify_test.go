package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A request without an id is no notification: it would pass by the lists of what a caller may use.
func TestRequestsWithoutIDsStayHere(t *testing.T) {
	s := newServer("echo")
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	for _, path := range []string{proxyPath, "/servers/s/mcp"} {
		c := w.dial(path)
		for _, method := range []string{"tools/call", "resources/read", "logging/setLevel"} {
			if status := c.notify(method, `{"name":"echo","uri":"file:///x"}`); status != 202 {
				t.Errorf("%s without an id: got %d, want 202", method, status)
			}
		}
		before := len(s.got("custom/notify"))
		c.notify("custom/notify", "")
		mcptest.Eventually(t, "the notification behind them", func() bool { return len(s.got("custom/notify")) > before })
	}
	if got := append(append(s.got("tools/call"), s.got("resources/read")...), s.got("logging/setLevel")...); len(got) > 0 {
		t.Errorf("the server got %q, want nothing", got)
	}
}

// A session's notifications keep their place among its requests, towards every server.
func TestNotificationsKeepTheirOrder(t *testing.T) {
	for _, transport := range transports {
		s := newServer("echo")
		w := newWorld(t, func(o *setup) { o.quiet = true }, place{"s", transport, s, ""})
		c := w.stdio() // one stream, so that there is an order
		c.hello()
		var answers []*answer
		var want []string
		for i := range 30 {
			c.notify("notifications/n", fmt.Sprintf(`{"n":%d}`, i))
			answers = append(answers, c.start(fmt.Sprint(i), "tools/call", fmt.Sprintf(`{"name":"s__echo","arguments":{"n":%d}}`, i)))
			want = append(want, fmt.Sprint("note ", i), fmt.Sprint("call ", i))
		}
		for _, a := range answers {
			if c.wait(a); a.result == "" {
				t.Fatalf("%s: got %s, want a result", transport, a.err)
			}
		}
		var got []string
		s.change(func() {
			for _, m := range s.received {
				switch m.Method {
				case "notifications/n":
					got = append(got, "note "+string(jsonrpc.Get(m.Params, "n")))
				case "tools/call":
					got = append(got, "call "+string(jsonrpc.Get(m.Params, "arguments", "n")))
				}
			}
		})
		if transport == overPipe && !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", transport, got, want)
		}
		// Over HTTP a request is only known to be on its way, but a notification has arrived.
		last := -1
		for i := range 30 {
			note := slices.Index(got, fmt.Sprint("note ", i))
			if call := slices.Index(got, fmt.Sprint("call ", i)); note < last || call < note {
				t.Errorf("%s: got notification %d at %d and its call at %d, want them in order: %q", transport, i, note, call, got)
			}
			last = note
		}
		c.close()
		w.stop()
	}
}

// A server that does not take notifications, or is not there, holds up nobody else.
func TestHungServerDelaysNobody(t *testing.T) {
	hung, fine := newServer("echo"), newServer("echo")
	dead := newServer("echo")
	w := newWorld(t, func(o *setup) {
		o.config.ListDeadline = 300 * time.Millisecond
	}, place{"hung", overHTTP, hung, ""}, place{"fine", overHTTP, fine, ""}, place{"dead", overHTTP, dead, ""})
	release := make(chan struct{})
	defer close(release)
	c := w.dial(proxyPath)
	hung.change(func() {
		hung.gate = func(http.ResponseWriter, *http.Request) bool { <-release; return true }
	})
	dead.change(func() {
		dead.gate = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }
	})
	began := time.Now()
	for range 3 {
		c.notify("notifications/n", "")
	}
	if a := c.call("fine__echo"); a.result == "" {
		t.Fatalf("got %s, want a result", a.err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a call to another server: got an answer after %v, want it at once", took)
	}
	if got := len(fine.got("notifications/n")); got != 3 {
		t.Errorf("at the other server: got %d notifications before the call, want 3", got)
	}
	mcptest.Eventually(t, "the line", func() bool {
		return w.logs.Has(`msg="cannot relay a notification" server=dead method=notifications/n`)
	})
}

// A held list is served at once, also while its server takes no notifications.
func TestHeldListsWaitForNobody(t *testing.T) {
	hung := newServer("echo")
	hung.caps = anything
	w := newWorld(t, nil, place{"hung", overHTTP, hung, ""})
	release := make(chan struct{})
	defer close(release)
	c := w.dial(proxyPath)
	var listed []string
	mcptest.Eventually(t, "a list that is held", func() bool { // not before the server announces its changes
		before := len(hung.got("tools/list"))
		listed = c.tools()
		return len(hung.got("tools/list")) == before
	})
	hung.change(func() {
		hung.gate = func(_ http.ResponseWriter, r *http.Request) bool { <-release; return true }
	})
	c.notify("notifications/n", "")
	began := time.Now()
	if again := c.tools(); !slices.Equal(again, listed) || time.Since(began) > 2*time.Second {
		t.Errorf("got %q after %v, want %q at once", again, time.Since(began), listed)
	}
}

// What a server says beside a call reaches its client on the call's stream; what it says of its own accord
// reaches the session it was said on, or everybody on a shared one.
func TestServersNotifications(t *testing.T) {
	const logged = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"n":9007199254740993},"logger":"l"}}`
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	const custom = `{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"x":[1.0]}}`
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	for _, row := range []struct {
		transport string
		shared    bool
	}{{overHTTP, false}, {overSSE, false}, {overPipe, true}} {
		s := newServer("talk")
		s.on = func(r *request) bool {
			if r.name() != "talk" {
				return false
			}
			r.send(cancelled) // names a request that no client knows
			r.send(logged)
			if row.transport == overHTTP {
				r.send(custom)
			}
			r.result(`{"content":[]}`)
			return true
		}
		w := newWorld(t, nil, place{"s", row.transport, s, ""}, place{"other", row.transport, newServer(), ""})
		a, b, single, elsewhere := w.dial(proxyPath), w.dial(proxyPath), w.dial("/servers/s/mcp"), w.dial("/servers/other/mcp")
		answer := a.call("s__talk")
		want := []string{logged}
		if row.transport == overHTTP {
			want = append(want, custom)
		}
		if !slices.Equal(answer.notes, want) {
			t.Errorf("%s: on the call's stream: got %q, want %q", row.transport, answer.notes, want)
		}
		streams := 4 // the router's own, a, b and single
		if row.shared {
			streams = 1
		}
		mcptest.Eventually(t, "the streams", func() bool { return s.streams() == streams })
		for _, raw := range []string{changed, custom, cancelled, logged} {
			if n := s.say(raw); n != streams {
				t.Fatalf("%s: said on %d streams, want %d", row.transport, n, streams)
			}
		}
		for who, c := range map[string]*client{"a": a, "b": b, "single": single} {
			mcptest.Eventually(t, "the notifications of "+who, func() bool { return len(c.heard()) >= 3 })
			if got := c.heard(); !slices.Equal(got, []string{changed, custom, logged}) {
				t.Errorf("%s, %s: got %q, want each once and in order", row.transport, who, got)
			}
		}
		if got := elsewhere.heard(); len(got) > 0 {
			t.Errorf("%s, the surface of another server: got %q, want nothing", row.transport, got)
		}
		w.stop()
	}
}

// On a shared session, what concerns all clients reaches the others too when it comes with one client's call.
func TestCommonNotificationsWithACall(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	const updated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`
	const custom = `{"jsonrpc":"2.0","method":"notifications/custom"}`
	renamed := strings.Replace(updated, "file", "s__file", 1)
	for _, session := range []string{downstream.SessionShared, downstream.SessionPerClient} {
		s := withResources("file:///x")
		s.on = func(r *request) bool {
			if r.Method != "tools/call" {
				return false
			}
			r.send(changed)
			r.send(updated)
			r.send(custom)
			r.result(`{"content":[]}`)
			return true
		}
		w := newWorld(t, nil, place{"s", overHTTP, s, session})
		a, b, c := w.dial(proxyPath), w.dial(proxyPath), w.dial("/servers/s/mcp")
		if got := c.do("resources/subscribe", `{"uri":"file:///x"}`); got.result != "{}" {
			t.Fatalf("subscribe: got %s, want {}", got.err)
		}
		streams := map[string]int{downstream.SessionShared: 1, downstream.SessionPerClient: 4}[session]
		mcptest.Eventually(t, "the streams", func() bool { return s.streams() == streams })
		if got, want := a.call("s__echo").notes, []string{changed, renamed, custom}; !slices.Equal(got, want) {
			t.Errorf("%s, with the call: got %q, want %q", session, got, want)
		}
		const flush = `{"jsonrpc":"2.0","method":"notifications/flush"}`
		s.say(flush)
		want := map[*client][]string{a: {flush}, b: {flush}, c: {flush}}
		if session == downstream.SessionShared {
			want[b], want[c] = []string{changed, flush}, []string{changed, updated, flush}
		}
		for i, of := range []*client{a, b, c} {
			mcptest.Eventually(t, "the flush", func() bool { return slices.Contains(of.heard(), flush) })
			if got := of.heard(); !slices.Equal(got, want[of]) {
				t.Errorf("%s, client %d: got %q, want %q", session, i, got, want[of])
			}
		}
		w.stop()
	}
}

// On a shared session updates reach those who subscribed, and the server hears of the last to unsubscribe.
func TestSharedSubscriptions(t *testing.T) {
	s := withResources("file:///x", "file:///dir")
	s.errors["file:///no"] = `{"code":-32002,"message":"no"}`
	w := newWorld(t, nil, place{"hr", overPipe, s, ""})
	a, b, single := w.dial(proxyPath), w.dial(proxyPath), w.dial("/servers/hr/mcp")
	clients := []*client{a, b, single}
	do := func(c *client, method, uri string) {
		t.Helper()
		if got := c.do("resources/"+method, `{"uri":`+quote(uri)+`}`); got.result != "{}" {
			t.Errorf("%s %s: got %s, want {}", method, uri, got.err)
		}
	}
	// update has the server announce updates and compares the URIs that the clients hear.
	update := func(what string, uris []string, want ...[]string) {
		t.Helper()
		for _, uri := range append(uris, "end") {
			method := "resources/updated"
			if uri == "end" {
				method = "end"
			}
			s.say(`{"jsonrpc":"2.0","method":"notifications/` + method + `","params":{"uri":` + quote(uri) + `}}`)
		}
		for i, c := range clients {
			var got []string
			mcptest.Eventually(t, "the end", func() bool { got = c.heard(); return len(got) > 0 && strings.Contains(got[len(got)-1], "/end") })
			for n, raw := range got {
				m, _ := jsonrpc.Parse([]byte(raw))
				got[n] = jsonrpc.Text(jsonrpc.Get(m.Params, "uri"))
			}
			if got = got[:len(got)-1]; !slices.Equal(got, want[i]) {
				t.Errorf("%s, client %d: got %q, want %q", what, i, got, want[i])
			}
			c.forget()
		}
	}
	x := []string{"file:///x"}
	do(a, "subscribe", "hr__file:///x")
	update("one subscriber", x, []string{"hr__file:///x"}, nil, nil)
	do(b, "subscribe", "hr__file:///x")
	do(single, "subscribe", "file:///x")
	update("three subscribers", x, []string{"hr__file:///x"}, []string{"hr__file:///x"}, x)
	do(a, "unsubscribe", "hr__file:///x")
	update("two subscribers", x, nil, []string{"hr__file:///x"}, x)
	do(a, "subscribe", "hr__file:///dir")
	update("a part of what was subscribed to, and what only looks so", []string{"file:///dir/part?x#y", "file:///directory"},
		[]string{"hr__file:///dir/part?x#y"}, nil, nil)
	if got := a.do("resources/subscribe", `{"uri":"hr__file:///no"}`); got.err != s.errors["file:///no"] {
		t.Errorf("refused: got %s %s, want the server's error", got.result, got.err)
	}
	update("a refused subscription", []string{"file:///no"}, nil, nil, nil)
	if got := s.got("resources/unsubscribe"); len(got) > 0 {
		t.Errorf("at the server: got unsubscribe %q, want none while others watch", got)
	}
	do(b, "unsubscribe", "hr__file:///x")
	single.leave()
	mcptest.Eventually(t, "the end of the subscription", func() bool { return len(s.got("resources/unsubscribe")) == 1 })
	if got := s.got("resources/unsubscribe")[0]; string(jsonrpc.Get([]byte(got), "uri")) != `"file:///x"` {
		t.Errorf("at the server: got %s, want file:///x", got)
	}
}

// Who may not see a server does not hear it either.
func TestHiddenServersAreNotHeard(t *testing.T) {
	seen, hidden := newServer("echo"), newServer("echo")
	for _, session := range []string{downstream.SessionShared, downstream.SessionPerClient} {
		w := newWorld(t, func(o *setup) {
			o.edge = edge.Options{Keys: restricted(t, keyOf("ALL"), auth.KeyConfig{Name: "SOME", Key: "secret-SOME", Servers: []string{"seen"}})}
		}, place{"seen", overPipe, seen, session}, place{"hidden", overPipe, hidden, session})
		dial := func(key string) *client {
			c := w.newClient(proxyPath)
			c.header.Set("X-API-Key", "secret-"+key)
			c.hello()
			c.listen()
			return c
		}
		all, some := dial("ALL"), dial("SOME")
		all.tools()
		before := len(hidden.got("notifications/n"))
		some.notify("notifications/n", "")
		mcptest.Eventually(t, "the notification", func() bool { return len(seen.got("notifications/n")) > 0 })
		if got := len(hidden.got("notifications/n")); got != before {
			t.Errorf("%s: at the hidden server: got %d notifications, want none", session, got-before)
		}
		hidden.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret"}}`)
		mcptest.Eventually(t, "the notification", func() bool { return len(all.heard()) == 1 })
		seen.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"open"}}`)
		mcptest.Eventually(t, "the notification", func() bool { return len(some.heard()) > 0 })
		if got := some.heard(); len(got) != 1 || !strings.Contains(got[0], "open") {
			t.Errorf("%s: got %q, want only what the visible server says", session, got)
		}
		w.stop()
		seen.change(func() { seen.received, seen.headers = nil, nil })
	}
}

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
	task7   = `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"7","status":"working"}}`
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
	s.say(task7)
	everybody()
	for _, raw := range []string{logged, status7, task7} {
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
		{overPipe, downstream.SessionPerClient, "A", true}, {overHTTP, "", "LIMITED", false}, {overHTTP, "", "B", false},
	} {
		w := newWorld(t, func(o *setup) {
			if row.key == "B" { // the server's own filter
				o.downstream.Servers[0].Tools.Deny = []string{"echo"}
			}
			limited := keyOf("LIMITED")
			limited.Tools.Deny = []string{"s__echo"}
			o.edge = edge.Options{Keys: restricted(t, keyOf("A"), keyOf("B"), limited)}
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

// What a server says while a client of 2026-07-28 begins and ends its subscriptions reaches another client's call, if
// both are of one caller.
func TestListenersTakeNothingFromCalls(t *testing.T) {
	for key, told := range map[string]int{"A": 2, "B": 0} {
		s := withResources("file:///x")
		s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":"hang",`+object+`}`)
		started, _ := hanging(s)
		hang := s.on
		over := make(chan bool, 1)
		s.on = func(r *request) bool {
			if strings.HasPrefix(r.Method, "resources/") && strings.HasSuffix(r.Method, "subscribe") {
				s.say(logged)
				r.result("{}")
				over <- r.Method == "resources/unsubscribe"
				return true
			}
			return hang(r)
		}
		w := withKeys(t, place{"s", overPipe, s, ""})
		c := w.dialWith("A", proxyPath)
		call := c.beginCall("s__hang")
		receive(t, "the call", started)
		listener := w.newClient(proxyPath)
		listener.header.Set("X-API-Key", "secret-"+key)
		listener.listens("7", `{"resourceSubscriptions":["s__file:///x"]}`)
		listener.close()
		for !receive(t, "the subscription and its end", over) {
		}
		if key == "A" {
			mcptest.Eventually(t, "the log messages", func() bool { return len(c.noted(call)) == told })
		}
		w.stop()
		if got := c.noted(call); len(got) != told || told > 0 && got[0] != logged {
			t.Errorf("the subscriptions of %s: got %q on the stream of the call of A, want %d log messages", key, got, told)
		}
	}
}

// stuck is an edge whose client takes no messages.
type stuck struct {
	proxy.Clients
	until chan struct{}
	taken func()
}

func (s *stuck) Send(session string, message []byte) bool {
	s.taken()
	<-s.until
	return s.Clients.Send(session, message)
}

// While notifications of a server cannot be delivered, its answers are read and calls go on.
func TestDeliveryDelaysNoCalls(t *testing.T) {
	s := newServer("echo")
	until, sending := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(o *setup) {
		o.clients = func(c proxy.Clients) proxy.Clients {
			return &stuck{c, until, sync.OnceFunc(func() { close(sending) })}
		}
	}, place{"s", overPipe, s, ""})
	c := w.dial(proxyPath)
	c.call("s__echo")
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
	resp, err := c.request(http.MethodDelete, "", &answer{})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := receive(t, "the end", search.sessions); got != c.header.Get("Mcp-Session-Id") {
		t.Errorf("got %s, want the session that was ended", got)
	}
}
