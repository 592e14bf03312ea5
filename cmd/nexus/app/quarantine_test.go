package app_test

import (
	"strings"
	"testing"
)

// A definition that is of no use costs its server nothing; who calls the tool learns why, on every way to it.
func TestQuarantinedTool(t *testing.T) {
	r, _ := withPeer(t, nil, nil, echoTool("fine"), peerTool{"odd", `"inputSchema":"none"`, nil},
		peerTool{"even", `"inputSchema":7`, nil})
	c := r.dial("", nil)
	if got := c.call("run", `{"tool":"fine"}`, ""); got.Error != nil {
		t.Errorf("another tool of the server: got %s, want an answer", got.Error)
	}
	const reason, why = `"data":{"server":"peer","reason":"quarantined","retryable":false}`, "odd: its inputSchema is not an object"
	_, proxied := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peer__odd"}}`, nil)
	for name, got := range map[string]string{"run": string(c.call("run", `{"tool":"odd"}`, "").Error), "proxy": proxied} {
		if !strings.Contains(got, reason) || !strings.Contains(got, why) || !strings.Contains(got, "-32000") {
			t.Errorf("%s: got %s, want -32000 with %s and %q", name, got, reason, why)
		}
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
