package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// The router profile advertises changes of its list only to clients that can be told of them.
func TestRouterCapabilities(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		_, text := r.raw("POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, version), nil)
		if !strings.Contains(text, `"capabilities":{"tools":{"listChanged":true}}`) {
			t.Errorf("%s: got %s, want tools that change and nothing else", version, text)
		}
	}
	_, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`,
		map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"})
	if !strings.Contains(text, `"capabilities":{"tools":{}}`) {
		t.Errorf("2026-07-28: got %s, want tools and nothing else", text)
	}
	if !strings.Contains(text, `"io.modelcontextprotocol/serverInfo":{"name":"agenticnexus-router"`) {
		t.Errorf("2026-07-28: got %s, want serverInfo in _meta", text)
	}
}
