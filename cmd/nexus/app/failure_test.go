package app_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// What a server does to a call, and what the client of run and the step of a query see of it.
func TestFailures(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		}
	}
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }
	for _, row := range []struct {
		name      string
		fault     http.HandlerFunc
		change    func(*app.Options)
		tool      string // write, read (readOnlyHint) or again (idempotentHint)
		reason    string
		message   string
		retryable bool
		calls     int // at the server, of one call of the client
	}{
		{name: "connection broken, a tool that may write", fault: abort, tool: "write", reason: "outcome_unknown", calls: 1},
		{name: "connection broken, a tool that reads", fault: abort, tool: "read", reason: "disconnected", retryable: true, calls: 3},
		{name: "annotations are not trusted", fault: abort, tool: "read", reason: "outcome_unknown", calls: 1,
			change: func(o *app.Options) { o.Config.Servers[0].TrustAnnotations = new(bool) }},
		{name: "attempts as configured", fault: abort, tool: "read", reason: "disconnected", retryable: true, calls: 2,
			change: func(o *app.Options) { o.Config.Execution.Attempts = 2 }},
		{name: "stream cut, a tool that reads", fault: cut, tool: "read", reason: "disconnected", retryable: true, calls: 3},
		{name: "silence", fault: hang, tool: "read", reason: "timeout", message: "Tool execution timed out after 3s", retryable: true, calls: 1,
			change: func(o *app.Options) { o.Config.Servers[0].Timeout = 3 * time.Second }}, // the tool fine has that much, too
		{name: "too large", fault: body(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":"` + strings.Repeat("x", 1<<20) + `"}}`), tool: "read", reason: "too_large", calls: 1,
			change: func(o *app.Options) { o.Config.Limits.ResultBytes = 1 << 16 }},
		{name: "too many requests", fault: status(429, "Retry-After", "0"), tool: "write", reason: "overloaded", retryable: true, calls: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			def := `,"annotations":{"readOnlyHint":true}`
			p := newPeer(textTool("write", object, "x"), textTool("read", object+def, "x"), textTool("again", object+`,"annotations":{"idempotentHint":true}`, "x"), textTool("fine", object, "fine"))
			var calls atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(raw))
				if bytes.Contains(raw, []byte(`"tools/call"`)) && !bytes.Contains(raw, []byte(`"fine"`)) {
					calls.Add(1)
					row.fault(w, r)
					return
				}
				p.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			m := scripted(t, "Done.", `[{"tool":"`+row.tool+`","arguments":{}},{"tool":"fine","arguments":{}}]`)
			r := start(t, func(o *app.Options) {
				model(o, m)
				o.Config.Servers = append(o.Config.Servers, server("peer", s.URL))
				if row.change != nil {
					row.change(o)
				}
			})
			c := r.dial("", nil)
			c.call("list_available_tools", `{}`, "") // so that annotations are known
			message := row.message
			if message == "" {
				message = "server peer is "
			}
			wantError(t, c.call("run", `{"tool":"peer__`+row.tool+`"}`, ""), -32000, message, fmt.Sprintf(`{"server":"peer","reason":%q,"retryable":%v}`, row.reason, row.retryable))
			if got := int(calls.Swap(0)); got != row.calls {
				t.Errorf("calls at the server: got %d, want %d", got, row.calls)
			}
			a := c.query(`{"query":"q","max_rounds":1}`)
			if got, want := brief(a), `s1=peer/`+row.tool+`{} `+row.reason+`; s2=peer/fine{}`; got != want {
				t.Errorf("steps: got %s, want %s", got, want)
			}
			if got := int(calls.Load()); got != row.calls || a.Steps[0].Attempts != row.calls {
				t.Errorf("calls of the step: got %d and attempts %d, want %d", got, a.Steps[0].Attempts, row.calls)
			}
			if row.message != "" && a.Steps[0].Error.Message != row.message {
				t.Errorf("step: got %q, want %q", a.Steps[0].Error.Message, row.message)
			}
			if !strings.Contains(a.Answer, row.tool) {
				t.Errorf("answer: got %q, want it to name %s", a.Answer, row.tool)
			}
		})
	}
}

// A cancelled request gets no answer, and its server is told with its own id and the reason.
func TestCancel(t *testing.T) {
	for transport, dial := range transports {
		t.Run(transport, func(t *testing.T) {
			started, cancelled := make(chan string, 4), make(chan string, 4)
			m := scripted(t, "never", `{"steps":[{"id":"a","tool":"hang","arguments":{"n":1}},{"id":"b","tool":"hang","arguments":{"n":2}}]}`)
			r, p := withPeer(t, m, nil, hangTool("hang", started, cancelled), echoTool("echo"))
			c := dial(t, r, "")
			for _, row := range []struct {
				tool, arguments string
				calls           int
			}{{"run", `{"tool":"hang"}`, 1}, {"peer__hang", `{}`, 1}, {"process_query", `{"query":"q"}`, 2}} {
				before := len(p.received("notifications/cancelled"))
				reply, id := c.start("tools/call", callParams(row.tool, row.arguments, ""))
				for range row.calls {
					<-started
				}
				began := time.Now()
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"changed my mind"}}`, id), nil)
				for range row.calls {
					<-cancelled
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("%s: the server was told after %v, want at once", row.tool, took)
				}
				mcptest.Eventually(t, "notifications/cancelled", func() bool { return len(p.received("notifications/cancelled")) == before+row.calls })
				for _, m := range p.received("notifications/cancelled")[before:] {
					if row.tool != "process_query" && !strings.Contains(string(m.Params), `"reason":"changed my mind"`) {
						t.Errorf("%s: the server got %s, want the reason in it", row.tool, m.Raw)
					}
				}
				if got := c.result(c.call("run", `{"tool":"echo"}`, "")); got.IsError {
					t.Errorf("%s: the next call: got %s, want a result", row.tool, got.text())
				}
				if !reply.open() {
					t.Errorf("%s: got an answer %s %s, want none", row.tool, reply.Result, reply.Error)
				}
			}
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}`, nil)
			mcptest.Eventually(t, "the warning", func() bool {
				return r.logs.line("Cannot route cancellation for unknown request nobody") != nil
			})
			c.wantNoStray()
		})
	}
}
