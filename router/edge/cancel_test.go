package edge_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

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
