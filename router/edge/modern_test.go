package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestModernRequests(t *testing.T) {
	w := newWire(t, edge.Options{})
	session := w.open("2025-11-25")
	meta := func(s string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + s + `}}}`
	}
	const (
		version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
		caps    = `"io.modelcontextprotocol/clientCapabilities":{}`
	)
	list := modernHeader("tools/list", "")
	list["Mcp-Name"] = ""
	with := func(h header, k, v string) header {
		out := header{k: v}
		for key, value := range h {
			if key != k {
				out[key] = value
			}
		}
		return out
	}
	echo := modernHeader("tools/call", "echo")
	rows := []struct {
		name, body string
		h          header
		status     int
		code       int // 0 = a result
	}{
		{"good", modern("1", "tools/list", ""), list, 200, 0},
		{"good call", modernCall("echo"), echo, 200, 0},
		{"good call, encoded", modernCall("echo"), with(echo, "Mcp-Name", "=?base64?ZWNobw==?="), 200, 0},
		{"good read", modern("1", "resources/read", `"uri":"file:///ä",`), modernHeader("resources/read",
			"=?base64?ZmlsZTovLy/DpA==?="), 200, 0},
		{"session is ignored", modern("1", "tools/list", ""), with(list, "Mcp-Session-Id", "nobody"), 200, 0},
		{"known session is ignored", modern("1", "tools/list", ""), with(list, "Mcp-Session-Id",
			session["Mcp-Session-Id"]), 200, 0},
		{"no version header", modern("1", "tools/list", ""), with(list, "MCP-Protocol-Version", ""), 400, -32020},
		{"other version header", modern("1", "tools/list", ""), with(list, "MCP-Protocol-Version", "2025-11-25"),
			400, -32020},
		{"version header twice", modern("1", "tools/list", ""), with(list, "MCP-Protocol-Version", "2026-07-28\n2026-07-28"),
			400, -32020},
		{"unknown version", meta(`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps),
			with(list, "MCP-Protocol-Version", "2027-01-01"), 400, -32022},
		{"unknown version, no version header", meta(`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps),
			with(list, "MCP-Protocol-Version", ""), 400, -32022},
		{"unknown version, other version header", meta(`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps),
			list, 400, -32020},
		{"handshake version", meta(`"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + caps),
			with(list, "MCP-Protocol-Version", "2025-11-25"), 400, -32022},
		{"version is no string", meta(`"io.modelcontextprotocol/protocolVersion":7,` + caps), list, 400, -32602},
		{"version twice", meta(version + "," + version + "," + caps), list, 400, -32600},
		{"progress token twice", meta(version + "," + caps + `,"progressToken":1,"progressToken":2`), list, 400, -32600},
		{"progress token in another case", meta(version + "," + caps + `,"ProgressToken":1`), list, 400, -32600},
		{"meta in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_Meta":{"progressToken":1}}}`, header{}, 400, -32600},
		{"no capabilities", meta(version), list, 400, -32602},
		{"capabilities are no object", meta(version + `,"io.modelcontextprotocol/clientCapabilities":[]`), list, 400, -32602},
		{"header but no meta", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, list, 400, -32602},
		{"no method header", modern("1", "tools/list", ""), with(list, "Mcp-Method", ""), 400, -32020},
		{"other method header", modern("1", "tools/list", ""), with(list, "Mcp-Method", "prompts/list"), 400, -32020},
		{"method header in another case", modern("1", "tools/list", ""), with(list, "Mcp-Method", "Tools/List"), 400, -32020},
		{"method header twice", modern("1", "tools/list", ""), with(list, "Mcp-Method", "tools/list\nprompts/list"), 400, -32020},
		{"no name header", modernCall("echo"), with(echo, "Mcp-Name", ""), 400, -32020},
		{"other name header", modernCall("echo"), with(echo, "Mcp-Name", "other"), 400, -32020},
		{"name header twice", modernCall("echo"), with(echo, "Mcp-Name", "echo\necho"), 400, -32020},
		{"bad encoding", modernCall("echo"), with(echo, "Mcp-Name", "=?base64?!!?="), 400, -32020},
		{"name in bytes that are no text", modern("1", "tools/call", `"name":"\u00ff",`), modernHeader("tools/call", "\xff"), 400, -32020},
		{"the same, encoded", modern("1", "tools/call", `"name":"\ufffd",`), modernHeader("tools/call", "=?base64?/w==?="), 400, -32020},
		{"name header without a name", modern("1", "prompts/get", ""), modernHeader("prompts/get", "x"), 400, -32020},
		{"two names", modern("1", "tools/call", `"name":"echo","name":"other",`), echo, 400, -32020},
		{"no name anywhere", modern("1", "tools/call", ""), with(echo, "Mcp-Name", ""), 400, -32602},
		{"unknown method", modern("1", "unknown", ""), with(list, "Mcp-Method", "unknown"), 404, -32601},
		{"unknown tool", modernCall("nope"), modernHeader("tools/call", "nope"), 400, -32602},
		{"no session to ask", modernCall("ask"), modernHeader("tools/call", "ask"), 200, -32603},
		{"removed", modern("1", "ping", ""), modernHeader("ping", ""), 404, -32601},
		{"removed, too", modern("1", "resources/subscribe", `"uri":"x",`), modernHeader("resources/subscribe", ""),
			404, -32601},
		{"batch", "[" + modern("1", "tools/list", "") + "]", list, 400, -32600},
	}
	for _, row := range rows {
		h := header{}
		for k, v := range row.h {
			if v != "" {
				h[k] = v
			}
		}
		status, answer, body := w.post(row.body, h)
		if status != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, status, body, row.status)
		}
		switch {
		case row.code == 0 && !strings.Contains(body, `"id":1,"result":`):
			t.Errorf("%s: got %s, want a result", row.name, body)
		case row.code != 0:
			id := "1"
			if row.name == "batch" {
				id = "null"
			}
			checkError(t, body, id, row.code)
		}
		equal(t, row.name, answer.Get("Mcp-Session-Id"), "")
	}
	equal(t, "sessions", w.edge.Sessions(), 1)
}

func TestUnsupportedVersionSaysWhatIsSupported(t *testing.T) {
	w := newWire(t, edge.Options{})
	const handshake = `"2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":`
	w.want("header", request("1", "ping", ""), header{"MCP-Protocol-Version": "1900-01-01"}, 400,
		`"data":{"supported":["2026-07-28",`+handshake+`"1900-01-01"}`)
	c := w.sse(nil) // without 2026-07-28
	c.want("sse", modernCall("echo"), nil, 202)
	contains(t, "sse", c.events.message(), `"data":{"supported":[`+handshake+`"2026-07-28"}`)
}

func TestModernExchange(t *testing.T) {
	w := newWire(t, edge.Options{})
	want := []string{`"Session":""`, `"Version":"2026-07-28"`, `"Capabilities":{"x":1}`,
		`"Info":{"name":"m","version":"1"}`}
	h := header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "seen"}
	w.want("http", modern("1", "seen", ""), h, 200, append(want, `"Mcp-Method":["seen"]`)...)
	w.want("notification", `{"jsonrpc":"2.0","method":"notifications/x","params":{`+modernMeta+`}}`,
		header{"MCP-Protocol-Version": "2026-07-28"}, 202)
	equal(t, "served", fmt.Sprint(w.srv.log()), "[notifications/x]")
	p := newStdio(t, w.edge, w.srv)
	p.send(modern("1", "seen", ""))
	contains(t, "stdio", p.line(), want...)
	p.send(modern("2", "tools/call", `"name":"sleep",`))
	w.served(2)
	p.send(cancelOf("2", `"x"`))
	mcptest.Eventually(t, "the call is cancelled", func() bool { return w.edge.Tracked() == 0 })
	checkCause(t, w.srv, `"x"`)
	p.send(strings.Replace(modern("3", "ping", ""), "2026-07-28", "2031-01-01", 1))
	checkError(t, p.line(), "3", -32022)
	p.finish()
}

// Since 2026-07-28 a request to the client is an input_required result, and the retry has the response.
func TestInputRequired(t *testing.T) {
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	for name, send := range map[string]func(string) string{
		"http": func(body string) string {
			_, _, got := w.post(body, modernHeader("tools/call", "ask-twice"))
			return got
		},
		"stdio": func(body string) string {
			p.send(body)
			got := ""
			for !strings.Contains(got, `"result"`) && !strings.Contains(got, `"error"`) {
				got += "data: " + p.line() + "\n"
			}
			return got
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := send(roundTripOf("1", "ask-twice", asks, `"a"`, ""))
			asked, again := required(t, first, "")
			if want := `{"q1":{"method":"sampling/createMessage","params":{"q":0}}}`; asked != want ||
				!strings.Contains(string(last(first)), `"id":1,`) {
				t.Errorf("first: got %s, want id 1 and %s", first, want)
			}
			_, stale := required(t, first, `{"n":1}`)
			asked, answered := required(t, send(roundTripOf("2", "ask-twice", asks, `"b"`, again)), `{"n":1}`)
			if !strings.Contains(asked, `"q1"`) {
				t.Errorf("a retry without answers: got %s, want the same request", asked)
			}
			if got := send(roundTripOf("3", "ask-twice", asks, `"c"`, stale)); !strings.Contains(got, `"code":-32602`) ||
				!strings.Contains(got, "requestState") {
				t.Errorf("what was brought back before: got %s, want -32602", got)
			}
			second := send(roundTripOf(`"four"`, "ask-twice", asks, `"d"`, answered))
			asked, answered = required(t, second, `{"n":2}`)
			if !strings.Contains(asked, `"q2":{"method":"sampling/createMessage","params":{"q":1}}`) ||
				!strings.Contains(second, `"progressToken":"d","progress":0`) {
				t.Errorf("second: got %s, want progress with the token of that request and the next input request", second)
			}
			third := send(roundTripOf("5", "ask-twice", asks, `5`, answered))
			if got := string(last(third)); got != `{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","content":[]}}` ||
				!strings.Contains(third, `"progressToken":5,"progress":1`) {
				t.Errorf("third: got %s, want progress and the result", third)
			}
			if got := strings.Join(w.srv.log(), " "); !strings.HasSuffix(got, `tools/call:ask-twice {"n":1} {"n":2}`) {
				t.Errorf("the handler: got %s, want one call and both answers", got)
			}
			contains(t, "a client that lends no model", send(roundTripOf("6", "ask-twice", `{"roots":{}}`, "6", "")), "it does not accept requests")
		})
	}
	mcptest.Eventually(t, "nothing is in flight", func() bool { return w.edge.Tracked() == 0 })
}

// A requestState is valid only for the caller and the request that it was issued for.
func TestRequestStateBelongsToItsCaller(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	h := func(key, tool string) header { return with(modernHeader("tools/call", tool), "X-API-Key", key) }
	_, _, first := w.post(roundTripOf("1", "ask-twice", asks, "1", ""), h("key-ann", "ask-twice"))
	_, more := required(t, first, `{"n":1}`)
	const stale = "unknown or expired requestState"
	w.want("another key", roundTripOf("2", "ask-twice", asks, "1", more), h("key-bob", "ask-twice"), 400, stale)
	w.want("another tool", roundTripOf("2", "echo", asks, "1", more), h("key-ann", "echo"), 400, stale)
	w.want("the state of a server", roundTripOf("2", "echo", asks, "1", `"requestState":"of a server",`),
		h("key-ann", "echo"), 200, `"echo"`)
	w.want("the caller's retry", roundTripOf("2", "ask-twice", asks, "1", more), h("key-ann", "ask-twice"), 200,
		"input_required")
}

// A client that hangs up during a round trip cancels the request. Between round trips there is no connection to close.
func TestMRTREnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv, endpoint := newDirect(t, edge.Options{})
		ctx, hangUp := context.WithCancel(t.Context())
		go directly(ctx, endpoint, "POST", roundTripOf("1", "hold", asks, "1", ""), modernHeader("tools/call", "hold"))
		synctest.Wait()
		equal(t, "in flight", e.Tracked(), 1)
		hangUp()
		synctest.Wait()
		equal(t, "cause", srv.lastCause(), context.Canceled)
		equal(t, "in flight after the client has left", e.Tracked(), 0)
	})
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(roundTripOf("1", "ask-twice", asks, "1", ""))
	_, more := required(t, p.line(), `{"n":1}`)
	p.send(roundTripOf("2", "ask-twice", asks, "2", more))
	p.line() // progress
	required(t, p.line(), `{"n":1}`)
	p.send(roundTripOf("1", "hold", asks, "1", "")) // the id is free
	mcptest.Eventually(t, "the call is served", func() bool { return slices.Contains(w.srv.log(), "tools/call:hold") })
	p.send(cancelOf("1", `"enough"`))
	mcptest.Eventually(t, "it is cancelled", func() bool { var c *edge.Cancelled; return errors.As(w.srv.lastCause(), &c) })
	equal(t, "in flight, the one whose client is away", w.edge.Tracked(), 1)
	p.finish()
	equal(t, "in flight after the client's end", w.edge.Tracked(), 0)
}

// A result between round trips waits for the next round trip, for a bounded time.
func TestResultWaitsForRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv, endpoint := newDirect(t, edge.Options{})
		post := func(id, more string) *httptest.ResponseRecorder {
			return direct(endpoint, "POST", roundTripOf(id, "ask-briefly", asks, "1", more), modernHeader("tools/call", "ask-briefly"))
		}
		_, more := required(t, post("1", "").Body.String(), `{"action":"accept"}`)
		time.Sleep(5 * time.Minute)
		equal(t, "the request", srv.lastCause(), context.DeadlineExceeded)
		contains(t, "a client that comes late", post("2", more).Body.String(), `"id":2,"result":{"resultType":"complete"`)
		_, more = required(t, post("3", "").Body.String(), `{"action":"accept"}`)
		time.Sleep(11 * time.Minute)
		equal(t, "in flight while a client stays away", e.Tracked(), 0)
		equal(t, "a client that comes too late", post("4", more).Code, 400)
	})
}

// Requests that come at nearly the same time go into one result, without a long wait for more.
func TestRequestsInOneRoundTrip(t *testing.T) {
	for tool, row := range map[string]struct {
		within      time.Duration
		least, most int // requests in the result
	}{
		"ask-twice":    {10 * time.Millisecond, 1, 1},
		"ask-together": {10 * time.Millisecond, 3, 3},
		"ask-on":       {100 * time.Millisecond, 11, 12},
	} {
		t.Run(tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, srv, endpoint := newDirect(t, edge.Options{})
				post := func(id, more string) string {
					return direct(endpoint, "POST", roundTripOf(id, tool, asks, "1", more), modernHeader("tools/call", tool)).Body.String()
				}
				began := time.Now()
				first := post("1", "")
				asked, more := required(t, first, `{"n":1}`)
				if got := strings.Count(asked, `"method"`); got < row.least || got > row.most || time.Since(began) > row.within {
					t.Errorf("got %d requests after %v, want %d to %d within %v", got, time.Since(began), row.least, row.most, row.within)
				}
				if tool != "ask-together" {
					return
				}
				one := strings.Replace(strings.Replace(more, `"q1"`, `"other"`, 1), `"q3"`, `"another"`, 1)
				asked, more = required(t, post("2", one), `{"n":2}`)
				if strings.Count(asked, `"method"`) != 2 || strings.Contains(asked, `"q2"`) {
					t.Errorf("after one answer: got %s, want the other two requests", asked)
				}
				contains(t, "with all answers", post("3", more), `"result":{"resultType":"complete"`)
				got := srv.log()
				slices.Sort(got)
				equal(t, "the handler", strings.Join(got, " "), `tools/call:ask-together {"n":1} {"n":2} {"n":2}`)
			})
		})
	}
}

// exchanges passes on what a server serves.
type exchanges struct {
	*server
	served chan *edge.Exchange
}

func (s exchanges) Serve(ctx context.Context, x *edge.Exchange) {
	s.served <- x
	s.server.Serve(ctx, x)
}

// While another client waits to be asked, a client has a minute for the next round trip, and is not taken for one that
// is there. A client that comes in time goes on.
func TestRoundTripsYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := exchanges{newServer(), make(chan *edge.Exchange, 1)}
		e := edge.New(edge.Options{})
		h := e.Streamable(srv, nil)
		post := func(tool, id, more string) (code int, body string) {
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp() // as the connection ends with the response
			a := directly(ctx, h, "POST", roundTripOf(id, tool, asks, "1", more), modernHeader("tools/call", tool))
			return a.Code, a.Body.String()
		}
		_, first := post("ask-twice", "1", "")
		_, more := required(t, first, "")
		edge.Yield(<-srv.served)("files")
		time.Sleep(50 * time.Second)
		_, first = post("ask-twice", "2", "")
		required(t, first, "")
		edge.Yield(<-srv.served)("files")
		_, next := post("ask-twice", "3", more) // without an answer it waits no longer
		_, more = required(t, next, "")
		time.Sleep(11 * time.Second)
		contains(t, "cause", srv.lastCause().Error(), "another client waits to be asked")
		equal(t, "in flight after a minute", e.Tracked(), 0)
		code, body := post("ask-twice", "4", more)
		equal(t, "a client that comes too late", code, 400)
		contains(t, "a client that comes too late", body, "while another client waits")
		_, first = post("ask", "5", "")
		_, more = required(t, first, `{"n":1}`)
		x := <-srv.served
		turn := func(server string) bool {
			refusal, refused := edge.Refused(x, server, "sampling/createMessage", []byte("{}"), false)
			equal(t, "refusal", string(refusal), "")
			return refused
		}
		equal(t, "the turn of others at the server", turn("files"), true)
		equal(t, "at another server", turn("mail"), false)
		time.Sleep(31 * time.Second)
		equal(t, "the turn of others is over", turn("files"), false)
		post("ask", "5", more)
		_, first = post("ask-twice", "6", "")
		_, more = required(t, first, `{"n":1}`)
		edge.Yield(<-srv.served)("files")
		_, next = post("ask-twice", "7", more)
		_, more = required(t, next, `{"n":1}`)
		time.Sleep(2 * time.Minute)
		_, body = post("ask-twice", "8", more)
		contains(t, "a call that was answered in time", body, `"content"`)
		_, first = post("ask-and-hold", "9", "")
		_, more = required(t, first, `{"n":1}`)
		x = <-srv.served
		go post("ask-and-hold", "10", more)
		synctest.Wait()
		edge.Yield(x)("files")
		time.Sleep(2 * time.Minute)
		equal(t, "gone while the client waits for the result", x.Gone(), false)
		equal(t, "in flight while the client waits for the result", e.Tracked(), 1)
		close(srv.release)
		synctest.Wait()
		equal(t, "in flight in the end", e.Tracked(), 0)
		stop(t, e)
	})
}

// A client that retries just as its time is over, or as its request is cancelled, gets a response. Neither delays
// Stop.
func TestLateRetry(t *testing.T) {
	for name, stdio := range map[string]bool{"http": false, "stdio": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer()
				e := edge.New(edge.Options{})
				h := e.Streamable(srv, nil)
				var p *stdioClient
				if stdio {
					p = newStdio(t, e, srv)
				}
				post := func(body string) string {
					if stdio {
						p.send(body)
						return p.line()
					}
					return direct(h, "POST", body, modernHeader("tools/call", "ask-briefly")).Body.String()
				}
				for i := range 20 {
					id := strconv.Itoa(2 * i)
					_, more := required(t, post(roundTripOf(id, "ask-briefly", asks, "1", "")), `{"action":"accept"}`)
					time.Sleep(time.Second + 10*time.Minute) // the request, and the wait for a retry
					id = strconv.Itoa(2*i + 1)
					if got := post(roundTripOf(id, "ask-briefly", asks, "1", more)); !strings.Contains(got, `"id":`+id+`,`) ||
						!strings.Contains(got, `"resultType":"complete"`) && !strings.Contains(got, "expired requestState") {
						t.Fatalf("got %q, want the result or that it is too late", got)
					}
				}
				synctest.Wait()
				equal(t, "in flight", e.Tracked(), 0)
				if stdio {
					p.finish()
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := e.Stop(ctx); err != nil || time.Since(began) > time.Second {
					t.Errorf("Stop: got %v after %v, want nil at once", err, time.Since(began))
				}
			})
		})
	}
}

// A request between round trips does not delay Stop. One in a round trip is finished, without further round trips.
func TestStopEndsWaitingMRTRs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv, endpoint := newDirect(t, edge.Options{})
		post := func(id, tool string) string {
			return direct(endpoint, "POST", roundTripOf(id, tool, asks, "1", ""), modernHeader("tools/call", tool)).Body.String()
		}
		required(t, post("1", "ask-twice"), `{"n":1}`)
		waiting := make(chan string)
		go func() { waiting <- post("2", "hold-and-ask") }()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stopped := make(chan error)
		go func() { stopped <- e.Stop(ctx) }()
		synctest.Wait()
		equal(t, "in flight, the one whose client waits", e.Tracked(), 1)
		equal(t, "cause of the other", srv.lastCause(), edge.ErrStopped)
		close(srv.release)
		contains(t, "the client that waits", <-waiting, edge.ErrClientGone.Error())
		if err := <-stopped; err != nil || time.Since(began) > time.Second {
			t.Errorf("Stop: got %v after %v, want nil at once", err, time.Since(began))
		}
	})
}

// A stranger learns from server/discover who answers, as any client of 2026-07-28 does: in _meta.
func TestDiscoverTellsStrangersWhoAnswers(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t), Name: "router", Version: "1.2.3"})
	_, _, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`, modernHeader("server/discover", ""))
	const want = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"router","version":"1.2.3"}}}}`
	if !strings.HasSuffix(strings.TrimSpace(body), want) {
		t.Errorf("got %s, want %s at the end", body, want)
	}
}
