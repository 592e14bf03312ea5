package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

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
			for n := 1; n <= 50; n++ {
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
				t.Errorf("%d of 50 answers overtook the notifications before them", late)
			}
			r.result(`{"content":[]}`)
			c.wait(call)
		})
	}
}

// Progress on a question that was asked outside of calls finds the server, too.
func TestProgressOutsideOfCalls(t *testing.T) {
	for _, transport := range []string{overHTTP, overSSE} {
		a, b := newServer(), newServer()
		w := newWorld(t, nil, place{"a", transport, a, ""}, place{"b", transport, b, ""})
		c := w.dialAs(proxyPath, "mine", func(jsonrpc.Message) string { return "" })
		var p *peer
		mcptest.Eventually(t, "the session's stream", func() bool {
			i := slices.IndexFunc(a.all(), func(p *peer) bool { return p.clientName() == "mine" })
			if i >= 0 {
				p = a.all()[i]
			}
			return p != nil && p.clientName() == "mine" && a.streams() == 2
		})
		answer := make(chan jsonrpc.Message, 1)
		a.wg.Go(func() {
			answer <- p.ask(p.ctx, func(raw string) { p.say(raw) }, "sampling/createMessage", `{"_meta":{"progressToken":"t"}}`)
		})
		mcptest.Eventually(t, "the question", func() bool { return len(c.questions()) == 1 })
		q := c.questions()[0]
		c.notify("notifications/progress", `{"progress":1,"progressToken":`+string(jsonrpc.Get(q.Params, "_meta", "progressToken"))+`}`)
		c.member(q, `"result":{}`)
		receive(t, "the answer", answer)
		if got := a.got("notifications/progress"); !slices.Equal(got, []string{`{"progress":1,"progressToken":"t"}`}) || len(b.got("notifications/progress")) > 0 {
			t.Errorf("%s: got %q and %q, want it at the server that asked, with its token", transport, got, b.got("notifications/progress"))
		}
		w.stop()
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
				c.mu.Lock()
				c.loose = nil
				c.mu.Unlock()
			}
		})
	}
}
