package edge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// largeInitialize is an initialize whose client describes itself at length.
func largeInitialize(size int) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"` + strings.Repeat("x", size) + `","version":"1"}}}`
}

// What is kept of initialize is charged to the caller until the session ends, and leaves room for its messages.
func TestInitializeIsCharged(t *testing.T) {
	w := newWire(t, edge.Options{})
	const size = 60 << 10
	var sessions []string
	for {
		status, h, body := w.post(largeInitialize(size), nil)
		if status != 200 {
			if status != 503 || !strings.Contains(body, tooMuch) {
				t.Fatalf("got %d %s, want 503 and overloaded", status, body)
			}
			break
		}
		if sessions = append(sessions, h.Get("Mcp-Session-Id")); len(sessions)*size > own {
			t.Fatalf("got %d sessions with %d KiB each, want a refusal", len(sessions), size>>10)
		}
	}
	if held := w.edge.Held(); held < len(sessions)*size || held > own/2 {
		t.Errorf("got %d bytes held for %d sessions, want %d at least, and half of %d at most",
			held, len(sessions), len(sessions)*size, own)
	}
	if n := w.edge.Sessions(); n != len(sessions) {
		t.Errorf("got %d sessions after the refusal, want %d", n, len(sessions))
	}
	if status, _, body := w.post(initialize("2025-06-18"), nil); status != 200 {
		t.Errorf("a client that says little about itself: got %d %s, want 200", status, body)
	}
	if _, _, got := w.post(call("1", "big", fmt.Sprintf(`{"n":%d}`, 30<<20)), nil); !strings.Contains(got, `"result"`) {
		t.Errorf("a result of 30 MiB: got %.200s, want a result", got)
	}
	again := header{"Mcp-Session-Id": sessions[0]}
	if status, _, body := w.post(largeInitialize(size), again); status != 200 {
		t.Errorf("initialize again in a session: got %d %s, want 200, it takes the place of the first", status, body)
	}
	for _, id := range sessions {
		w.do(context.Background(), "DELETE", "/mcp", "", header{"Mcp-Session-Id": id}).Body.Close()
	}
	mcptest.Eventually(t, "what the sessions held is released", func() bool { return w.edge.Held() == 0 })
	if status, _, body := w.post(largeInitialize(size), nil); status != 200 {
		t.Errorf("after the sessions have ended: got %d %s, want 200", status, body)
	}
}
