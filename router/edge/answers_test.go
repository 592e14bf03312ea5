package edge_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// A client's answer waits for the notifications that it sent before.
func TestAnswersWaitForNotifications(t *testing.T) {
	const slow, fast = `{"jsonrpc":"2.0","method":"notifications/slow"}`, `{"jsonrpc":"2.0","method":"notifications/fast"}`
	answer := func(question string) string {
		return `{"jsonrpc":"2.0","id":` + string(jsonrpc.Get([]byte(question), "id")) + `,"result":1}`
	}
	const want = `{"jsonrpc":"2.0","id":5,"result":{"answer":1}}`
	for _, transport := range []string{"streamable", "sse", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			w := newWire(t, edge.Options{})
			result := make(chan string, 1)
			switch transport {
			case "streamable":
				h := w.open("2025-11-25")
				ev := readEvents(t, w.do(context.Background(), "POST", "/mcp", call("5", "ask", "{}"), h).Body)
				question := ev.message()
				for _, m := range []string{slow, fast, answer(question)} {
					w.post(m, h)
				}
				go func() { result <- ev.message() }()
			case "sse":
				c := w.sse(nil)
				c.post(call("5", "ask", "{}"), nil)
				question := c.events.message()
				for _, m := range []string{slow, fast, answer(question)} {
					c.post(m, nil)
				}
				go func() { result <- c.events.message() }()
			default:
				p := newStdio(t, w.edge, w.srv)
				p.send(call("5", "ask", "{}"))
				question := p.line()
				for _, m := range []string{slow, fast, answer(question)} {
					p.send(m)
				}
				go func() { result <- p.line() }()
			}
			select {
			case got := <-result:
				t.Errorf("got %s while a notification before the answer was served", got)
			case <-time.After(20 * time.Millisecond):
			}
			close(w.srv.release)
			if got := <-result; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := w.srv.log(); !slices.Equal(got, []string{"tools/call:ask", "notifications/slow", "notifications/fast"}) {
				t.Errorf("got %q served when the answer was, want both notifications", got)
			}
		})
	}
}

// A question is open longer than the stream it went out on.
func TestQuestionOutlivesItsStream(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		w := newWire(t, edge.Options{})
		h := w.open(version)
		ev := readEvents(t, w.do(context.Background(), "POST", "/mcp", call("1", "ask-beside", "{}"), h).Body)
		question := ev.message()
		close(w.srv.release)
		if got := ev.message(); !strings.Contains(got, `"result":{}`) {
			t.Errorf("%s: got %s, want the call's result", version, got)
		}
		for _, more := ev.next(); more; _, more = ev.next() {
		}
		w.post(`{"jsonrpc":"2.0","id":`+string(jsonrpc.Get([]byte(question), "id"))+`,"result":{"n":1}}`, h)
		if got := <-w.srv.beside; got != `{"n":1}` {
			t.Errorf("%s: got %s, want the client's answer", version, got)
		}
	}
}

// What a session's end, or the router's, does to the calls in flight is told plainly: nobody knows what they
// have done.
func TestCallsEndWithTheirSession(t *testing.T) {
	want := func(id, why string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"The request was not answered: %s","data":{"server":"","reason":"outcome_unknown","retryable":false}}}`, id, why)
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
	eventually(t, "the calls are served", func() bool { return len(w.srv.log()) == 3 })
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

// Refusals that are HTTP errors are in the log of messages, too.
func TestRefusalsAreLogged(t *testing.T) {
	var log logs
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: jsonrpc.LevelTrace}))})
	for _, tt := range []struct{ method, path, body, part string }{
		{"POST", "/mcp", `{{{`, `-32700`}, {"PUT", "/mcp", ``, `Method not allowed`}, {"POST", "/messages/?session_id=none", `{}`, `Session not found`},
	} {
		w.do(context.Background(), tt.method, tt.path, tt.body, nil)
		if !log.contains(tt.part) {
			t.Errorf("%s %s: the log lacks %s", tt.method, tt.path, tt.part)
		}
	}
}
