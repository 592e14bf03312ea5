package tests

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A tool that its server adds silently, though it declares that it announces changes, is found by name, also where
// somebody else has found it before in another session with the server.
func TestSilentTool(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	server := &mcptest.Server{OnMessage: func(_ context.Context, m mcptest.Message, send func(string)) bool {
		if m.Method != "tools/list" || !silent.Load() {
			return false
		}
		send(m.Response(`{"tools":` + strings.ReplaceAll(mcptest.Tools, `"echo"`, `"added"`) + `}`))
		return true
	}}
	h := httptest.NewServer(server)
	defer h.Close()
	defer h.CloseClientConnections()
	r := serve(t, `mcpServers: {work: {url: "`+h.URL+`"}}`)
	if got := r.run("work__echo", map[string]any{}); got.IsError { // the router has a list now
		t.Fatalf("got %s, want a result", got.text())
	}
	r.call("list_available_tools", map[string]any{})
	silent.Store(true)
	client, err := mcptest.Dial(t.Context(), http.DefaultClient, r.url+"/proxy/mcp")
	if err != nil {
		t.Fatal(err)
	}
	if got := client.Call(t.Context(), "work__added", `{}`); got.Outcome() != "result" {
		t.Fatalf("proxy: got %s %s, want a result", got.Outcome(), got.Raw)
	}
	plan := map[string]any{"steps": []any{map[string]any{"id": "a", "tool": "work__added", "arguments": map[string]any{"v": 1}}}}
	got := decode[answer](t, r.call("process_query", map[string]any{"query": "Do it.", "plan": plan}).StructuredContent)
	if len(got.Steps) != 1 || !got.Steps[0].Success {
		t.Errorf("plan: got %+v, want the tool called", got)
	}
}
