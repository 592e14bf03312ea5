package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A client without a key reaches no handler and takes no place. Once it sends a key, the handler is served its
// handshake before anything else, and once.
func TestUnauthenticated(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t), Name: "agenticnexus-router", Version: "9",
		Limits: limit.Config{Sessions: 4}})
	for range 50 {
		w.open("2025-06-18")
	}
	status, h, body := w.post(initialize("2025-03-26"), nil)
	want := `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-03-26","capabilities":{"tools":` +
		`{"listChanged":true}},` +
		`"serverInfo":{"name":"agenticnexus-router","version":"9"}}}`
	if status != 200 || body != want {
		t.Errorf("initialize: got %d %s, want %s", status, body, want)
	}
	s := header{"Mcp-Session-Id": h.Get("Mcp-Session-Id")}
	for body, want := range map[string]int{
		initialized:                          202,
		request("1", "ping", ""):             200,
		`[` + request("1", "ping", "") + `]`: 200,
	} {
		if status, _, got := w.post(body, s); status != want {
			t.Errorf("%s: got %d %s, want %d", body, status, got, want)
		}
	}
	if status, _, _ := w.post(request("1", "ping", ""), header{"Mcp-Session-Id": "forged"}); status != 404 {
		t.Errorf("ping in a session that is not there: got %d, want 404", status)
	}
	if got := w.srv.all(); len(got) > 0 || w.edge.Sessions() != 0 || w.srv.ends() != 0 {
		t.Errorf("before a key: got %q served and %d sessions, want none", got, w.edge.Sessions())
	}
	for range 2 {
		_, _, body = w.post(request("1", "seen", `"api_key":"key-ann"`), s)
		for _, part := range []string{`"Version":"2025-03-26"`, `"Caller":"key:ann"`, `"Capabilities":{"sampling":{}}`,
			`"Info":{"name":"c","version":"1"}`} {
			if !strings.Contains(body, part) {
				t.Errorf("with a key: got %s, want %s in it", body, part)
			}
		}
	}
	mcptest.Eventually(t, "the handler knows all", func() bool { return len(w.srv.all()) == 2 })
	if got := w.srv.all(); fmt.Sprint(got) != "[initialize:2025-03-26 notifications/initialized]" {
		t.Errorf("with a key: got %q served, want the handshake once", got)
	}
}

// If a client sends its key only in requests, its notification is served with the next request.
func TestInitializedWithoutKey(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	_, h, _ := w.post(strings.Replace(initialize("2025-06-18"), `"clientInfo"`,
		`"_meta":{"api_key":"key-ann"},"clientInfo"`, 1), nil)
	s := header{"Mcp-Session-Id": h.Get("Mcp-Session-Id")}
	if status, _, _ := w.post(initialized, s); status != 202 {
		t.Errorf("initialized: got %d, want 202", status)
	}
	if got := w.srv.all(); fmt.Sprint(got) != "[initialize:2025-06-18]" {
		t.Errorf("without the key: got %q served, want initialize alone", got)
	}
	w.post(call("1", "echo", "{}"), header{"Mcp-Session-Id": s["Mcp-Session-Id"], "X-API-Key": "key-ann"})
	w.post(initialized, s) // again
	w.post(call("2", "echo", "{}"), header{"Mcp-Session-Id": s["Mcp-Session-Id"], "X-API-Key": "key-ann"})
	if got, want := fmt.Sprint(w.srv.all()), "[initialize:2025-06-18 notifications/initialized tools/call:echo tools/"+
		"call:echo]"; got != want {
		t.Errorf("got %s served, want %s", got, want)
	}
}

// On HTTP+SSE the edge alone answers messages without a key, and its response cannot pass for that to a request of the
// session's owner.
func TestUnauthenticatedOnSSE(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	ann := header{"X-API-Key": "key-ann"}
	c := w.sse(ann)
	c.post(initialize("2024-11-05"), nil)
	if got := c.events.message(); !strings.Contains(got, `"id":"init","result":{"protocolVersion":"2024-11-05"`) {
		t.Errorf("initialize: got %s, want the router's own answer", got)
	}
	c.post(initialized, nil)
	if got := w.srv.all(); len(got) > 0 {
		t.Errorf("before a key: got %q served, want nothing", got)
	}
	c.post(call("1", "hold", "{}"), ann)
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.all()) == 3 })
	if got, want := fmt.Sprint(w.srv.all()), "[initialize:2024-11-05 notifications/initialized tools/call:"+
		"hold]"; got != want {
		t.Errorf("got %s served, want %s", got, want)
	}
	for _, body := range []string{request("1", "ping", ""), request("1", "tools/call", `"api_key":"key-eve"`)} {
		if status, got := c.post(body, nil); status != 400 {
			t.Errorf("%s: got %d %s, want 400", body, status, got)
		}
	}
	for _, body := range []string{cancelOf("1", `"x"`), `{"jsonrpc":"2.0","id":"nexus-1","result":{}}`} {
		if status, got := c.post(body, nil); status != 401 {
			t.Errorf("%s: got %d %s, want 401", body, status, got)
		}
	}
	close(w.srv.release)
	if got, want := c.events.message(), `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
