package edge_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// keeping is a handler that passes on its exchanges.
type keeping chan *edge.Exchange

func (keeping) Ended(string) {}

func (k keeping) Serve(_ context.Context, x *edge.Exchange) {
	x.RelayProgress()([]byte(`{"progressToken":1,"progress":1}`))
	if send := x.Progress(); send != nil {
		send(0.5, "half")
	}
	x.Reply([]byte(`{}`))
	k <- x
}

// An Exchange has the visibility, the version and the progress token of its message.
func TestExchange(t *testing.T) {
	keys, err := auth.New(auth.Config{APIKeys: []auth.KeyConfig{
		{Name: "all", Key: "key-all"}, {Name: "few", Key: "key-few", Servers: []string{"a"}},
	}}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := edge.New(edge.Options{Keys: keys})
	defer stop(t, e)
	served := make(keeping, 1)
	h := e.Streamable(served, nil)
	const progress = `event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}

event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":` +
		`{"progressToken":"t","progress":0.5,"total":1.0,"message":"half"}}

event: message
data: `
	const result = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, row := range []struct {
		name, key, version, meta string
		token, body              string
		visible                  map[string]bool // by server; nil = all
	}{
		{"restricted", "key-few", "2025-06-18", `"progressToken":"t"`, `"t"`, progress + result + "\n\n",
			map[string]bool{"a": true, "b": false}},
		{"unrestricted", "key-all", "2025-03-26", ``, "", result, nil},
		{"invalid token", "key-all", "2025-03-26", `"progressToken":{}`, "", result, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := direct(h, "POST", request("1", "tools/call", row.meta),
				header{"X-API-Key": row.key, "MCP-Protocol-Version": row.version})
			equal(t, "answer", w.Body.String(), row.body)
			var x *edge.Exchange
			select {
			case x = <-served:
			case <-time.After(20 * time.Second):
				t.Fatal("waited 20 s for the exchange")
			}
			if string(x.ProgressToken) != row.token || x.Version != protocol.Version(row.version) {
				t.Errorf("got token %s and version %s, want %s and %s", x.ProgressToken, x.Version, row.token, row.version)
			}
			if (x.Visible == nil) != (row.visible == nil) {
				t.Fatalf("visible: got nil %t, want %t", x.Visible == nil, row.visible == nil)
			}
			for server, want := range row.visible {
				equal(t, fmt.Sprintf("server %s", server), x.Visible(server, ""), want)
			}
			if x.Notify(jsonrpc.Notification("notifications/message", nil)) {
				t.Error("after the response: got a notification sent, want it dropped")
			}
		})
	}
}

// Every notification arrives on the stream of its own request, in order, before the response.
func TestNotificationsPrecedeTheirResponse(t *testing.T) {
	const callers, rounds, n = 4, 25, 100
	check := func(t *testing.T, id string, next func() string) {
		for i := range n {
			equal(t, "notification of "+id, next(), string(progress([]byte(id), i)))
		}
		equal(t, "response of "+id, next(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"done":true}}`)
	}
	each := func(do func(id string)) {
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for r := range rounds {
					do(fmt.Sprint(c*1000 + r))
				}
			})
		}
		wg.Wait()
	}
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		t.Run("streamable "+version, func(t *testing.T) {
			w := newWire(t, edge.Options{})
			h := w.open(version)
			each(func(id string) {
				resp := w.do(context.Background(), "POST", "/mcp", call(id, "burst", "{}"), h)
				ev := readEvents(t, resp.Body)
				check(t, id, ev.message)
				if f, more := ev.next(); more {
					t.Errorf("after the response: got %+v, want the end", f)
				}
			})
		})
	}
	onShared(t, func(t *testing.T, _ *wire, send func(string), next func() string) {
		queues := map[string]chan string{}
		for c := range callers {
			for r := range rounds {
				queues[fmt.Sprint(c*1000+r)] = make(chan string, n+1)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			each(func(id string) {
				send(call(id, "burst", "{}"))
				check(t, id, func() string { return <-queues[id] })
			})
		})
		for range callers * rounds * (n + 1) {
			m := next()
			_, id, found := strings.Cut(m, `"progressToken":`)
			if !found {
				_, id, _ = strings.Cut(m, `"id":`)
			}
			id, _, _ = strings.Cut(id, ",")
			queues[id] <- m
		}
		wg.Wait()
	})
}

// A notification that is passed on waits for the requests before it: until they are sent or answered, but at most 5
// seconds.
func TestAwaitEarlier(t *testing.T) {
	for _, row := range []struct {
		tool    string
		release bool // the call
		want    time.Duration
	}{{"hold", false, 5 * time.Second}, {"hold", true, 0}, {"sent-hold", false, 0}} {
		synctest.Test(t, func(t *testing.T) {
			e, srv, _ := newDirect(t, edge.Options{})
			in, feed := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- e.ServeStdio(t.Context(), in, io.Discard, srv) }()
			fmt.Fprintln(feed, call("1", row.tool, "{}"))
			fmt.Fprintln(feed, `{"jsonrpc":"2.0","method":"notifications/pass"}`)
			fmt.Fprintln(feed, call("2", "echo", "{}"))
			synctest.Wait()
			contains(t, row.tool+": the call behind the notification", fmt.Sprint(srv.log()), "tools/call:echo")
			if row.release {
				close(srv.release)
			}
			began := time.Now()
			for !slices.Contains(srv.log(), "passed") && time.Since(began) < time.Minute {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			if got := time.Since(began) - row.want; got < -100*time.Millisecond || got > 200*time.Millisecond {
				t.Errorf("%s: passed on after %v, want %v", row.tool, time.Since(began), row.want)
			}
			if !row.release {
				close(srv.release)
			}
			feed.Close()
			equal(t, "ServeStdio", <-done, nil)
		})
	}
}

func TestCancelEndsTheStreamWithoutResponse(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	for tool, underWay := range map[string]string{"sleep": "tools/call:sleep", "notify-hold": "notified"} {
		resp := w.start(call("5", tool, "{}"), h)
		mcptest.Eventually(t, "the call is served", func() bool { return slices.Contains(w.srv.log(), underWay) })
		started := time.Now()
		if status, _, body := w.post(cancelOf("5", `"enough"`), h); status != 202 || body != "" {
			t.Errorf("cancelled: got %d %q, want 202 and no body", status, body)
		}
		want := ""
		if tool == "notify-hold" {
			want = "event: message\nid: 1-1\nretry: 1000\ndata: " + string(progress([]byte("5"), 0)) + "\n\n"
		}
		equal(t, tool, <-resp, want)
		if d := time.Since(started); d > 15*time.Second {
			t.Errorf("%s: the cancellation took %v, want it at once", tool, d)
		}
		checkCause(t, w.srv, `"enough"`)
	}
}

func TestCancelOnSharedStreams(t *testing.T) {
	onShared(t, func(t *testing.T, w *wire, send func(string), next func() string) {
		send(call("1", "sleep", "{}"))
		send(call(`"1"`, "hold", "{}"))
		w.served(2)
		send(cancelOf("1", `"x"`))
		mcptest.Eventually(t, "the call has ended", func() bool { return w.edge.Tracked() == 1 })
		checkCause(t, w.srv, `"x"`)
		close(w.srv.release)
		equal(t, "the only response", next(), `{"jsonrpc":"2.0","id":"1","result":{"held":true}}`)
	})
}

// Cancelling an unknown request has no effect. It gets 202 and is logged as a warning.
func TestCancelOfTheUnknown(t *testing.T) {
	var log mcptest.Log
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	h, foreign := w.open("2025-06-18"), w.open("2025-06-18")
	answer := w.start(call("7", "hold", "{}"), h)
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	w.post(call("8", "echo", "{}"), h)
	rows := []struct {
		name, params, logged string
		h                    header
	}{
		{"the string for the number", `{"requestId":"7"}`, "unknown request 7", h},
		{"another session", `{"requestId":7}`, "unknown request 7", foreign},
		{"no session", `{"requestId":7}`, "unknown request 7", nil},
		{"after the response", `{"requestId":8}`, "unknown request 8", h},
		{"never seen", `{"requestId":"a\nb"}`, `unknown request a\\nb`, h},
		{"no id", `{}`, "unknown request null", h},
		{"no id at all", `{"requestId":{"a":1}}`, `unknown request {\"a\":1}`, h},
	}
	for _, row := range rows {
		status, _, body := w.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+row.params+`}`, row.h)
		if status != 202 || body != "" {
			t.Errorf("%s: got %d %q, want 202 and no body", row.name, status, body)
		}
		if want := "level=WARN msg=\"Cannot route cancellation for " + row.logged; !log.Has(want) {
			t.Errorf("%s: the log lacks %s", row.name, want)
		}
	}
	close(w.srv.release)
	equal(t, "the call that was meant", <-answer, `{"jsonrpc":"2.0","id":7,"result":{"held":true}}`)
	equal(t, "cancelled calls", w.srv.causeCount(), 0)
}

// Equal ids of two sessions are different requests, and so are 1 and "1".
func TestIDsBelongToTheirSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	a, b := w.open("2025-06-18"), w.open("2025-06-18")
	answers := []<-chan string{
		w.start(call("1", "hold", "{}"), a), w.start(call("1", "hold", "{}"), b), w.start(call(`"1"`, "hold", "{}"), a),
	}
	w.served(3)
	for _, id := range []string{"1", `"1"`, `"\u0031"`} {
		status, _, body := w.post(call(id, "echo", "{}"), a)
		equal(t, "id "+id+" again", status, http.StatusBadRequest)
		checkError(t, body, id, -32600)
	}
	close(w.srv.release)
	for _, answer := range answers {
		<-answer
	}
	w.want("id 1 after its response", call("1", "echo", "{}"), a, 200)
}

// A closed connection cancels the request since 2026-07-28 and without a session, but not in a session.
func TestClosedConnection(t *testing.T) {
	for _, kind := range []string{"session", "no session", "modern"} {
		for _, tool := range []string{"hold", "notify-hold"} {
			t.Run(kind+" "+tool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e, srv, endpoint := newDirect(t, edge.Options{})
					body, h := call("1", tool, "{}"), header{}
					switch kind {
					case "session":
						h = session(endpoint, "2025-11-25", nil)
					case "modern":
						body, h = modernCall(tool), modernHeader("tools/call", tool)
					}
					ctx, hangUp := context.WithCancel(t.Context())
					go directly(ctx, endpoint, "POST", body, h)
					synctest.Wait()
					equal(t, "in flight", e.Tracked(), 1)
					hangUp()
					synctest.Wait()
					if kind == "session" {
						equal(t, "in flight after the client has left", e.Tracked(), 1)
						close(srv.release)
						synctest.Wait()
					}
					equal(t, "cancelled", srv.causeCount() == 1, kind != "session")
					equal(t, "in flight in the end", e.Tracked(), 0)
				})
			})
		}
	}
}

// A request to the client goes to the client whose call caused it, on the stream of that call.
func TestServerRequests(t *testing.T) {
	answerTo := func(m string) string {
		id := string(jsonrpc.Get([]byte(m), "id"))
		if method := jsonrpc.Text(jsonrpc.Get([]byte(m), "method")); method != "sampling/createMessage" ||
			!strings.HasPrefix(id, `"nexus-`) {
			t.Errorf("got %s, want a request with an id of our own", m)
		}
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"n":9007199254740993}}`
	}
	const want = `{"jsonrpc":"2.0","id":5,"result":{"answer":{"n":9007199254740993}}}`
	t.Run("streamable", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h, foreign := w.open("2025-06-18"), w.open("2025-06-18")
		resp := w.do(context.Background(), "POST", "/mcp", call("5", "ask", "{}"), h)
		ev := readEvents(t, resp.Body)
		m := answerTo(ev.message())
		w.want("from another session", m, foreign, 202)
		w.want("without a session", m, nil, 202)
		w.want("with another id", strings.Replace(m, "nexus-1", "nexus-9", 1), h, 202)
		w.want("the answer", m, h, 202)
		equal(t, "result", ev.message(), want)
	})
	onShared(t, func(t *testing.T, w *wire, send func(string), next func() string) {
		send(call("5", "ask", "{}"))
		m := answerTo(next())
		send(`{"jsonrpc":"2.0","method":"notifications/a"}`)
		send(m)
		equal(t, "result", next(), want)
		equal(t, "served before the answer", fmt.Sprint(w.srv.log()), "[tools/call:ask notifications/a]")
	})
}

// If the client takes no requests or is gone, Request fails at once.
func TestRequestWithoutClient(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	w.want("no session", call("1", "ask", "{}"), nil, 200, edge.ErrNoClient.Error())
	w.want("no event stream", call("1", "ask", "{}"), with(h, "Accept", "application/json"), 200, edge.ErrNoClient.Error())
	for _, id := range []string{"nobody", h["Mcp-Session-Id"]} { // the session has no stream
		_, err := w.edge.Request(t.Context(), id, "ping", nil)
		equal(t, "Request", err, edge.ErrNoClient)
	}
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "ask", "{}"))
	p.line()
	p.in.Close() // the answer can never come
	contains(t, "stdio", p.line(), edge.ErrClientGone.Error())
	equal(t, "ServeStdio", <-p.done, nil)
	ctx, hangUp := context.WithCancel(context.Background())
	resp := w.do(ctx, "POST", "/mcp", call("2", "ask", "{}"), h)
	readEvents(t, resp.Body).message()
	hangUp()
	mcptest.Eventually(t, "the call has ended", func() bool { return w.edge.Tracked() == 0 })
}

// For a client that accepts no event stream, requests go to the session's own stream.
func TestRequestOnOwnStream(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	own := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	own.next() // it is open
	answer := w.start(call("1", "ask", "{}"), header{"Mcp-Session-Id": h["Mcp-Session-Id"],
		"Accept": "application/json"})
	id := string(jsonrpc.Get([]byte(own.message()), "id"))
	w.post(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":1,"message":"no"}}`, h)
	equal(t, "answer", <-answer, `{"jsonrpc":"2.0","id":1,"result":{"answer":null}}`)
}

// A request to the client may be answered after its stream has ended.
func TestRequestOutlivesItsStream(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		w := newWire(t, edge.Options{})
		h := w.open(version)
		ev := readEvents(t, w.do(context.Background(), "POST", "/mcp", call("1", "ask-beside", "{}"), h).Body)
		request := ev.message()
		close(w.srv.release)
		contains(t, version, ev.message(), `"result":{}`)
		for _, more := ev.next(); more; _, more = ev.next() {
		}
		w.post(`{"jsonrpc":"2.0","id":`+string(jsonrpc.Get([]byte(request), "id"))+`,"result":{"n":1}}`, h)
		equal(t, version, <-w.srv.beside, `{"n":1}`)
	}
}
