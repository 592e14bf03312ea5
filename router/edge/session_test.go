package edge_test

import (
	"context"
	"errors"
	"fmt"
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
	answer := make(chan string, 1)
	go func() {
		_, _, body := w.post(call("1", "sleep", "{}"), h)
		answer <- body
	}()
	stream := w.do(context.Background(), "GET", "/mcp", "", h)
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	if resp := w.do(context.Background(), "DELETE", "/mcp", "", h); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: got %d, want 204", resp.StatusCode)
	}
	if got := w.srv.ends(); got != 1 {
		t.Errorf("Ended when DELETE is answered: got %d calls, want 1", got)
	}
	if got, want := <-answer, `{"jsonrpc":"2.0","id":1,"result":{"too":"late"}}`; got != want {
		t.Errorf("the call: got %s, want %s", got, want)
	}
	if err := w.srv.lastCause(); err != edge.ErrSessionEnded {
		t.Errorf("cause: got %v, want ErrSessionEnded", err)
	}
	ev := readEvents(t, stream.Body)
	for {
		if _, more := ev.next(); !more {
			break
		}
	}
	for _, one := range []struct{ method, body string }{{"POST", call("1", "echo", "{}")}, {"GET", ""}, {"DELETE", ""}} {
		if resp := w.do(context.Background(), one.method, "/mcp", one.body, h); resp.StatusCode != 404 {
			t.Errorf("%s after the end: got %d, want 404", one.method, resp.StatusCode)
		}
	}
	if w.edge.Sessions() != 0 || w.edge.Tracked() != 0 {
		t.Errorf("got %d sessions and %d requests, want none", w.edge.Sessions(), w.edge.Tracked())
	}
}

// A session cannot be used on another surface than its own.
func TestSessionsBelongToTheirSurface(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	resp := w.do(context.Background(), "POST", "/other", call("1", "echo", "{}"), h)
	if resp.StatusCode != 404 {
		t.Errorf("another path: got %d, want 404", resp.StatusCode)
	}
	if resp := w.do(context.Background(), "POST", "/messages/?session_id="+h["Mcp-Session-Id"], call("1", "echo", "{}"),
		nil); resp.StatusCode != 404 {
		t.Errorf("another transport: got %d, want 404", resp.StatusCode)
	}
	if got := w.srv.log(); len(got) != 0 {
		t.Errorf("served: got %q, want nothing", got)
	}
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
	if err := w.srv.lastCause(); err != edge.ErrSessionEnded {
		t.Errorf("cause: got %v, want ErrSessionEnded", err)
	}
	if status, body := c.post(call("2", "echo", "{}"), nil); status != 404 {
		t.Errorf("POST after the end: got %d %s, want 404", status, body)
	}
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
	answers := map[string]chan string{"1": make(chan string, 1), "2": make(chan string, 1)}
	for id, h := range map[string]header{"1": h, "2": other} {
		go func() {
			_, _, body := w.post(call(id, "hold", "{}"), h)
			answers[id] <- body
		}()
	}
	p.send(call("3", "hold", "{}"))
	mcptest.Eventually(t, "the calls are served", func() bool { return len(w.srv.log()) == 3 })
	w.do(context.Background(), "DELETE", "/mcp", "", h)
	if got := <-answers["1"]; got != want("1", "the client session has ended") {
		t.Errorf("DELETE: got %s, want %s", got, want("1", "the client session has ended"))
	}
	onStdio := make(chan string, 1)
	go func() { onStdio <- p.line() }()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := w.edge.Stop(ctx); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	if got := <-answers["2"]; got != want("2", "the server is shutting down") {
		t.Errorf("Stop: got %s, want %s", got, want("2", "the server is shutting down"))
	}
	if got := <-onStdio; got != want("3", "the server is shutting down") {
		t.Errorf("Stop, on stdio: got %s, want %s", got, want("3", "the server is shutting down"))
	}
}

func TestIdleSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{Limits: limit.Config{SessionIdle: 30 * time.Minute}})
		h := e.Streamable(srv, nil)
		open := func() header {
			w := direct(h, "POST", initialize("2025-11-25"), nil)
			return header{"Mcp-Session-Id": w.Header().Get("Mcp-Session-Id")}
		}
		used, _, streaming, calling, gone := open(), open(), open(), open(), open()
		ctx, hangUp := context.WithCancel(t.Context())
		serve := func(ctx context.Context, method, body string, s header) {
			r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", reader(body))
			r.Header.Set("Mcp-Session-Id", s["Mcp-Session-Id"])
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		go serve(ctx, "GET", "", streaming)
		go serve(ctx, "POST", call("1", "sleep", "{}"), calling)
		left, leave := context.WithCancel(t.Context())
		go serve(left, "POST", call("1", "sleep", "{}"), gone)
		synctest.Wait()
		leave() // its connection is closed, its call goes on
		alive := func(s header) bool {
			return direct(h, "POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, s).Code == 200
		}
		time.Sleep(20 * time.Minute)
		if !alive(used) {
			t.Error("after 20 minutes: the session has expired, want it alive")
		}
		time.Sleep(29 * time.Minute)
		if got := e.Sessions(); got != 3 {
			t.Errorf("after 49 minutes: got %d sessions, want the used, the streaming and the calling one", got)
		}
		if err := srv.lastCause(); err != edge.ErrSessionEnded {
			t.Errorf("cause for the call nobody waits for: got %v, want ErrSessionEnded", err)
		}
		hangUp()
		time.Sleep(31 * time.Minute)
		if e.Sessions() != 0 || e.Tracked() != 0 || srv.ends() != 5 {
			t.Errorf("at the end: got %d sessions, %d requests, %d ended; want 0, 0, 5", e.Sessions(), e.Tracked(), srv.ends())
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
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
		if resp := w.do(context.Background(), "DELETE", "/mcp", "", h); resp.StatusCode != 204 {
			t.Errorf("DELETE: got %d, want 204", resp.StatusCode)
		}
	}
	mcptest.Eventually(t, "nothing is held", func() bool { return w.edge.Sessions() == 0 && w.edge.Held() == 0 })
}

// Send and Request use the session's own stream.
func TestOwnStream(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	id := h["Mcp-Session-Id"]
	note := func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, i) }
	if w.edge.Send("nobody", []byte(note(0))) {
		t.Error("Send to an unknown session: got true, want false")
	}
	for i := range 3 {
		if !w.edge.Send(id, []byte(note(i))) {
			t.Error("Send: got false, want true")
		}
	}
	first := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	for i := range 3 {
		if got := first.message(); got != note(i) {
			t.Errorf("message %d: got %s, want what was sent before there was a stream", i, got)
		}
	}
	// A second stream takes the place of the first.
	resp := w.do(context.Background(), "GET", "/mcp", "", h)
	second := readEvents(t, resp.Body)
	if _, more := first.next(); more {
		t.Error("the first stream: got an event, want its end")
	}
	done := make(chan error, 1)
	go func() {
		m, err := w.edge.Request(context.Background(), id, "roots/list", nil)
		if err == nil && string(m.Result) != `{"roots":[]}` {
			err = fmt.Errorf("got result %s", m.Result)
		}
		done <- err
	}()
	m := second.message()
	w.post(`{"jsonrpc":"2.0","id":`+string(jsonrpc.Get([]byte(m), "id"))+`,"result":{"roots":[]}}`, h)
	if err := <-done; err != nil {
		t.Errorf("Request: got %v, want the answer", err)
	}
	ctx, giveUp := context.WithCancelCause(context.Background())
	go func() {
		_, err := w.edge.Request(ctx, id, "roots/list", nil)
		done <- err
	}()
	m = second.message()
	cause := errors.New("given up")
	giveUp(cause)
	if err := <-done; err != cause {
		t.Errorf("Request: got %v, want the cause of its context", err)
	}
	want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` +
		string(jsonrpc.Get([]byte(m), "id")) + `}}`
	if got := second.message(); got != want {
		t.Errorf("after giving up: got %s, want %s", got, want)
	}
}

// A panic in Handler.Ended does not end the process.
func TestPanicAtTheEnd(t *testing.T) {
	out := &mcptest.Log{}
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(out, nil))})
	w.srv.clumsy = true
	for range 2 {
		if resp := w.do(t.Context(), "DELETE", "/mcp", "", w.open("2025-11-25")); resp.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE: got %d, want 204", resp.StatusCode)
		}
	}
	mcptest.Eventually(t, "the panic is in the log", func() bool { return out.Has("while leaving") })
	if got := w.srv.ends(); got != 2 {
		t.Errorf("got %d sessions ended, want 2", got)
	}
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
	if got, want := c.events.message(), `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`; got != want {
		t.Errorf("the first of the two: got %s, want %s", got, want)
	}
	if status, body := c.post("{", nil); status != 400 {
		t.Errorf("bad JSON: got %d %s, want 400", status, body)
	}
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
	srv := newServer()
	e := edge.New(edge.Options{Limits: limit.Config{Sessions: places}})
	return &table{t, e, e.Streamable(srv, nil), srv}
}

func (b *table) serve(method, caller, body, id string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1/mcp", reader(body))
	r.RemoteAddr = caller + ":1"
	if id != "" {
		r.Header.Set("Mcp-Session-Id", id)
	}
	w := httptest.NewRecorder()
	b.http.ServeHTTP(w, r)
	return w
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

func (b *table) stop() {
	if err := b.edge.Stop(b.t.Context()); err != nil {
		b.t.Errorf("Stop: got %v, want nil", err)
	}
}

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
		b.stop()
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
		b.stop()
	})
}

// One caller that fills the table with sessions in use neither slows down nor excludes others.
func TestSessionTableUnderAttack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 2000
		b := newTable(t, places)
		for i := range places {
			b.open(fmt.Sprintf("[2001:db8::%x]", i))
		}
		for i := range 50 {
			id := b.open(fmt.Sprintf("198.51.100.%d", i))
			if id == "" {
				t.Fatalf("caller %d: got no session, want one", i)
			}
			for range 20 {
				if w := b.serve("POST", "203.0.113.9", initialize("2025-06-18"), ""); w.Code != 200 {
					t.Fatalf("while others want places: got %d %s", w.Code, w.Body)
				}
			}
			if !b.has(id) && i < 10 {
				t.Fatalf("caller %d has lost its only session to one that has more", i)
			}
		}
		b.stop()
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
		if resp := after.do(t.Context(), "POST", row.path, request("1", "seen", ""), row.h); resp.StatusCode != 404 {
			t.Errorf("%s: got %d, want 404", name, resp.StatusCode)
		}
	}
	if resp := after.do(t.Context(), "GET", "/mcp", "", deleted); resp.StatusCode != 404 {
		t.Errorf("GET of a deleted session: got %d, want 404", resp.StatusCode)
	}
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
	if status, _, body := after.post(request("1", "seen", `"api_key":"key-bob"`), unkeyed); status != 200 {
		t.Errorf("a session without a key yet: got %d %s, want 200", status, body)
	}
	if resp := after.do(t.Context(), "DELETE", "/mcp", "", lasting); resp.StatusCode != 204 {
		t.Errorf("DELETE of a revived session: got %d, want 204", resp.StatusCode)
	}
	third := newWire(t, options).keep(folder)
	if status, _, _ := third.post(request("1", "seen", ""), lasting); status != 404 {
		t.Errorf("after its DELETE: got %d, want 404", status)
	}
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
	if status, _, _ := b.post(request("1", "seen", ""), second); status != 404 {
		t.Errorf("ended by the other: got %d, want 404", status)
	}
	if status, _, _ := b.post(request("1", "seen", ""), a.open("2025-11-25")); status != 200 {
		t.Errorf("opened by the other: got %d, want 200", status)
	}
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
			if err := w.edge.Keep(folder); err != nil {
				t.Errorf("Keep: got %v, want nil", err)
			}
		})
	}
	wg.Wait()
	h := wires[0].open("2025-11-25")
	for i, w := range wires {
		if status, _, body := w.post(request("1", "seen", ""), h); status != 200 {
			t.Errorf("router %d: got %d %s, want 200", i, status, body)
		}
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
		if status, _, _ := w.post(request("1", "seen", ""), w.open("2025-11-25")); status != 200 {
			t.Errorf("%s: got %d, want sessions all the same", folder, status)
		}
	}
}

// A session may be revived for 24 hours from its start by the address that opened it. Its idle time starts anew.
func TestRevivalExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{Limits: limit.Config{SessionIdle: 30 * time.Minute}})
		h := e.Streamable(srv, nil)
		post := func(remote, body, id string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", reader(body))
			r.RemoteAddr = remote
			if id != "" {
				r.Header.Set("Mcp-Session-Id", id)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		open := func() string {
			return post("[2001:db8::1]:1", initialize("2025-11-25"), "").Header().Get("Mcp-Session-Id")
		}
		id, ended := open(), open()
		r := httptest.NewRequest("DELETE", "http://127.0.0.1/mcp", nil)
		r.RemoteAddr = "[2001:db8::1]:1"
		r.Header.Set("Mcp-Session-Id", ended)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusNoContent {
			t.Errorf("DELETE: got %d, want 204", w.Code)
		}
		for range 23 {
			time.Sleep(time.Hour)
			if got := e.Sessions(); got != 0 {
				t.Fatalf("after an hour: got %d sessions, want 0", got)
			}
			if w := post("[2001:db8:0:1::1]:1", request("1", "seen", ""), id); w.Code != 404 {
				t.Fatalf("another address: got %d, want 404", w.Code)
			}
			if w := post("[2001:db8::ffff]:1", request("1", "seen", ""), id); w.Code != 200 {
				t.Fatalf("its own /64: got %d, want 200", w.Code)
			}
			if w := post("[2001:db8::1]:1", request("1", "seen", ""), ended); w.Code != 404 {
				t.Fatalf("ended by DELETE: got %d, want 404", w.Code)
			}
		}
		time.Sleep(time.Hour)
		if w := post("[2001:db8::1]:1", request("1", "seen", ""), id); w.Code != 404 {
			t.Errorf("after 24 hours: got %d, want 404", w.Code)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
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
	if got := ev.message(); !strings.Contains(got, "notifications/2") {
		t.Errorf("got %s, want what was sent after the revival", got)
	}
	if got := fmt.Sprint(after.srv.all()); !strings.HasPrefix(got, "[initialize:2025-11-25") {
		t.Errorf("got %s served, want the handshake", got)
	}
}

// A caller that ends too many sessions within an hour can revive none of that hour. Others can.
func TestManyEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		edges := make([]*edge.Edge, 2)
		handlers := make([]http.Handler, 2)
		for i := range edges {
			edges[i] = edge.New(edge.Options{})
			handlers[i] = edges[i].Streamable(newServer(), nil)
			if err := edges[i].Keep(folder); err != nil {
				t.Fatal(err)
			}
		}
		serve := func(h http.Handler, method, caller, body, id string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "http://127.0.0.1/mcp", reader(body))
			r.RemoteAddr = caller
			r.Header.Set("Mcp-Session-Id", id)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		open := func(caller string) string {
			return serve(handlers[0], "POST", caller, initialize("2025-06-18"), "").Header().Get("Mcp-Session-Id")
		}
		kept, others := open("192.0.2.1:1"), open("192.0.2.2:1")
		var last string
		for range 8200 {
			last = open("192.0.2.1:1")
			if w := serve(handlers[0], "DELETE", "192.0.2.1:1", "", last); w.Code != http.StatusNoContent {
				t.Fatalf("DELETE: got %d %s, want 204", w.Code, w.Body)
			}
		}
		if w := serve(handlers[0], "POST", "192.0.2.1:1", request("1", "seen", ""), kept); w.Code != 200 {
			t.Errorf("a session that exists: got %d, want 200", w.Code)
		}
		for id, want := range map[string]int{last: 404, kept: 404, others: 200} {
			caller := "192.0.2.1:1"
			if id == others {
				caller = "192.0.2.2:1"
			}
			if w := serve(handlers[1], "POST", caller, request("1", "seen", ""), id); w.Code != want {
				t.Errorf("in the next router, %s: got %d, want %d", caller, w.Code, want)
			}
		}
		files, err := os.ReadDir(filepath.Join(folder, "ended"))
		if err != nil || len(files) != 1 {
			t.Fatalf("got files %v, %v; want one", files, err)
		}
		if info, err := files[0].Info(); err != nil || info.Size() != 8192*34 {
			t.Errorf("got %d bytes, %v; want those of 8,192 sessions", info.Size(), err)
		}
		time.Sleep(26 * time.Hour)
		serve(handlers[0], "DELETE", "192.0.2.1:1", "", open("192.0.2.1:1"))
		if files, _ := os.ReadDir(filepath.Join(folder, "ended")); len(files) != 1 {
			t.Errorf("after a day: got %d files, want the new one alone", len(files))
		}
		for _, e := range edges {
			if err := e.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
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
