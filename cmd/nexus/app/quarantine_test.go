package app_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// A definition that is of no use costs its server nothing; who calls the tool learns why, on every way to it.
func TestQuarantinedTool(t *testing.T) {
	r, _ := withPeer(t, nil, func(*app.Options) {}, echoTool("fine"), peerTool{"odd", `"inputSchema":"none"`, nil},
		peerTool{"even", `"inputSchema":7`, nil})
	c := r.dial("", nil)
	if got := c.call("run", `{"tool":"fine"}`, ""); got.Error != nil {
		t.Errorf("another tool of the server: got %s, want an answer", got.Error)
	}
	const reason, why = `"data":{"server":"peer","reason":"quarantined","retryable":false}`, "odd: its inputSchema is not an object"
	for name, answer := range map[string]func() string{
		"run, bare":      func() string { return string(c.call("run", `{"tool":"odd"}`, "").Error) },
		"run, full name": func() string { return string(c.call("run", `{"tool":"peer__odd"}`, "").Error) },
		"hidden":         func() string { return string(c.call("peer__odd", `{}`, "").Error) },
		"proxy": func() string {
			_, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peer__odd"}}`, nil)
			return text
		},
		"one server": func() string {
			_, text := r.raw("POST", "/servers/peer/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"odd"}}`, nil)
			return text
		},
	} {
		if got := answer(); !strings.Contains(got, reason) || !strings.Contains(got, why) || !strings.Contains(got, "-32000") {
			t.Errorf("%s: got %s, want -32000 with %s and %q", name, got, reason, why)
		}
	}
	query := c.result(c.call("process_query", `{"query":"q","plan":[{"tool":"odd","arguments":{}}]}`, ""))
	if got := string(query.StructuredContent); !strings.Contains(got, `"reason":"quarantined"`) {
		t.Errorf("process_query: got %s, want a step that failed as quarantined", got)
	}
	health := string(c.result(c.call("health_check", `{}`, "")).StructuredContent)
	if !strings.Contains(health, `,{"tool":"odd","reason":"its inputSchema is not an object"}]`) || !strings.Contains(health, `"status":"connected"`) {
		t.Errorf("health_check: got %s, want the tool quarantined and the server connected", health)
	}
	_, now := r.raw("GET", "/ui/api/now", "", nil)
	if want := `"text":"2 tools are quarantined, even among them: its inputSchema is not an object"`; strings.Count(now, "quarantined") != 1 || !strings.Contains(now, want) {
		t.Errorf("the page: got %s, want one entry with %s", now, want)
	}
}
