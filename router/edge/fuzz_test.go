package edge_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// picky is a handler that checks its exchanges.
type picky struct{ t *testing.T }

func (picky) Ended(string) {}

func (p picky) Serve(_ context.Context, x *edge.Exchange) {
	m := x.Message
	if again, err := jsonrpc.Parse(m.Raw); err != nil || again.ID != m.ID || again.Method != m.Method ||
		!bytes.Equal(again.Params, m.Params) {
		p.t.Errorf("the handler got %q, which differs from its parts", m.Raw)
	}
	if m.Method == "" || m.Method == "notifications/cancelled" {
		p.t.Errorf("the handler got %q, want no responses and cancellations", m.Raw)
	}
	if jsonrpc.Get(m.Params, "_meta", "api_key") != nil {
		p.t.Errorf("the handler got %q, want no key in it", m.Raw)
	}
	if m.ID != "" && !jsonrpc.ValidID([]byte(m.ID)) {
		p.t.Errorf("the handler got id %q", m.ID)
	}
	if strings.HasPrefix(m.Method, "tools/") {
		x.Notify(progress(nil, 1))
	}
	if x.Message.IsRequest() {
		x.Reply([]byte(`{"ok":true}`))
	}
}

func seeds(f *testing.F) {
	for _, s := range []string{
		call("1", "echo", "{}"), initialize("2025-11-25"), modernCall("echo"), cancelOf("1", `"x"`),
		"[" + call("1", "echo", "{}") + "," + call(`"1"`, "burst", "{}") + "]",
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/x"}`, "{", "[]", "",
		`{"jsonrpc":"2.0","id":"a","method":"ping","params":{"_meta":{"\u0061pi_key":"k","x":1}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"ping","params":{"_m\u0065ta":{"api_key":["k"]}}}`,
		"{\"jsonrpc\":\"2.0\",\n\"id\":0,\"method\":\"\\u0000\"}\n{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"a\"}",
		strings.Repeat("[", 100), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":null}}`,
	} {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(1))
	}
}

// FuzzPost sends any body; kind chooses session, version and what is accepted.
func FuzzPost(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		e := edge.New(edge.Options{})
		defer stop(t, e)
		h := e.Streamable(picky{t}, nil)
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader(body))
		if kind&1 != 0 {
			version := []string{"2025-03-26", "2025-11-25"}[kind>>1&1]
			r.Header.Set("Mcp-Session-Id", direct(h, "POST", initialize(version), nil).Header().Get("Mcp-Session-Id"))
		} else if kind&2 != 0 {
			r.Header.Set("MCP-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", "echo")
		}
		if kind&4 != 0 {
			r.Header.Set("Accept", "application/json")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Body.String()
		switch kind := w.Header().Get("Content-Type"); {
		case kind == "application/json":
			equal(t, fmt.Sprintf("answer to %q", body), jsonrpc.Valid(w.Body.Bytes()), nil)
		case kind == "text/event-stream":
			ev := readEvents(t, strings.NewReader(got))
			for {
				f, more := ev.next()
				if !more {
					break
				}
				if err := jsonrpc.Valid([]byte(f.data)); err != nil || f.event != "message" {
					t.Errorf("answer to %q: got event %+v", body, f)
				}
			}
		case got != "" || w.Code != http.StatusAccepted && w.Code != http.StatusNoContent:
			t.Errorf("answer to %q: got %d %q without a type", body, w.Code, got)
		}
		if w.Code >= 500 {
			t.Errorf("answer to %q: got %d %s", body, w.Code, got)
		}
		if e.Tracked() != 0 {
			t.Errorf("after %q: got %d requests in flight, want 0", body, e.Tracked())
		}
	})
}

// FuzzStdio sends any input; every line of output must be a message.
func FuzzStdio(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte, _ uint8) {
		e := edge.New(edge.Options{})
		defer stop(t, e)
		var out bytes.Buffer
		equal(t, fmt.Sprintf("ServeStdio with %q", in), e.ServeStdio(t.Context(), bytes.NewReader(in), &out, picky{t}), nil)
		if out.Len() == 0 {
			return
		}
		lines := strings.Split(out.String(), "\n")
		if last := lines[len(lines)-1]; last != "" {
			t.Errorf("output for %q ends with %q, want a newline", in, last)
		}
		for _, line := range lines[:len(lines)-1] {
			equal(t, fmt.Sprintf("output for %q", in), jsonrpc.Valid([]byte(line)), nil)
		}
	})
}
