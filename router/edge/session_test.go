package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestDeleteEndsTheSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	answer := w.start(call("1", "sleep", "{}"), h)
	stream := w.do(context.Background(), "GET", "/mcp", "", h)
	w.served(1)
	w.status("DELETE", "DELETE", "/mcp", "", h, http.StatusNoContent)
	equal(t, "Ended when DELETE is answered", w.srv.ends(), 1)
	equal(t, "the call", <-answer, `{"jsonrpc":"2.0","id":1,"result":{"too":"late"}}`)
	equal(t, "cause", w.srv.lastCause(), edge.ErrSessionEnded)
	_, _ = io.Copy(io.Discard, stream.Body) // it ends
	for method, body := range map[string]string{"POST": call("1", "echo", "{}"), "GET": "", "DELETE": ""} {
		w.status(method+" after the end", method, "/mcp", body, h, 404)
	}
	equal(t, "sessions and requests", w.edge.Sessions()+w.edge.Tracked(), 0)
}

// A session cannot be used on another endpoint than its own.
func TestSessionsBelongToTheirEndpoint(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	w.status("another path", "POST", "/other", call("1", "echo", "{}"), h, 404)
	w.status("another transport", "POST", "/messages/?session_id="+h["Mcp-Session-Id"], call("1", "echo", "{}"), nil, 404)
	equal(t, "served", len(w.srv.log()), 0)
}

func TestRefusedInitializeLeavesNoSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	status, h, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"fail":1}}`, nil)
	checkError(t, body, "1", -32602)
	if status != 200 || h.Get("Mcp-Session-Id") != "" {
		t.Errorf("got %d, session %q; want 200 and no session", status, h.Get("Mcp-Session-Id"))
	}
	mcptest.Eventually(t, "the session has ended", func() bool { return w.edge.Sessions() == 0 && w.srv.ends() == 1 })
}

func TestEndOfTheSSEStreamEndsTheSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	c := w.sse(nil)
	c.post(call("1", "sleep", "{}"), nil)
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	c.close()
	mcptest.Eventually(t, "the session has ended", func() bool { return w.edge.Sessions() == 0 && w.srv.ends() == 1 })
	equal(t, "cause", w.srv.lastCause(), edge.ErrSessionEnded)
	c.want("POST after the end", call("2", "echo", "{}"), nil, 404)
}

// Calls that end with their session or the router get an error that says that their outcome is unknown.
func TestCallsEndWithTheirSession(t *testing.T) {
	want := func(id, why string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"The request was not answered: %s",`+
			`"data":{"server":"","reason":"outcome_unknown","retryable":false}}}`, id, why)
	}
	w := newWire(t, edge.Options{})
	h, other := w.open("2025-11-25"), w.open("2025-11-25")
	p := newStdio(t, w.edge, w.srv)
	first, second := w.start(call("1", "hold", "{}"), h), w.start(call("2", "hold", "{}"), other)
	p.send(call("3", "hold", "{}"))
	w.served(3)
	w.do(context.Background(), "DELETE", "/mcp", "", h)
	equal(t, "DELETE", <-first, want("1", "the client session has ended"))
	onStdio := make(chan string, 1)
	go func() { onStdio <- p.line() }()
	stop(t, w.edge)
	equal(t, "Stop", <-second, want("2", "the server is shutting down"))
	equal(t, "Stop, on stdio", <-onStdio, want("3", "the server is shutting down"))
}

func TestIdleSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv, endpoint := newDirect(t, edge.Options{Limits: limit.Config{SessionIdle: 30 * time.Minute}})
		open := func() header { return session(endpoint, "2025-11-25", nil) }
		used, _, streaming, calling, gone := open(), open(), open(), open(), open()
		ctx, hangUp := context.WithCancel(t.Context())
		go directly(ctx, endpoint, "GET", "", streaming)
		go directly(ctx, endpoint, "POST", call("1", "sleep", "{}"), calling)
		left, leave := context.WithCancel(t.Context())
		go directly(left, endpoint, "POST", call("1", "sleep", "{}"), gone)
		synctest.Wait()
		leave() // its connection is closed, its call goes on
		time.Sleep(20 * time.Minute)
		equal(t, "after 20 minutes", direct(endpoint, "POST", request("2", "ping", ""), used).Code, 200)
		time.Sleep(29 * time.Minute)
		equal(t, "the used, the streaming and the calling session after 49 minutes", e.Sessions(), 3)
		equal(t, "cause for the call nobody waits for", srv.lastCause(), edge.ErrSessionEnded)
		hangUp()
		time.Sleep(31 * time.Minute)
		equal(t, "sessions and requests at the end", e.Sessions()+e.Tracked(), 0)
		equal(t, "ended", srv.ends(), 5)
	})
}

// Sessions that end with unread messages release what they held.
func TestEndedSessionsHoldNothing(t *testing.T) {
	w := newWire(t, edge.Options{})
	defer close(w.srv.release)
	var opened []header
	for range 10 {
		h := w.open("2025-11-25")
		w.edge.Send(h["Mcp-Session-Id"], logMessage(1, 1000))
		w.resumable(h, "1")
		opened = append(opened, h)
	}
	for _, h := range opened {
		w.status("DELETE", "DELETE", "/mcp", "", h, 204)
	}
	mcptest.Eventually(t, "nothing is held", func() bool { return w.edge.Sessions() == 0 && w.edge.Held() == 0 })
}

// Send and Request use the session's own stream.
func TestOwnStream(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	id := h["Mcp-Session-Id"]
	note := func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, i) }
	equal(t, "Send to an unknown session", w.edge.Send("nobody", []byte(note(0))), false)
	for i := range 3 {
		equal(t, "Send", w.edge.Send(id, []byte(note(i))), true)
	}
	first := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	for i := range 3 {
		equal(t, "sent before there was a stream", first.message(), note(i))
	}
	// A second stream takes the place of the first.
	second := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	if _, more := first.next(); more {
		t.Error("the first stream: got an event, want its end")
	}
	type answer struct {
		result string
		err    error
	}
	done := make(chan answer, 1)
	ask := func(ctx context.Context) (id string) {
		go func() {
			m, err := w.edge.Request(ctx, h["Mcp-Session-Id"], "roots/list", nil)
			done <- answer{string(m.Result), err}
		}()
		return string(jsonrpc.Get([]byte(second.message()), "id"))
	}
	w.post(`{"jsonrpc":"2.0","id":`+ask(t.Context())+`,"result":{"roots":[]}}`, h)
	equal(t, "Request", <-done, answer{`{"roots":[]}`, nil})
	cause := errors.New("given up")
	ctx, giveUp := context.WithCancelCause(t.Context())
	request := ask(ctx)
	giveUp(cause)
	equal(t, "Request whose context has ended", <-done, answer{"", cause})
	equal(t, "after giving up", second.message(),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+request+`}}`)
}

// A panic in Handler.Ended does not end the process.
func TestPanicAtTheEnd(t *testing.T) {
	out := &mcptest.Log{}
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(out, nil))})
	w.srv.clumsy = true
	for range 2 {
		w.status("DELETE", "DELETE", "/mcp", "", w.open("2025-11-25"), http.StatusNoContent)
	}
	mcptest.Eventually(t, "the panic is in the log", func() bool { return out.Has("while leaving") })
	equal(t, "sessions ended", w.srv.ends(), 2)
}

func TestDuplicateOnSSE(t *testing.T) {
	w := newWire(t, edge.Options{})
	c := w.sse(nil)
	c.post(call("1", "hold", "{}"), nil)
	status, body := c.post(call("1", "echo", "{}"), nil)
	if status != 400 {
		t.Errorf("got %d, want 400", status)
	}
	checkError(t, body, "1", -32600)
	close(w.srv.release)
	equal(t, "the first of the two", c.events.message(), `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`)
	c.want("bad JSON", "{", nil, 400)
	c.post(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"capabilities":{"a":"`+strings.Repeat("a",
		70_000)+`"}}}`, nil)
	checkError(t, c.events.message(), "2", -32602)
}

// table is an edge with few places for sessions, whose callers are identified by address.
type table struct {
	t    *testing.T
	edge *edge.Edge
	http http.Handler
	srv  *server
}

func newTable(t *testing.T, places int) *table {
	e, srv, endpoint := newDirect(t, edge.Options{Limits: limit.Config{Sessions: places}})
	return &table{t, e, endpoint, srv}
}

func (b *table) serve(method, caller, body, id string) *httptest.ResponseRecorder {
	h := header{"Remote": caller + ":1"}
	if id != "" {
		h["Mcp-Session-Id"] = id
	}
	return direct(b.http, method, body, h)
}

// open opens a session and returns its id, empty if it is refused.
func (b *table) open(caller string) string {
	time.Sleep(time.Second)
	w := b.serve("POST", caller, initialize("2025-06-18"), "")
	if w.Code != 200 && (w.Code != 503 || !strings.Contains(w.Body.String(), `"reason":"overloaded"`)) {
		b.t.Errorf("%s: got %d %s, want 200 or 503 overloaded", caller, w.Code, w.Body)
	}
	return w.Header().Get("Mcp-Session-Id")
}

// has reports whether a session has a place, without reviving it.
func (b *table) has(id string) bool { return b.edge.Send(id, []byte(`{"jsonrpc":"2.0","method":"x"}`)) }

// A caller alone may have all places. When others want some, it keeps the most recently used half. A session that lost
// its place is revived when its client comes back.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTable(t, 10)
		var greedy []string
		for range 10 {
			greedy = append(greedy, b.open("192.0.2.1"))
		}
		if b.open("192.0.2.1") != "" {
			t.Error("beyond the limit: got a session, want none")
		}
		for _, i := range []int{0, 1} {
			b.serve("POST", "192.0.2.1", request("1", "seen", ""), greedy[i])
		}
		var others []string
		for range 7 {
			if id := b.open("192.0.2.2"); id != "" {
				others = append(others, id)
			}
		}
		if len(others) != 5 || b.edge.Sessions() != 10 {
			t.Errorf("another caller: got %d sessions of %d, want 5 of 10", len(others), b.edge.Sessions())
		}
		for i, id := range greedy {
			if want := i < 2 || i > 6; b.has(id) != want {
				t.Errorf("session %d of the first caller: got it in place %v, want %v", i, !want, want)
			}
		}
		for i := range 3 { // of those that have most
			if b.open("192.0.2."+strconv.Itoa(3+i)) == "" {
				t.Errorf("newcomer %d: got no session, want one", i)
			}
		}
		if w := b.serve("POST", "192.0.2.1", request("1", "seen", ""), greedy[3]); w.Code != 200 || !b.has(greedy[3]) {
			t.Errorf("a session that lost its place: got %d %s, want it revived", w.Code, w.Body)
		}
	})
}

// Sessions in use keep their places, unless their caller has more than its share and they only have a stream open.
func TestSessionsInUseKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTable(t, 4)
		var ids []string
		for i := range 4 {
			ids = append(ids, b.open("192.0.2.1"))
			if i < 3 {
				go b.serve("POST", "192.0.2.1", call("1", "hold", "{}"), ids[i])
			} else {
				go b.serve("GET", "192.0.2.1", "", ids[i])
			}
		}
		synctest.Wait()
		if b.open("192.0.2.2") == "" {
			t.Error("with a session to spare: got no session, want one")
		}
		if b.has(ids[3]) {
			t.Error("the session with a stream alone has its place, want it gone")
		}
		if b.open("192.0.2.3") == "" {
			t.Error("in place of an idle session: got no session, want one")
		}
		close(b.srv.release)
		synctest.Wait()
		for _, id := range ids[:3] {
			if !b.has(id) {
				t.Error("a session with a call in flight has lost its place")
			}
		}
	})
}

// A session survives a restart: the next router knows its client, serves the handler the handshake once, and serves
// the request. An id sealed for another caller or path is refused.
func TestRevival(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	options := edge.Options{Keys: keys(t)}
	before := newWire(t, options).keep(folder)
	ann, bob := header{"X-API-Key": "key-ann"}, header{"X-API-Key": "key-bob"}
	open := func() header {
		_, h, _ := before.post(initialize("2025-06-18"), ann)
		return with(ann, "Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	}
	lasting, deleted, unkeyed := open(), open(), before.open("2025-11-25")
	id := lasting["Mcp-Session-Id"]
	if resp := before.do(t.Context(), "DELETE", "/mcp", "", deleted); resp.StatusCode != 204 {
		t.Fatalf("DELETE: got %d, want 204", resp.StatusCode)
	}
	if len(id) >= 1024 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("got the id %q, want less than 1 KiB of plain characters", id)
	}
	for _, name := range []string{folder, filepath.Join(folder, "session.key")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got %v, %v; want it closed to others", name, info.Mode(), err)
		}
	}

	forged := "A" + id[1:]
	if forged == id {
		forged = "B" + id[1:]
	}
	after := newWire(t, options).keep(folder)
	for name, row := range map[string]struct {
		path string
		h    header
	}{
		"another key":     {"/mcp", with(bob, "Mcp-Session-Id", id)},
		"another path":    {"/other", lasting},
		"forged":          {"/mcp", with(ann, "Mcp-Session-Id", forged)},
		"longer":          {"/mcp", with(ann, "Mcp-Session-Id", id+"A")},
		"deleted":         {"/mcp", deleted},
		"unkeyed by none": {"/mcp", with(ann, "Mcp-Session-Id", "x")},
	} {
		after.status(name, "POST", row.path, request("1", "seen", ""), row.h, 404)
	}
	after.status("GET of a deleted session", "GET", "/mcp", "", deleted, 404)
	if got := after.srv.all(); len(got) > 0 {
		t.Errorf("got %q served, want nothing", got)
	}
	var wg sync.WaitGroup
	for i := range 10 { // at once
		wg.Go(func() {
			status, _, body := after.post(request(fmt.Sprint(i), "seen", ""), lasting)
			for _, part := range []string{`"Version":"2025-06-18"`, `"Capabilities":{"sampling":{}}`, `"Session":"` + id + `"`} {
				if status != 200 || !strings.Contains(body, part) {
					t.Errorf("after a restart: got %d %s, want 200 and %s", status, body, part)
				}
			}
		})
	}
	wg.Wait()
	mcptest.Eventually(t, "the handler knows all", func() bool { return len(after.srv.all()) >= 2 })
	if got := fmt.Sprint(after.srv.all()); got != "[initialize:2025-06-18 notifications/initialized]" ||
		after.edge.Sessions() != 1 {
		t.Errorf("got %s served and %d sessions, want the handshake once and one session", got, after.edge.Sessions())
	}
	after.want("a session without a key yet", request("1", "seen", `"api_key":"key-bob"`), unkeyed, 200)
	after.status("DELETE of a revived session", "DELETE", "/mcp", "", lasting, 204)
	third := newWire(t, options).keep(folder)
	third.want("after its DELETE", request("1", "seen", ""), lasting, 404)
	if status, _, _ := newWire(t, options).post(request("1", "seen", ""), open()); status != 404 {
		t.Errorf("a router with another key: got %d, want 404", status)
	}
}

// A session that ended on another router with the same folder is not revived.
func TestEndedElsewhere(t *testing.T) {
	folder := t.TempDir()
	a, b := newWire(t, edge.Options{}).keep(folder), newWire(t, edge.Options{}).keep(folder)
	first, second := a.open("2025-11-25"), a.open("2025-11-25")
	b.do(t.Context(), "DELETE", "/mcp", "", first)
	a.do(t.Context(), "DELETE", "/mcp", "", second)
	b.do(t.Context(), "DELETE", "/mcp", "", with(nil, "Mcp-Session-Id", "x"))
	b.want("ended by the other", request("1", "seen", ""), second, 404)
	b.want("opened by the other", request("1", "seen", ""), a.open("2025-11-25"), 200)
}

// Routers that start at the same time use one key.
func TestOneKey(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	wires := make([]*wire, 8)
	var wg sync.WaitGroup
	for i := range wires {
		w := newWire(t, edge.Options{})
		wires[i] = w
		wg.Go(func() {
			equal(t, "Keep", w.edge.Keep(folder), nil)
		})
	}
	wg.Wait()
	h := wires[0].open("2025-11-25")
	for i, w := range wires {
		w.want(fmt.Sprintf("router %d", i), request("1", "seen", ""), h, 200)
	}
}

func TestKeepFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	short := t.TempDir()
	if err := os.WriteFile(filepath.Join(short, "session.key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{file: file, short: "session.key has 5 bytes instead of 32; remove it"} {
		w := newWire(t, edge.Options{})
		if err := w.edge.Keep(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %s", folder, err, want)
		}
		w.want(folder, request("1", "seen", ""), w.open("2025-11-25"), 200)
	}
}

// A session may be revived for 24 hours from its start by the address that opened it. Its idle time starts anew.
func TestRevivalExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, endpoint := newDirect(t, edge.Options{Limits: limit.Config{SessionIdle: 30 * time.Minute}})
		own := header{"Remote": "[2001:db8::1]:1"}
		kept, ended := session(endpoint, "2025-11-25", own), session(endpoint, "2025-11-25", own)
		equal(t, "DELETE", direct(endpoint, "DELETE", "", ended).Code, http.StatusNoContent)
		from := func(remote string, h header) int {
			return direct(endpoint, "POST", request("1", "seen", ""),
				header{"Remote": remote, "Mcp-Session-Id": h["Mcp-Session-Id"]}).Code
		}
		for range 23 {
			time.Sleep(time.Hour)
			equal(t, "sessions after an hour", e.Sessions(), 0)
			equal(t, "another address", from("[2001:db8:0:1::1]:1", kept), 404)
			equal(t, "its own /64", from("[2001:db8::ffff]:1", kept), 200)
			equal(t, "ended by DELETE", from(own["Remote"], ended), 404)
		}
		time.Sleep(time.Hour)
		equal(t, "after 24 hours", from(own["Remote"], kept), 404)
	})
}

// The length of an id is bounded, whatever the client's description.
func TestLongClientInfo(t *testing.T) {
	folder := t.TempDir()
	before, after := newWire(t, edge.Options{}).keep(folder), newWire(t, edge.Options{}).keep(folder)
	long := strings.Repeat("x", 5000)
	_, h, _ := before.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"experimental":{"`+
		long+`":{}},"sampling":{},"roots":{}},"clientInfo":{"title":"`+long+`","name":"n","version":"1"}}}`, nil)
	id := h.Get("Mcp-Session-Id")
	if len(id) >= 1024 {
		t.Errorf("got an id of %d bytes, want less than 1 KiB", len(id))
	}
	if _, _, body := before.post(request("1", "seen", ""), header{"Mcp-Session-Id": id}); !strings.Contains(body,
		long+`":{}},"sampling":{},"roots":{}},"Info":{"name":"n","version":"1"}`) {
		t.Errorf("got %s, want the members that fit into 8 KiB", body)
	}
	_, _, body := after.post(request("1", "seen", ""), header{"Mcp-Session-Id": id})
	for _, part := range []string{`"Capabilities":{"sampling":{},"roots":{}}`, `"Info":{"name":"n","version":"1"}`} {
		if !strings.Contains(body, part) {
			t.Errorf("got %s, want %s in it", body, part)
		}
	}
	status, _, body := before.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"`+strings.Repeat("x",
		70_000)+`"}}`, nil)
	if status != 400 || !strings.Contains(body, "larger than 64 KiB") {
		t.Errorf("too much: got %d %s, want 400", status, body)
	}
	equal(t, "sessions", before.edge.Sessions(), 1)
}

// A revived stream can be resumed. Event ids from before the restart do not conflict.
func TestRevivedStream(t *testing.T) {
	folder := t.TempDir()
	before, after := newWire(t, edge.Options{}).keep(folder), newWire(t, edge.Options{}).keep(folder)
	h := before.open("2025-11-25")
	ctx, hangUp := context.WithCancel(t.Context())
	ev := readEvents(t, before.do(ctx, "GET", "/mcp", "", h).Body)
	before.edge.Send(h["Mcp-Session-Id"], []byte(`{"jsonrpc":"2.0","method":"notifications/1"}`))
	ev.next()
	f, _ := ev.next()
	hangUp()
	ev = readEvents(t, after.do(t.Context(), "GET", "/mcp", "", with(h, "Last-Event-ID", f.id)).Body)
	ev.next() // it is open
	if !after.edge.Send(h["Mcp-Session-Id"], []byte(`{"jsonrpc":"2.0","method":"notifications/2"}`)) {
		t.Fatal("Send to the revived session: got false, want true")
	}
	contains(t, "answer", ev.message(), "notifications/2")
	if got := fmt.Sprint(after.srv.all()); !strings.HasPrefix(got, "[initialize:2025-11-25") {
		t.Errorf("got %s served, want the handshake", got)
	}
}

// A caller that ends too many sessions within an hour can revive none of that hour. Others can.
func TestManyEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		endpoints := make([]http.Handler, 2)
		for i := range endpoints {
			e, _, endpoint := newDirect(t, edge.Options{})
			equal(t, "Keep", e.Keep(folder), nil)
			endpoints[i] = endpoint
		}
		greedy, modest := header{"Remote": "192.0.2.1:1"}, header{"Remote": "192.0.2.2:1"}
		kept, others := session(endpoints[0], "2025-06-18", greedy), session(endpoints[0], "2025-06-18", modest)
		var last header
		for range 8200 {
			last = session(endpoints[0], "2025-06-18", greedy)
			equal(t, "DELETE", direct(endpoints[0], "DELETE", "", last).Code, http.StatusNoContent)
		}
		seen := func(endpoint http.Handler, h header) int {
			return direct(endpoint, "POST", request("1", "seen", ""), h).Code
		}
		equal(t, "a session that exists", seen(endpoints[0], kept), 200)
		equal(t, "an ended session in the next router", seen(endpoints[1], last), 404)
		equal(t, "a session of that caller", seen(endpoints[1], kept), 404)
		equal(t, "a session of another caller", seen(endpoints[1], others), 200)
		files, err := os.ReadDir(filepath.Join(folder, "ended"))
		if err != nil || len(files) != 1 {
			t.Fatalf("got files %v, %v; want one", files, err)
		}
		if info, err := files[0].Info(); err != nil || info.Size() != 8192*34 {
			t.Errorf("got %d bytes, %v; want those of 8,192 sessions", info.Size(), err)
		}
		time.Sleep(26 * time.Hour)
		direct(endpoints[0], "DELETE", "", session(endpoints[0], "2025-06-18", greedy))
		files, _ = os.ReadDir(filepath.Join(folder, "ended"))
		equal(t, "files after a day", len(files), 1)
	})
}

// Where it cannot be read which sessions have ended none is revived, and the log says so; else it says nothing.
func TestRevivalTellsWhyNot(t *testing.T) {
	for _, readable := range []bool{true, false} {
		folder := t.TempDir()
		h := newWire(t, edge.Options{}).keep(folder).open("2025-11-25")
		if !readable {
			for _, start := range []time.Time{time.Now().Add(-time.Minute), time.Now()} {
				if err := os.MkdirAll(filepath.Join(folder, "ended", start.UTC().Format("2006-01-02T15")), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		var log mcptest.Log
		after := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).keep(folder)
		status, _, body := after.post(request("1", "seen", ""), h)
		if revived := status == 200; revived != readable || status != 200 && status != 404 {
			t.Errorf("readable %v: got %d %s, want it to be revived: %v", readable, status, body, readable)
		}
		if said := log.Has("level=WARN"); said == readable {
			t.Errorf("readable %v: the log warns: %v", readable, said)
		}
	}
}
