package edge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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
