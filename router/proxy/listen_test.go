package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// listens sends subscriptions/listen with a raw filter and waits for its acknowledgement.
func (c *client) listens(id, filter string) *answer {
	c.t.Helper()
	c.header.Set("MCP-Protocol-Version", "2026-07-28")
	c.header.Set("Mcp-Method", "subscriptions/listen")
	a := c.start(id, "subscriptions/listen", "{"+modernMeta+`,"notifications":`+filter+"}")
	mcptest.Eventually(c.t, "the acknowledgement", func() bool { return len(c.noted(a)) > 0 })
	return a
}

// acknowledged returns the acknowledged member of a filter.
func acknowledged(c *client, a *answer, member string) string {
	c.t.Helper()
	first := c.noted(a)[0]
	m, _ := jsonrpc.Parse([]byte(first))
	if m.Method != "notifications/subscriptions/acknowledged" || string(jsonrpc.Get(m.Params, "_meta", subscriptionID)) != a.id {
		c.t.Fatalf("got %s first, want the acknowledgement of %s", first, a.id)
	}
	return string(jsonrpc.Get(m.Params, "notifications", member))
}

// told returns the notifications after the acknowledgement, as method and URI.
func told(c *client, a *answer) (got []string) {
	for _, raw := range c.noted(a)[1:] {
		m, _ := jsonrpc.Parse([]byte(raw))
		if string(jsonrpc.Get(m.Params, "_meta", subscriptionID)) != a.id {
			c.t.Errorf("got %s, want the id %s in it", raw, a.id)
		}
		got = append(got, strings.TrimSpace(strings.TrimPrefix(m.Method, "notifications/")+" "+jsonrpc.Text(jsonrpc.Get(m.Params, "uri"))))
	}
	return got
}

// Clients of 2026-07-28 receive the changes that they ask for, and no others, from shared servers and from servers with
// a session per client.
func TestListen(t *testing.T) {
	for _, transport := range []string{overHTTP, overSSE, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := withResources("file:///x", "file:///z")
			s.caps = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}}`
			s.errors["file:///no"] = `{"code":-32602,"message":"no"}`
			w := newWorld(t, nil, place{"hr", transport, s, ""})
			w.wait("hr")
			if transport != overPipe {
				mcptest.Eventually(t, "the stream of the server", func() bool { return s.streams() > 0 })
			}
			all, one, tools := w.newClient(proxyPath), w.newClient("/servers/hr/mcp"), w.newClient(proxyPath)
			onAll := all.listens(`"a"`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,`+
				`"resourceSubscriptions":["hr__file:///x","hr+file:///z","hr__file:///no","nope__file:///x"],"other":true}`)
			onOne := one.listens("7", `{"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}`)
			onTools := tools.listens("7", `{"toolsListChanged":true}`)
			for member, want := range map[string]string{
				"toolsListChanged": "true", "promptsListChanged": "", "resourcesListChanged": "", "other": "",
				"resourceSubscriptions": `["hr__file:///x","hr+file:///z"]`,
			} {
				if got := acknowledged(all, onAll, member); got != want {
					t.Errorf("acknowledged %s: got %s, want %s", member, got, want)
				}
			}
			if got := acknowledged(one, onOne, "resourceSubscriptions"); got != `["file:///x"]` {
				t.Errorf("acknowledged on the server's path: got %s, want file:///x", got)
			}
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///z/part"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///else"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"x":1}}}`)
			s.say(changed)
			for _, row := range []struct {
				c    *client
				a    *answer
				want []string
			}{
				{all, onAll, []string{"resources/updated hr__file:///x", "resources/updated hr__file:///z/part", "tools/list_changed"}},
				{one, onOne, []string{"resources/updated file:///x", "resources/list_changed"}},
				{tools, onTools, []string{"tools/list_changed"}},
			} {
				mcptest.Eventually(t, "the notifications", func() bool { return len(row.c.noted(row.a)) > len(row.want) })
				if got := told(row.c, row.a); !slices.Equal(got, row.want) {
					t.Errorf("%s: got %q, want %q", row.c.path, got, row.want)
				}
			}
			if got := s.got("resources/subscribe"); len(got) < 3 {
				t.Errorf("at the server: got %q, want each resource", got)
			}
			all.close()
			mcptest.Eventually(t, "the end of the subscription to z", func() bool {
				got := s.got("resources/unsubscribe")
				return len(got) == 1 && strings.Contains(got[0], `"file:///z"`)
			})
			one.close()
			mcptest.Eventually(t, "the end of the subscription to x", func() bool { return len(s.got("resources/unsubscribe")) == 2 })
		})
	}
}

// A subscription of subscriptions/listen is renewed in a new session with the server.
func TestListenOutlivesSessions(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overHTTP, s, ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens("1", `{"resourceSubscriptions":["hr__file:///x"]}`)
	s.restart()
	if got := w.modern(proxyPath, "tools/call", `"name":"hr__echo"`, "hr__echo"); got.result == "" {
		t.Fatalf("a call after the restart: got %s %s, want a result", got.err, got.refused)
	}
	mcptest.Eventually(t, "the new subscription", func() bool { return len(s.got("resources/subscribe")) == 2 })
	mcptest.Eventually(t, "an update", func() bool {
		s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`)
		return len(told(c, a)) > 0
	})
}

// subscriptions/listen is answered when the router stops, and does not delay it.
func TestListenEndsWithTheRouter(t *testing.T) {
	w := newWorld(t, nil, place{"hr", overHTTP, withResources("file:///x"), ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens(`"x"`, `{"resourcesListChanged":true}`)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	w.stopping.Store(true)
	if err := w.edge.Stop(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("Stop: got %v, %v, want nil in time", err, ctx.Err())
	}
	if got := c.wait(a).result; got != `{"resultType":"complete","_meta":{"`+subscriptionID+`":"x"}}` {
		t.Errorf("got %s, want the end of the subscription", got)
	}
}

// On stdio subscriptions/listen ends when it is cancelled, and with the input.
func TestListenOnStdio(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overPipe, s, ""})
	w.wait("hr")
	listen := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{` + modernMeta +
			`,"notifications":{"resourceSubscriptions":["hr__file:///x"]}}}` + "\n"
	}
	in := strings.NewReader(listen("1") + listen("2") +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n")
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var out bytes.Buffer
	if err := w.edge.ServeStdio(ctx, in, &out, w.all); err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
	for id, want := range map[string]bool{"1": false, "2": true} {
		if got := strings.Contains(out.String(), `"id":`+id+`,"result":{`); got != want {
			t.Errorf("response to %s: got %v in %s, want %v", id, got, out.String(), want)
		}
	}
}

// Invalid filters are refused, and so is the method before 2026-07-28.
func TestListenRefusals(t *testing.T) {
	w := newWorld(t, nil, place{"hr", overHTTP, withResources("file:///x"), ""})
	for params, want := range map[string]string{
		``:                    "notifications must be an object",
		`,"notifications":[]`: "notifications must be an object",
		`,"notifications":{"toolsListChanged":1}`:                                              "toolsListChanged must be true or false",
		`,"notifications":{"resourceSubscriptions":"x"}`:                                       "resourceSubscriptions must be a list of URIs",
		`,"notifications":{"resourceSubscriptions":[1]}`:                                       "resourceSubscriptions must be a list of URIs",
		`,"notifications":{"resourceSubscriptions":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`: "at most 1000 URIs",
	} {
		a := w.modernDo(proxyPath, "subscriptions/listen", "", "{"+modernMeta+params+"}")
		if got := a.refused + a.err; !strings.Contains(got, "-32602") || !strings.Contains(got, want) {
			t.Errorf("%.60s: got %s %s, want %s", params, got, a.result, want)
		}
	}
	header := http.Header{"Accept": {"application/json"}}
	a := w.modernWith(header, proxyPath, "subscriptions/listen", `{`+modernMeta+`,"notifications":{}}`, "")
	if a.status != http.StatusBadRequest || !strings.Contains(a.refused, "-32600") {
		t.Errorf("without an event stream: got %d %s, want 400 and -32600", a.status, a.refused)
	}
	c := w.newClient(proxyPath)
	c.hello()
	if a := c.do("subscriptions/listen", `{"notifications":{}}`); !strings.Contains(a.err, "-32601") {
		t.Errorf("2025-11-25: got %s %s, want -32601", a.result, a.err)
	}
}

// Calls of 2026-07-28 do not carry changes, which only subscriptions/listen does.
func TestChangesStayOutOfModernCalls(t *testing.T) {
	s := newServer("change")
	s.on = func(r *request) bool {
		if r.Method != "tools/call" {
			return false
		}
		r.send(changed)
		r.send(`{"jsonrpc":"2.0","method":"notifications/other"}`)
		return false
	}
	w := newWorld(t, nil, place{"hr", overHTTP, s, ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	c.header.Set("MCP-Protocol-Version", "2026-07-28")
	c.header.Set("Mcp-Method", "tools/call")
	c.header.Set("Mcp-Name", "hr__change")
	a := c.do("tools/call", "{"+modernMeta+`,"name":"hr__change"}`)
	if got := c.noted(a); !slices.Equal(got, []string{`{"jsonrpc":"2.0","method":"notifications/other"}`}) {
		t.Errorf("got %q, want the other notification alone", got)
	}
}

// An update of a part reaches those who subscribed to the whole, also while others subscribe to the part.
func TestListenToContainers(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := withResources("file:///d", "file:///d/x")
			w := newWorld(t, nil, place{"hr", transport, s, ""})
			w.wait("hr")
			session := w.dial(proxyPath)
			if a := session.do("resources/subscribe", `{"uri":"hr__file:///d/x"}`); a.result == "" {
				t.Fatalf("resources/subscribe: got %s, want a result", a.err)
			}
			c := w.newClient(proxyPath)
			a := c.listens("1", `{"resourceSubscriptions":["hr__file:///d","hr__file:///d/"]}`)
			if transport != overPipe {
				mcptest.Eventually(t, "both streams of the server", func() bool { return s.streams() == 2 })
			}
			for _, uri := range []string{"file:///d/x", "file:///d"} {
				s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
			}
			want := []string{"resources/updated hr__file:///d/x", "resources/updated hr__file:///d"}
			mcptest.Eventually(t, "the updates", func() bool { return slices.Contains(told(c, a), want[1]) })
			if got := told(c, a); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			mcptest.Eventually(t, "the update of the session", func() bool { return len(session.heard()) > 0 })
		})
	}
}

// A client on stdio that has not sent initialize shares the router's session with a server, and receives its updates.
func TestUpdatesWithoutInitialize(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overHTTP, s, ""})
	w.wait("hr")
	mcptest.Eventually(t, "the stream of the server", func() bool { return s.streams() > 0 })
	in, fromClient := io.Pipe()
	fromRouter, out := io.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		if err := w.edge.ServeStdio(t.Context(), in, out, w.all); err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		out.Close()
	})
	lines := bufio.NewReader(fromRouter)
	_, _ = io.WriteString(fromClient, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"hr__file:///x"}}`+"\n")
	if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, `"result"`) {
		t.Fatalf("got %s, %v, want a result", got, err)
	}
	s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`)
	defer time.AfterFunc(deadline, func() { out.CloseWithError(context.DeadlineExceeded) }).Stop()
	if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, "hr__file:///x") {
		t.Errorf("got %s, %v, want the update", got, err)
	}
	fromClient.Close()
	served.Wait()
}

// An update with a very long URI is matched in bounded time.
func TestUpdatesOfLongURIs(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overPipe, s, ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens("1", `{"resourceSubscriptions":["hr__file:///x","hr__x:1","hr__x:2","hr__x:3","hr__x:4","hr__x:5","hr__x:6","hr__x:7","hr__x:8"]}`)
	for _, uri := range []string{strings.Repeat("/", 2<<20), "file:///x"} {
		s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
	}
	mcptest.Eventually(t, "the second update", func() bool { return len(told(c, a)) == 1 })
}

// A notification whose _meta is no object is passed on with a valid one.
func TestListenToInvalidMeta(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overPipe, s, ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens("1", `{"resourcesListChanged":true}`)
	for _, meta := range []string{`"{"`, `["{\"a\":1"]`, `null`, `1`} {
		s.say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":` + meta + `}}`)
	}
	mcptest.Eventually(t, "the notifications", func() bool { return len(told(c, a)) == 4 })
}

// A caller whose requests take much of its memory limit is acknowledged.
func TestListenWithLittleMemory(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, func(o *setup) {
		o.edge.Limits = limit.Default()
		o.edge.Limits.BodyBytes, o.edge.Limits.ResultBytes = 72<<20, 1<<20 // the caller may hold 136 MiB
	}, place{"hr", overPipe, s, ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens("1", `{"resourceSubscriptions":["hr__file:///x"],"other":"`+strings.Repeat("x", 70<<20)+`"}`)
	if got := acknowledged(c, a, "resourceSubscriptions"); got != `["hr__file:///x"]` {
		t.Errorf("got %s, want file:///x", got)
	}
	c.close()
	mcptest.Eventually(t, "the end of the request", func() bool { return w.edge.Held() == 0 })
}
