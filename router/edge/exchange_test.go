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
			if got := w.Body.String(); got != row.body {
				t.Errorf("got %q, want %q", got, row.body)
			}
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
				if got := x.Visible(server, ""); got != want {
					t.Errorf("server %s: got visible %t, want %t", server, got, want)
				}
			}
			if x.Notify(jsonrpc.Notification("notifications/message", nil)) {
				t.Error("after the response: got a notification sent, want it dropped")
			}
		})
	}
}

// Every notification arrives on the stream of its own request, in order, before the response.
func TestNotificationsPrecedeTheirResponse(t *testing.T) {
	const callers, rounds, n = 4, 50, 100
	check := func(t *testing.T, id string, next func() string) {
		for i := range n {
			want := string(progress([]byte(id), i))
			if got := next(); got != want {
				t.Errorf("message %d of %s: got %s, want %s", i, id, got, want)
				return
			}
		}
		if got, want := next(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"done":true}}`; got != want {
			t.Errorf("response of %s: got %s, want %s", id, got, want)
		}
	}
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		t.Run("streamable "+version, func(t *testing.T) {
			w := newWire(t, edge.Options{})
			h := w.open(version)
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for r := range rounds {
						id := fmt.Sprint(c*1000 + r)
						resp := w.do(context.Background(), "POST", "/mcp", call(id, "burst", "{}"), h)
						ev := readEvents(t, resp.Body)
						check(t, id, ev.message)
						if f, more := ev.next(); more {
							t.Errorf("after the response: got %+v, want the end", f)
						}
						resp.Body.Close()
					}
				})
			}
			wg.Wait()
		})
	}
	// shared runs the same on a transport with one stream for all.
	shared := func(t *testing.T, send func(string), next func() string) {
		lanes := map[string]chan string{}
		for c := range callers {
			for r := range rounds {
				lanes[fmt.Sprint(c*1000+r)] = make(chan string, n+1)
			}
		}
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for r := range rounds {
					id := fmt.Sprint(c*1000 + r)
					send(call(id, "burst", "{}"))
					check(t, id, func() string { return <-lanes[id] })
				}
			})
		}
		for range callers * rounds * (n + 1) {
			m := next()
			_, id, found := strings.Cut(m, `"progressToken":`)
			if !found {
				_, id, _ = strings.Cut(m, `"id":`)
			}
			id, _, _ = strings.Cut(id, ",")
			lanes[id] <- m
		}
		wg.Wait()
	}
	t.Run("sse", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		c := w.sse(nil)
		shared(t, func(m string) {
			if status, body := c.post(m, nil); status != 202 {
				t.Errorf("POST: got %d %s, want 202", status, body)
			}
		}, c.events.message)
	})
	t.Run("stdio", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		p := newStdio(t, w.edge, w.srv)
		var mu sync.Mutex
		shared(t, func(m string) {
			mu.Lock()
			defer mu.Unlock()
			p.send(m)
		}, p.line)
		p.finish()
	})
}

// A notification that is passed on waits for the requests before it: until they are sent or answered, but at most 5
// seconds.
func TestAwaitEarlier(t *testing.T) {
	rows := []struct {
		tool    string
		release bool // the call
		want    time.Duration
	}{{"hold", false, 5 * time.Second}, {"hold", true, 0}, {"sent-hold", false, 0}}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer()
			e := edge.New(edge.Options{})
			in, feed := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- e.ServeStdio(t.Context(), in, io.Discard, srv) }()
			fmt.Fprintln(feed, call("1", row.tool, "{}"))
			fmt.Fprintln(feed, `{"jsonrpc":"2.0","method":"notifications/pass"}`)
			fmt.Fprintln(feed, call("2", "echo", "{}"))
			synctest.Wait()
			if got := srv.log(); !slices.Contains(got, "tools/call:echo") {
				t.Errorf("%s: got %q served at once, want the call behind the notification, too", row.tool, got)
			}
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
			if err := <-done; err != nil {
				t.Errorf("ServeStdio: got %v, want nil", err)
			}
			stop(t, e)
		})
	}
}

// Of more than 1,000 unwritten notifications the oldest are dropped. The response still comes last.
func TestFullQueueKeepsTheNewest(t *testing.T) {
	const n = 200_000
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "burst", fmt.Sprintf(`{"n":%d}`, n))) // nobody reads yet
	mcptest.Eventually(t, "the burst is over", func() bool { return len(w.srv.log()) == 1 && w.edge.Tracked() == 0 })
	var got []string
	for {
		line := p.line()
		got = append(got, line)
		if strings.Contains(line, `"result"`) {
			break
		}
	}
	// What was taken for writing before the queue was full comes on top.
	if len(got) < 1001 || len(got) > 1001+2*64 {
		t.Errorf("messages: got %d, want 1,001 and those that were being written", len(got))
	}
	for i, line := range got[len(got)-1001 : len(got)-1] {
		if want := string(progress([]byte("1"), n-1000+i)); line != want {
			t.Fatalf("notification %d from the end: got %s, want %s", 1000-i, line, want)
		}
	}
	p.finish()
}

func TestCancelEndsTheStreamWithoutResponse(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	for tool, underWay := range map[string]string{"sleep": "tools/call:sleep", "notify-hold": "notified"} {
		resp := make(chan string, 1)
		go func() {
			_, _, body := w.post(call("5", tool, "{}"), h)
			resp <- body
		}()
		mcptest.Eventually(t, "the call is served", func() bool { return slices.Contains(w.srv.log(), underWay) })
		started := time.Now()
		if status, _, body := w.post(cancelOf("5", `"enough"`), h); status != 202 || body != "" {
			t.Errorf("cancelled: got %d %q, want 202 and no body", status, body)
		}
		want := ""
		if tool == "notify-hold" {
			want = "event: message\nid: 1-1\nretry: 1000\ndata: " + string(progress([]byte("5"), 0)) + "\n\n"
		}
		if got := <-resp; got != want {
			t.Errorf("%s: got answer %q, want %q and the end", tool, got, want)
		}
		if d := time.Since(started); d > 15*time.Second {
			t.Errorf("%s: the cancellation took %v, want it at once", tool, d)
		}
		checkCause(t, w.srv, `"enough"`)
	}
}

func TestCancelOnSharedStreams(t *testing.T) {
	run := func(t *testing.T, w *wire, send func(string), next func() string) {
		send(call("1", "sleep", "{}"))
		send(call(`"1"`, "hold", "{}"))
		mcptest.Eventually(t, "both are served", func() bool { return len(w.srv.log()) == 2 })
		send(cancelOf("1", `"x"`))
		mcptest.Eventually(t, "the call has ended", func() bool { return w.edge.Tracked() == 1 })
		checkCause(t, w.srv, `"x"`)
		close(w.srv.release)
		if got, want := next(), `{"jsonrpc":"2.0","id":"1","result":{"held":true}}`; got != want {
			t.Errorf("the only response: got %s, want %s", got, want)
		}
	}
	t.Run("sse", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		c := w.sse(nil)
		run(t, w, func(m string) { c.post(m, nil) }, c.events.message)
	})
	t.Run("stdio", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		p := newStdio(t, w.edge, w.srv)
		run(t, w, p.send, p.line)
		p.finish()
	})
}

// Cancelling an unknown request has no effect. It gets 202 and is logged as a warning.
func TestCancelOfTheUnknown(t *testing.T) {
	var log mcptest.Log
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	h, foreign := w.open("2025-06-18"), w.open("2025-06-18")
	answer := make(chan string, 1)
	go func() {
		_, _, body := w.post(call("7", "hold", "{}"), h)
		answer <- body
	}()
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
	if got, want := <-answer, `{"jsonrpc":"2.0","id":7,"result":{"held":true}}`; got != want {
		t.Errorf("the call that was meant: got %s, want %s", got, want)
	}
	if n := w.srv.causeCount(); n != 0 {
		t.Errorf("cancelled calls: got %d, want none", n)
	}
}

// Equal ids of two sessions are different requests, and so are 1 and "1".
func TestIDsBelongToTheirSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	a, b := w.open("2025-06-18"), w.open("2025-06-18")
	answers := make(chan string, 3)
	for _, one := range []struct {
		id string
		h  header
	}{{"1", a}, {"1", b}, {`"1"`, a}} {
		go func() {
			_, _, body := w.post(call(one.id, "hold", "{}"), one.h)
			answers <- body
		}()
	}
	mcptest.Eventually(t, "all three are served", func() bool { return len(w.srv.log()) == 3 })
	for _, id := range []string{"1", `"1"`, `"\u0031"`} {
		status, _, body := w.post(call(id, "echo", "{}"), a)
		if status != http.StatusBadRequest {
			t.Errorf("id %s again: got %d %s, want 400", id, status, body)
		}
		checkError(t, body, id, -32600)
	}
	close(w.srv.release)
	for range 3 {
		<-answers
	}
	if status, _, body := w.post(call("1", "echo", "{}"), a); status != 200 {
		t.Errorf("id 1 after its response: got %d %s, want 200", status, body)
	}
}

// A closed connection cancels the request since 2026-07-28 and without a session, but not in a session.
func TestClosedConnection(t *testing.T) {
	rows := []struct {
		name    string
		body    func(tool string) string
		h       func(w *wire) header
		cancels bool
	}{
		{"session", func(tool string) string { return call("1", tool, "{}") },
			func(w *wire) header { return w.open("2025-11-25") }, false},
		{"no session", func(tool string) string { return call("1", tool, "{}") }, func(*wire) header { return nil }, true},
		{"modern", modernCall, func(*wire) header { return nil }, true},
	}
	for _, row := range rows {
		for _, tool := range []string{"hold", "notify-hold"} {
			t.Run(row.name+" "+tool, func(t *testing.T) {
				w := newWire(t, edge.Options{})
				h := row.h(w)
				if row.name == "modern" {
					h = modernHeader("tools/call", tool)
				}
				ctx, hangUp := context.WithCancel(context.Background())
				r, _ := http.NewRequestWithContext(ctx, "POST", w.http.URL+"/mcp", reader(row.body(tool)))
				for k, v := range h {
					r.Header.Set(k, v)
				}
				r.Header.Set("Content-Type", "application/json")
				go func() {
					if resp, err := w.client.Do(r); err == nil {
						_, _ = resp.Body.Read(make([]byte, 1<<10))
						<-ctx.Done()
						resp.Body.Close()
					}
				}()
				mcptest.Eventually(t, "the call is served", func() bool { return slices.Contains(w.srv.log(), "tools/call:"+tool) })
				hangUp()
				if row.cancels {
					mcptest.Eventually(t, "the call is cancelled", func() bool { return w.srv.causeCount() == 1 })
				} else {
					close(w.srv.release)
				}
				mcptest.Eventually(t, "the call has ended", func() bool { return w.edge.Tracked() == 0 })
				if n := w.srv.causeCount(); !row.cancels && n != 0 {
					t.Errorf("cancelled calls: got %d, want none", n)
				}
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
		for _, wrong := range []struct {
			h    header
			body string
		}{{foreign, m}, {nil, m}, {h, strings.Replace(m, "nexus-1", "nexus-9", 1)}} {
			if status, _, body := w.post(wrong.body, wrong.h); status != 202 || body != "" {
				t.Errorf("an answer that nobody waits for: got %d %q, want 202 and no body", status, body)
			}
		}
		if status, _, body := w.post(m, h); status != 202 || body != "" {
			t.Errorf("answer: got %d %q, want 202 and no body", status, body)
		}
		if got := ev.message(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("sse", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		c := w.sse(nil)
		c.post(call("5", "ask", "{}"), nil)
		c.post(answerTo(c.events.message()), nil)
		if got := c.events.message(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("stdio", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		p := newStdio(t, w.edge, w.srv)
		p.send(call("5", "ask", "{}"))
		p.send(answerTo(p.line()))
		if got := p.line(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		p.finish()
	})
}

// If the client takes no requests or is gone, Request fails at once.
func TestRequestWithoutClient(t *testing.T) {
	noClient := func(t *testing.T, body string) {
		t.Helper()
		if !strings.Contains(body, edge.ErrNoClient.Error()) && !strings.Contains(body, edge.ErrClientGone.Error()) {
			t.Errorf("got %s, want ErrNoClient", body)
		}
	}
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	_, _, body := w.post(call("1", "ask", "{}"), nil)
	noClient(t, body)
	_, _, body = w.post(call("1", "ask", "{}"), header{"Mcp-Session-Id": h["Mcp-Session-Id"],
		"Accept": "application/json"})
	noClient(t, body)
	if _, err := w.edge.Request(t.Context(), "nobody", "ping", nil); err != edge.ErrNoClient {
		t.Errorf("unknown session: got %v, want ErrNoClient", err)
	}
	if _, err := w.edge.Request(t.Context(), h["Mcp-Session-Id"], "ping", nil); err != edge.ErrNoClient {
		t.Errorf("session without a stream: got %v, want ErrNoClient", err)
	}
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "ask", "{}"))
	p.line()
	p.in.Close() // the answer can never come
	noClient(t, p.line())
	if err := <-p.done; err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
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
	answer := make(chan string, 1)
	go func() {
		_, _, body := w.post(call("1", "ask", "{}"), header{"Mcp-Session-Id": h["Mcp-Session-Id"],
			"Accept": "application/json"})
		answer <- body
	}()
	id := string(jsonrpc.Get([]byte(own.message()), "id"))
	w.post(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":1,"message":"no"}}`, h)
	if got, want := <-answer, `{"jsonrpc":"2.0","id":1,"result":{"answer":null}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A client's response is delivered after the notifications that it sent before.
func TestAnswersFollowNotifications(t *testing.T) {
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(call("5", "ask", "{}"))
	request := p.line()
	p.send(`{"jsonrpc":"2.0","method":"notifications/a"}`)
	p.send(`{"jsonrpc":"2.0","id":` + string(jsonrpc.Get([]byte(request), "id")) + `,"result":1}`)
	if got, want := p.line(), `{"jsonrpc":"2.0","id":5,"result":{"answer":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := w.srv.log(); !slices.Equal(got, []string{"tools/call:ask", "notifications/a"}) {
		t.Errorf("got %q served when the answer was, want the notification, too", got)
	}
	p.finish()
}

// A request to the client may be answered after its stream has ended.
func TestRequestOutlivesItsStream(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		w := newWire(t, edge.Options{})
		h := w.open(version)
		ev := readEvents(t, w.do(context.Background(), "POST", "/mcp", call("1", "ask-beside", "{}"), h).Body)
		request := ev.message()
		close(w.srv.release)
		if got := ev.message(); !strings.Contains(got, `"result":{}`) {
			t.Errorf("%s: got %s, want the call's result", version, got)
		}
		for _, more := ev.next(); more; _, more = ev.next() {
		}
		w.post(`{"jsonrpc":"2.0","id":`+string(jsonrpc.Get([]byte(request), "id"))+`,"result":{"n":1}}`, h)
		if got := <-w.srv.beside; got != `{"n":1}` {
			t.Errorf("%s: got %s, want the client's answer", version, got)
		}
	}
}
