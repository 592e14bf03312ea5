package edge_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

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
