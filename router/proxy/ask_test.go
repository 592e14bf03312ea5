package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// asking makes the server's tool ask put a question to whoever called, and answer with what it got. The
// question is in the arguments.
func asking(s *server) {
	s.on = func(r *request) bool {
		if r.name() != "ask" {
			return false
		}
		args := jsonrpc.Get(r.Params, "arguments")
		m := r.ask(jsonrpc.Text(jsonrpc.Get(args, "method")), string(jsonrpc.Get(args, "params")))
		r.result(`{"content":[],"raw":` + quote(string(m.Result)+string(m.Err)) + `}`)
		return true
	}
}

func askParams(server, method, params string) string {
	return `{"name":"` + server + `__ask","arguments":{"method":"` + method + `","params":` + params + `}}`
}

// A server's request reaches the client whose call caused it, and its answer comes back, byte for byte.
func TestServersAskTheirCaller(t *testing.T) {
	rows := []struct{ method, params, answer, want string }{
		{"sampling/createMessage", `{"maxTokens":9007199254740993,"messages":[{"content":{"type":"text","text":"\u00e9"},"role":"user"}],"_meta":{"x":1},"future":[]}`, `"result":{"role":"assistant","n":9007199254740993,"content":{}}`, `{"role":"assistant","n":9007199254740993,"content":{}}`},
		{"elicitation/create", `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}`, `"result":{"action":"accept","content":{"b":1,"a":2}}`, `{"action":"accept","content":{"b":1,"a":2}}`},
		{"elicitation/create", `{"mode":"url","elicitationId":"e","url":"https://x/y","message":"m"}`, `"result":{"action":"decline"}`, `{"action":"decline"}`},
		{"roots/list", `{}`, `"result":{"roots":[{"uri":"file:///x"}]}`, `{"roots":[{"uri":"file:///x"}]}`},
		{"ping", `{"_meta":{"x":1}}`, `"result":{"_meta":{"n":1.0}}`, `{"_meta":{"n":1.0}}`},
		{"custom/ask", `{"a":1}`, `"error":{"code":-1,"message":"no","data":{"n":9007199254740993}}`, `{"code":-1,"message":"no","data":{"n":9007199254740993}}`},
	}
	for _, transport := range transports {
		for _, path := range []string{proxyPath, "/servers/s/mcp"} {
			s := newServer("ask")
			asking(s)
			w := newWorld(t, nil, place{"s", transport, s, ""}, place{"idle", transport, newServer(), ""})
			other := w.dial(path)
			for i, row := range rows {
				c := w.dial(path)
				c.answers = func(jsonrpc.Message) string { return row.answer }
				name := "s__ask"
				if path != proxyPath {
					name = "ask"
				}
				a := c.do("tools/call", strings.Replace(askParams("s", row.method, row.params), "s__ask", name, 1))
				if want := `{"content":[],"raw":` + quote(row.want) + `}`; a.result != want {
					t.Errorf("%s %s: got %s %s, want %s", transport, row.method, a.result, a.err, want)
				}
				asked := c.questions()
				if len(asked) != 1 || asked[0].Method != row.method || string(asked[0].Params) != row.params || len(a.notes) != 1 {
					t.Errorf("%v %v: got %d questions on the call's stream, %v, want one %v %v", transport, row.method, len(a.notes), asked, row.method, row.params)
				}
				if i == 0 && len(other.questions()) > 0 {
					t.Errorf("%v: the other client was asked %v, want nothing", transport, other.questions())
				}
			}
			w.stop()
		}
	}
}

// The router answers pings itself if the client does not, or cannot be asked.
func TestPings(t *testing.T) {
	s := newServer("ask")
	asking(s)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath) // it refuses all requests
	if a := c.do("tools/call", askParams("s", "ping", `{}`)); !strings.Contains(a.result, `"raw":"{}"`) || len(c.questions()) != 1 {
		t.Errorf("the server's ping: got %s and %d questions to the client, want {} and one", a.result, len(c.questions()))
	}
	a := w.modern(proxyPath, "tools/call", `"name":"s__ask","arguments":{"method":"ping","params":{}}`, "s__ask")
	if !strings.Contains(a.result, `"raw":"{}"`) {
		t.Errorf("the server's ping for a client of 2026-07-28: got %s %s, want {}", a.result, a.err)
	}
	if a := c.do("ping", ""); a.result != "{}" {
		t.Errorf("the client's ping: got %s, want {}", a.err)
	}
}

// On a session that clients share, a question is relayed only while one client alone has calls in flight.
func TestSharedSessionsDoNotMixClients(t *testing.T) {
	for _, row := range []struct{ transport, session string }{{overPipe, ""}, {overPipe, downstream.SessionShared}, {overSSE, downstream.SessionShared}} {
		t.Run(row.transport+row.session, func(t *testing.T) {
			s := newServer("hang", "ask")
			started, _ := hanging(s)
			hang := s.on
			asking(s)
			ask := s.on
			s.on = func(r *request) bool { return hang(r) || ask(r) }
			w := newWorld(t, nil, place{"s", row.transport, s, row.session})
			a, b := w.dial(proxyPath), w.dial(proxyPath)
			for _, c := range []*client{a, b} {
				c.answers = func(jsonrpc.Message) string { return `"result":{"roots":[]}` }
			}
			b.beginCall("s__hang")
			receive(t, "the call", started)
			got := a.do("tools/call", askParams("s", "roots/list", `{}`))
			if !strings.Contains(got.result, `\"code\":-32601`) || len(a.questions())+len(b.questions()) > 0 {
				t.Errorf("two clients: got %s, %d and %d questions, want -32601 and none", got.result, len(a.questions()), len(b.questions()))
			}
			got = b.do("tools/call", askParams("s", "roots/list", `{}`))
			if !strings.Contains(got.result, `roots`) || len(b.questions()) != 1 || len(a.questions()) > 0 {
				t.Errorf("one client: got %s, %d and %d questions, want its answer", got.result, len(a.questions()), len(b.questions()))
			}
		})
	}
}

// Whose session a server's is, is as configured; each client of a session of its own introduces itself.
func TestSessionsOfServers(t *testing.T) {
	for _, row := range []struct {
		transport, session string
		each               bool
	}{
		{overHTTP, "", true}, {overSSE, "", true}, {overPipe, "", false},
		{overHTTP, downstream.SessionShared, false}, {overSSE, downstream.SessionShared, false}, {overPipe, downstream.SessionPerClient, true},
	} {
		t.Run(row.transport+row.session, func(t *testing.T) {
			s := newServer("peer")
			s.on = func(r *request) bool {
				if r.name() == "peer" {
					r.result(`{"content":[],"peer":` + quote(r.peer.id) + `}`)
				}
				return r.name() == "peer"
			}
			w := newWorld(t, nil, place{"s", row.transport, s, row.session})
			a, b := w.dial(proxyPath), w.dial("/servers/s/mcp")
			peers := []string{a.call("s__peer").result, b.call("peer").result, a.call("s__peer").result}
			loose := w.newClient(proxyPath).call("s__peer").result
			if same := peers[0] == peers[1]; same == row.each || peers[0] != peers[2] {
				t.Errorf("sessions: got %q, want the clients' equal: %t", peers, !row.each)
			}
			if loose == peers[0] && row.each || loose == "" {
				t.Errorf("a caller without a session: got %s, want the router's own", loose)
			}
			sent := 0
			for _, params := range s.got("initialize") {
				if params == initializeParams {
					sent++
				}
			}
			if want := map[bool]int{true: 2}[row.each]; sent != want {
				t.Errorf("introduced: got %d with the clients' own words, want %d, of %q", sent, want, s.got("initialize"))
			}
			open := len(s.all())
			a.leave()
			if row.each {
				mcptest.Eventually(t, "the end of the session", func() bool { return len(s.all()) == open-1 })
			} else if len(s.all()) != open {
				t.Errorf("shared: got %d sessions after a client left, want %d", len(s.all()), open)
			}
		})
	}
}

// A server may ask outside of any call, on the session of one client.
func TestServersAskOutsideOfCalls(t *testing.T) {
	for _, transport := range []string{overHTTP, overSSE} {
		s := newServer()
		w := newWorld(t, nil, place{"s", transport, s, ""})
		a, b := w.dial(proxyPath), w.dial(proxyPath)
		a.answers = func(jsonrpc.Message) string { return `"result":{"roots":[{"uri":"file:///a"}]}` }
		b.answers = func(jsonrpc.Message) string { return `"result":{"roots":[{"uri":"file:///b"}]}` }
		mcptest.Eventually(t, "the streams", func() bool { return s.streams() == 3 }) // those of the clients and the router's own
		var answers []string
		for _, p := range s.all() {
			m := p.ask(p.ctx, func(raw string) { p.say(raw) }, "roots/list", `{"x":1}`)
			answers = append(answers, string(m.Result)+string(jsonrpc.Get(m.Err, "code")))
		}
		slices.Sort(answers)
		want := []string{"-32601", `{"roots":[{"uri":"file:///a"}]}`, `{"roots":[{"uri":"file:///b"}]}`}
		if !slices.Equal(answers, want) {
			t.Errorf("%s: got %q, want %q", transport, answers, want)
		}
		if len(a.questions()) != 1 || len(b.questions()) != 1 {
			t.Errorf("%s: got %d and %d questions, want one each", transport, len(a.questions()), len(b.questions()))
		}
		w.stop()
	}
}

// Clients that cannot be asked are not.
func TestWhoCannotBeAsked(t *testing.T) {
	s := newServer("ask")
	asking(s)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""}, place{"shared", overPipe, func() *server { s := newServer("ask"); asking(s); return s }(), ""})
	loose := w.newClient(proxyPath)
	for _, server := range []string{"s", "shared"} {
		if a := loose.do("tools/call", askParams(server, "roots/list", `{}`)); !strings.Contains(a.result, `\"code\":-32601`) {
			t.Errorf("%s, without a session: got %s %s, want -32601 at the server", server, a.result, a.err)
		}
	}
	deaf := w.newClient(proxyPath) // takes no streams
	deaf.hello()
	deaf.header.Set("Accept", "application/json")
	if a := deaf.do("tools/call", askParams("s", "roots/list", `{}`)); !strings.Contains(a.result, `\"code\":-32601`) {
		t.Errorf("without a stream: got %s %s, want -32601 at the server", a.result, a.err)
	}
	refuses := w.dial(proxyPath)
	if a := refuses.do("tools/call", askParams("s", "roots/list", `{}`)); !strings.Contains(a.result, quote(`{"code":-32601,"message":"no"}`)) {
		t.Errorf("a client that refuses: got %s %s, want its error", a.result, a.err)
	}
}

// A cancelled call takes its question back.
func TestCancelledCallEndsItsQuestion(t *testing.T) {
	s := newServer("ask")
	asking(s)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	c.answers = func(jsonrpc.Message) string { return "" }
	a := c.start(`1`, "tools/call", askParams("s", "elicitation/create", `{"message":"m"}`))
	mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
	c.notify("notifications/cancelled", `{"requestId":1}`)
	c.wait(a)
	if status := c.send(`{"jsonrpc":"2.0","id":` + string(c.questions()[0].ID) + `,"result":{}}`); status != 202 {
		t.Errorf("a late answer: got %d, want 202", status)
	}
}

// A client's progress on a question goes to the server that asked, under its own token, and nowhere else,
// even where several servers chose the same.
func TestClientsProgressOnQuestions(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			servers := []*server{newServer("ask"), newServer("ask"), newServer()}
			asking(servers[0])
			asking(servers[1])
			w := newWorld(t, nil, place{"a", transport, servers[0], ""}, place{"b", transport, servers[1], ""}, place{"c", transport, servers[2], ""})
			c, foreign := w.dial(proxyPath), w.dial(proxyPath)
			c.answers = func(jsonrpc.Message) string { return "" } // by hand, below
			var calls []*answer
			for i, token := range []string{`"t"`, `"t"`} {
				calls = append(calls, c.start(fmt.Sprint(i), "tools/call", askParams([]string{"a", "b"}[i], "sampling/createMessage", `{"_meta":{"x":1,"progressToken":`+token+`,"y":2},"n":`+fmt.Sprint(i)+`}`)))
			}
			mcptest.Eventually(t, "the questions", func() bool { return len(c.questions()) == 2 })
			seen := map[string]bool{}
			for _, q := range c.questions() {
				token := string(jsonrpc.Get(q.Params, "_meta", "progressToken"))
				seen[token] = true
				if want := `{"_meta":{"x":1,"progressToken":` + token + `,"y":2},"n":`; !strings.HasPrefix(string(q.Params), want) {
					t.Errorf("question: got %s, want %s", q.Params, want)
				}
				of := jsonrpc.Text([]byte(`"` + string(jsonrpc.Get(q.Params, "n")) + `"`))
				foreign.notify("notifications/progress", `{"progressToken":`+token+`,"progress":66}`)
				c.notify("notifications/progress", `{"progress":`+of+`.5,"progressToken":`+token+`,"message":"m","future":[9007199254740993]}`)
			}
			if len(seen) != 2 {
				t.Errorf("tokens: got %v, want two", seen)
			}
			c.notify("notifications/progress", `{"progress":77,"progressToken":"t"}`)
			c.notify("notifications/progress", `{"progress":77}`)
			for i, s := range servers[:2] {
				mcptest.Eventually(t, "progress", func() bool { return len(s.got("notifications/progress")) > 0 })
				want := []string{`{"progress":` + fmt.Sprint(i) + `.5,"progressToken":"t","message":"m","future":[9007199254740993]}`}
				if got := s.got("notifications/progress"); !slices.Equal(got, want) {
					t.Errorf("at server %d: got %q, want %q", i, got, want)
				}
			}
			for _, q := range c.questions() {
				c.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"n":` + string(jsonrpc.Get(q.Params, "n")) + `}}`)
			}
			for i, a := range calls {
				if c.wait(a); !strings.Contains(a.result, quote(`{"n":`+fmt.Sprint(i)+`}`)) {
					t.Errorf("call %d: got %s %s, want its own answer", i, a.result, a.err)
				}
			}
			for token := range seen { // the question is answered
				c.notify("notifications/progress", `{"progress":88,"progressToken":`+token+`}`)
			}
			c.notify("notifications/custom", "") // after it nothing of the above is on its way
			mcptest.Eventually(t, "the last notification", func() bool {
				return len(servers[0].got("notifications/custom"))+len(servers[1].got("notifications/custom"))+len(servers[2].got("notifications/custom")) == 3
			})
			for i, s := range servers {
				if got, want := s.got("notifications/progress"), []int{1, 1, 0}[i]; len(got) != want {
					t.Errorf("at server %d: got %q, want nothing more", i, got)
				}
			}
		})
	}
}
