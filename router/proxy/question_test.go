package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// inItsName returns the params of a server's question as the surface of all servers shows them.
func inItsName(server, params string) string {
	prefix := "Server " + server + " asks: "
	if strings.Contains(params, `"mode":"url"`) {
		prefix = "Server " + server + " asks you to open x: "
	}
	params = strings.Replace(params, `"message":"`, `"message":"`+prefix, 1)
	return strings.Replace(params, `"includeContext":"allServers"`, `"includeContext":"none"`, 1)
}

// A server's request reaches the client whose call caused it, and its answer comes back, byte for byte.
func TestServersAskTheirCaller(t *testing.T) {
	rows := []struct{ method, params, answer, want string }{
		{"sampling/createMessage", `{"maxTokens":9007199254740993,"includeContext":"allServers","messages":[{"content":{"type":"text","text":"\u00e9"},"role":"user"}],"_meta":{"x":1},"future":[]}`, `"result":{"role":"assistant","n":9007199254740993,"content":{}}`, `{"role":"assistant","n":9007199254740993,"content":{}}`},
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
				asked, want := c.questions(), row.params
				if path == proxyPath {
					want = inItsName("s", want)
				}
				if len(asked) != 1 || asked[0].Method != row.method || string(asked[0].Params) != want || len(a.notes) != 1 {
					t.Errorf("%v %v: got %d questions on the call's stream, %v, want one %v %v", transport, row.method, len(a.notes), asked, row.method, want)
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

// A client's progress on a question goes to the server that asked, under its own token, while the question is open.
func TestClientsProgressOnQuestions(t *testing.T) {
	for _, transport := range transports {
		s, idle := newServer("ask"), newServer()
		asking(s)
		w := newWorld(t, nil, place{"s", transport, s, ""}, place{"idle", transport, idle, ""})
		c, foreign := w.dial(proxyPath), w.dial(proxyPath)
		c.answers = func(jsonrpc.Message) string { return "" } // by hand, below
		call := c.start("1", "tools/call", askParams("s", "sampling/createMessage", `{"_meta":{"x":1,"progressToken":"t","y":2},"n":1}`))
		mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
		q := c.questions()[0]
		token := string(jsonrpc.Get(q.Params, "_meta", "progressToken"))
		if want := `{"_meta":{"x":1,"progressToken":` + token + `,"y":2},"n":1}`; string(q.Params) != want {
			t.Errorf("%s: got the question %s, want %s", transport, q.Params, want)
		}
		progress := func(c *client, token string) {
			c.notify("notifications/progress", `{"progress":1.5,"progressToken":`+token+`,"message":"m","future":[9007199254740993]}`)
		}
		progress(foreign, token)
		progress(c, `"t"`)
		progress(c, token)
		mcptest.Eventually(t, "progress", func() bool { return len(s.got("notifications/progress")) > 0 })
		c.member(q, `"result":{}`)
		c.wait(call)
		progress(c, token)
		for _, c := range []*client{c, foreign} {
			c.notify("notifications/custom", "") // after it nothing of the above is on its way
		}
		mcptest.Eventually(t, "the last notifications", func() bool { return len(s.got("notifications/custom"))+len(idle.got("notifications/custom")) == 4 })
		want := []string{`{"progress":1.5,"progressToken":"t","message":"m","future":[9007199254740993]}`}
		if got := s.got("notifications/progress"); !slices.Equal(got, want) || len(idle.got("notifications/progress")) > 0 {
			t.Errorf("%s: got %q and %q at the other server, want %q", transport, got, idle.got("notifications/progress"), want)
		}
		w.stop()
	}
}

// Clients of 2026-07-28 have no session that tells them apart, and report no progress on what others are asked.
func TestNobodyReportsProgressForOthers(t *testing.T) {
	s := newServer("ask")
	asking(s)
	w := newWorld(t, nil, place{"s", overPipe, s, ""})
	meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"sampling":{}}`, 1)
	params := "{" + meta + "," + askParams("s", "sampling/createMessage", `{"_meta":{"progressToken":"t"}}`)[1:]
	a := w.modernWith(http.Header{}, proxyPath, "tools/call", params, "s__ask")
	if !strings.Contains(a.result, `"progressToken"`) {
		t.Fatalf("got %s %s %s, want the question", a.result, a.err, a.refused)
	}
	other := w.newClient(proxyPath)
	other.header.Set("MCP-Protocol-Version", "2026-07-28")
	for _, token := range []string{`"t"`, "0", "1", "2"} {
		other.notify("notifications/progress", "{"+modernMeta+`,"progress":1,"progressToken":`+token+"}")
	}
	other.notify("notifications/custom", "{"+modernMeta+"}")
	mcptest.Eventually(t, "the last notification", func() bool { return len(s.got("notifications/custom")) == 1 })
	if got := s.got("notifications/progress"); len(got) > 0 {
		t.Errorf("got %q at the server, want nothing", got)
	}
}

// asked asks on a request's stream and returns where the answer will be.
func asked(r *request, method, params string) <-chan jsonrpc.Message {
	answer := make(chan jsonrpc.Message, 1)
	r.server.wg.Go(func() { answer <- r.ask(method, params) })
	return answer
}

// member answers a question by hand.
func (c *client) member(q jsonrpc.Message, member string) {
	c.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + member + `}`)
}

// On a stream that calls share, a question is open as long as a call of its client is, whichever it reached
// the client with.
func TestQuestionsOutliveOtherCalls(t *testing.T) {
	for _, row := range []struct{ transport, session string }{{overPipe, ""}, {overSSE, ""}, {overSSE, downstream.SessionShared}, {overPipe, downstream.SessionPerClient}} {
		for _, version := range []string{"2025-11-25", "2025-06-18"} {
			for _, end := range []string{"answered", "cancelled", "cancelled before"} {
				t.Run(row.transport+row.session+" "+version+" "+end, func(t *testing.T) {
					s := newServer("hang")
					started, _ := hanging(s)
					w := newWorld(t, nil, place{"s", row.transport, s, row.session})
					c := w.newClient(proxyPath)
					c.version, c.answers = version, func(jsonrpc.Message) string { return "" } // by hand, below
					c.hello()
					old := c.beginCall("s__hang")
					of := receive(t, "the old call", started)
					young := c.beginCall("s__hang")
					other := receive(t, "the new call", started)
					cancel := func() {
						c.notify("notifications/cancelled", `{"requestId":`+young.id+`}`)
						c.wait(young)
					}
					if end == "cancelled before" {
						cancel()
					}
					answer := asked(of, "sampling/createMessage", `{"n":1}`)
					mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
					switch end {
					case "answered":
						other.result(`{"content":[]}`)
						c.wait(young)
					case "cancelled":
						cancel()
					}
					c.member(c.questions()[0], `"result":{"n":2}`)
					if got := receive(t, "the answer", answer); string(got.Result) != `{"n":2}` {
						t.Errorf("got %s, want the client's result", got.Raw)
					}
					of.result(`{"content":[]}`)
					if c.wait(old); old.result == "" || len(c.questions()) != 1 {
						t.Errorf("got %s and %d questions, want a result and one", old.err, len(c.questions()))
					}
				})
			}
		}
	}
}

// With the last of its client's calls a question ends, too.
func TestQuestionsEndWithTheLastCall(t *testing.T) {
	s := newServer("hang")
	started, _ := hanging(s)
	w := newWorld(t, nil, place{"s", overPipe, s, ""})
	c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return "" })
	var calls []*answer
	var at []*request
	for range 2 {
		calls = append(calls, c.beginCall("s__hang"))
		at = append(at, receive(t, "the call", started))
	}
	answer := asked(at[0], "roots/list", `{}`)
	mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
	for _, a := range calls {
		c.notify("notifications/cancelled", `{"requestId":`+a.id+`}`)
		c.wait(a)
	}
	id := string(c.questions()[0].ID)
	mcptest.Eventually(t, "the end of the question at the client", func() bool {
		return slices.ContainsFunc(c.heard(), func(raw string) bool {
			return raw == `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`
		})
	})
	receive(t, "the end of the question at the server", answer)
}

// A server that takes its question back is heard by the client, in its words, and gets no answer.
func TestServersTakeQuestionsBack(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			s := newServer("hang")
			started, _ := hanging(s)
			w := newWorld(t, nil, place{"s", transport, s, ""})
			c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return "" })
			call := c.beginCall("s__hang")
			r := receive(t, "the call", started)
			answer := asked(r, "elicitation/create", `{"message":"m"}`)
			mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
			r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"future":1,"requestId":1,"reason":"not now"}}`)
			id := string(c.questions()[0].ID)
			want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"future":1,"requestId":` + id + `,"reason":"not now"}}`
			mcptest.Eventually(t, "the cancellation", func() bool { return slices.Contains(c.noted(call), want) })
			c.member(c.questions()[0], `"result":{"late":true}`)
			again := asked(r, "roots/list", `{}`) // after it nothing else is on its way
			mcptest.Eventually(t, "the next question", func() bool { return len(c.questions()) == 2 })
			c.member(c.questions()[1], `"result":{"roots":[]}`)
			receive(t, "the next answer", again)
			select {
			case m := <-answer:
				t.Errorf("got the answer %s to what was taken back, want none", m.Raw)
			default:
			}
			r.result(`{"content":[]}`)
			if c.wait(call); call.result == "" {
				t.Errorf("the call: got %s, want its result", call.err)
			}
		})
	}
}

// What a client says before it answers reaches the server first.
func TestAnswersKeepTheirPlace(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			s := newServer("hang")
			started, _ := hanging(s)
			w := newWorld(t, nil, place{"s", transport, s, ""})
			c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return "" })
			call := c.beginCall("s__hang")
			r := receive(t, "the call", started)
			late := 0
			for n := 1; n <= 20; n++ {
				answer := asked(r, "sampling/createMessage", `{"_meta":{"progressToken":7}}`)
				mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == n })
				q := c.questions()[n-1]
				token := string(jsonrpc.Get(q.Params, "_meta", "progressToken"))
				c.notify("notifications/n", "")
				c.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, token, n))
				c.member(q, `"result":{}`)
				receive(t, "the answer", answer)
				if len(s.got("notifications/n")) < n || len(s.got("notifications/progress")) < n {
					late++
				}
			}
			if late > 0 {
				t.Errorf("%d of 20 answers overtook the notifications before them", late)
			}
			r.result(`{"content":[]}`)
			c.wait(call)
		})
	}
}

// A server that is replaced while it asks hears what the client says to that; its successor does not.
func TestReplacedServersHearTheirAnswers(t *testing.T) {
	for _, transport := range transports {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, removed %t", transport, removed), func(t *testing.T) {
				first, second := newServer("hang"), newServer("hang")
				started, _ := hanging(first)
				var configured []downstream.ServerConfig
				w := newWorld(t, func(o *setup) {
					configured = o.downstream.Servers
					if transport == overPipe {
						o.downstream.Embedded["s"] = first.pipe
					}
				}, place{"s", transport, second, ""}, place{"first", transport, first, ""})
				was, is := configured[0], configured[0]
				if is.Timeout = time.Minute; transport != overPipe {
					was.URL = configured[1].URL
				}
				w.manager.Apply([]downstream.ServerConfig{was})
				c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return "" })
				call := c.beginCall("s__hang")
				r := receive(t, "the call", started)
				answer := asked(r, "sampling/createMessage", `{"_meta":{"progressToken":7}}`)
				mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
				q := c.questions()[0]
				if removed {
					w.manager.Apply(nil)
				} else {
					w.manager.Apply([]downstream.ServerConfig{is})
				}
				c.notify("notifications/progress", `{"progress":1,"progressToken":`+string(jsonrpc.Get(q.Params, "_meta", "progressToken"))+`}`)
				c.member(q, `"result":{"n":2}`)
				if got := receive(t, "the answer", answer); string(got.Result) != `{"n":2}` {
					t.Errorf("got %s, want the client's result", got.Raw)
				}
				if got := first.got("notifications/progress"); !slices.Equal(got, []string{`{"progress":1,"progressToken":7}`}) || len(second.got("notifications/progress")) > 0 {
					t.Errorf("got progress %q and %q at the successor, want it at the server that asked", got, second.got("notifications/progress"))
				}
				r.result(`{"content":[]}`)
				if c.wait(call); call.result == "" {
					t.Errorf("the call: got %s, want its result", call.err)
				}
			})
		}
	}
}

// What was asked of a session for all time is asked of the one that takes its place, be it that the server
// lost the session or that a new configuration changed the server, whose sessions it has, or for a while whether
// it is there at all; without the client doing anything.
func TestNewSessionsKnowWhatWasAsked(t *testing.T) {
	for _, row := range []struct{ transport, session string }{
		{overHTTP, ""}, {overSSE, ""}, {overPipe, ""}, {overPipe, downstream.SessionPerClient}, {overHTTP, downstream.SessionShared},
	} {
		t.Run(row.transport+row.session, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.caps = `{"logging":{},"resources":{"subscribe":true}}`
			s.errors["file:///refused"] = `{"code":-32002,"message":"no"}`
			var configured []downstream.ServerConfig
			w := newWorld(t, func(o *setup) { configured = o.downstream.Servers }, place{"s", row.transport, s, row.session})
			c := w.dial(proxyPath)
			for _, r := range []struct{ method, params string }{
				{"logging/setLevel", `{"level":"info"}`}, {"logging/setLevel", `{"level":"debug","future":1}`},
				{"resources/subscribe", `{"uri":"s__file:///a","future":2}`}, {"resources/subscribe", `{"uri":"s__file:///b"}`},
				{"resources/subscribe", `{"uri":"s__file:///gone"}`}, {"resources/unsubscribe", `{"uri":"s__file:///gone"}`},
			} {
				if a := c.do(r.method, r.params); a.result != "{}" {
					t.Fatalf("%s: got %s, want {}", r.method, a.err)
				}
			}
			if a := c.do("resources/subscribe", `{"uri":"s__file:///refused"}`); a.err == "" {
				t.Fatalf("a refused subscription: got %s, want its error", a.result)
			}
			mcptest.Eventually(t, "the streams", func() bool { return s.streams() == len(s.all()) })
			is := configured[0]
			other := downstream.SessionShared
			if w.manager.Sessions().Shared("s") {
				other = downstream.SessionPerClient
			}
			apply := func() { w.manager.Apply([]downstream.ServerConfig{is}) }
			for n, replace := range []func(){
				s.restart,
				func() { is.Timeout = time.Minute; apply() },
				func() { w.manager.Apply(nil); apply() },
				func() { is.Session = other; apply() },
				s.restart,
				func() { is.Disabled = true; apply(); is.Disabled = false; apply() },
				func() { is.Session = row.session; apply() },
			} {
				s.change(func() { s.received, s.headers = nil, nil })
				replace()
				mcptest.Eventually(t, "what was asked", func() bool {
					return len(s.got("logging/setLevel")) == 1 && len(s.got("resources/subscribe")) == 2
				})
				subscribed := s.got("resources/subscribe")
				slices.Sort(subscribed)
				if got := append(s.got("logging/setLevel"), subscribed...); strings.Join(got, " ") != `{"level":"debug","future":1} {"uri":"file:///a","future":2} {"uri":"file:///b"}` {
					t.Errorf("replaced %d times: got %q, want the last level and what is still subscribed to", n+1, got)
				}
				mcptest.Eventually(t, "an update", func() bool {
					s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///b"}}`)
					return slices.Contains(c.heard(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"s__file:///b"}}`)
				})
				c.forget()
			}
		})
	}
}
