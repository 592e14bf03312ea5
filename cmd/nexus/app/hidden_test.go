package app_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// hiddenText has a character of each kind, as JSON, and hiddenRunes has them all.
const (
	hiddenText  = `\u200b\u202e\udb40\udc41\u001b`
	hiddenRunes = "\u200b\u202e\U000e0041\x1b"
)

// wantVisible fails the test if a text has hidden characters, raw or escaped in JSON.
func wantVisible(t *testing.T, what, text string) {
	t.Helper()
	lower := strings.ToLower(text)
	for _, escaped := range []string{`\u200b`, `\u202e`, `\udb40`, `\u001b`} {
		if strings.Contains(lower, escaped) {
			t.Errorf("%s: got %s, want no hidden characters", what, text)
			return
		}
	}
	if strings.ContainsAny(text, hiddenRunes) {
		t.Errorf("%s: got %q, want no hidden characters", what, text)
	}
}

// Hidden characters in names and descriptions reach neither models nor people. The proxy surface keeps them, and calls
// by the name that is shown reach the tool.
func TestHiddenCharacters(t *testing.T) {
	m := scripted(t, "done", `[{"tool":"look_up","arguments":{}}]`)
	def := `"title":"T` + hiddenText + `","description":"Finds` + hiddenText + ` an employee.","inputSchema":{"type":"object","properties":{"n":{"type":"string","description":"The` +
		hiddenText + ` name"}}},"annotations":{"readOnlyHint":true}`
	hidden := "look" + hiddenRunes + "\n_up"
	r, _ := withPeer(t, m, func(o *app.Options) {
		o.Config.Auth.APIKeys = keys("all", "few")
		o.Config.Auth.APIKeys[1].Tools = auth.Filter{Allow: []string{"peer__echo"}}
	}, textTool(hidden, def, "found"), echoTool("echo"))
	c := r.dial("", bearer("all"))
	for _, call := range [][2]string{{"list_available_tools", `{}`}, {"search_available_tools", `{"query":"find an employee"}`}, {"health_check", `{}`}, {"process_query", `{"query":"find the employee"}`}} {
		wantVisible(t, call[0], string(c.call(call[0], call[1], "").Result))
	}
	wantVisible(t, "tools/list of /mcp after a search", string(c.do("tools/list", `{}`).Result))
	for _, request := range m.Requests() {
		wantVisible(t, "prompt", string(request.Body))
	}
	for _, path := range []string{"/ui/api/tools", "/ui/api/tool?server=peer&tool=look_up", "/ui/api/servers", "/ui/api/now"} {
		_, body := r.raw("GET", path, "", bearer("all"))
		wantVisible(t, path, body)
		if strings.Contains(path, "tool=") && !strings.Contains(body, `"name":"peer__look_up"`) {
			t.Errorf("%s: got %s, want the tool", path, body)
		}
	}
	for _, name := range []string{"look_up", "peer__look_up", "peer.look_up", hidden, "peer__" + hidden} {
		if got := string(c.call("run", `{"tool":`+quote(name)+`}`, "").Result); got != textResult("found") {
			t.Errorf("run %q: got %s, want the result", name, got)
		}
	}
	if _, got := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer("all")); !strings.Contains(got, `Finds`+hiddenText) {
		t.Errorf("the proxy: got %s, want the bytes of the server", got)
	}
	const findings = `"findings":[{"tool":"look_up","kind":"zero_width"},{"tool":"look_up","kind":"bidirectional"},{"tool":"look_up","kind":"tag"},{"tool":"look_up","kind":"control"}]`
	if got := string(c.result(c.call("health_check", `{}`, "")).StructuredContent); !strings.Contains(got, findings) {
		t.Errorf("health_check: got %s, want %s", got, findings)
	}
	few := r.dial("", bearer("few"))
	if got := string(few.result(few.call("health_check", `{}`, "")).StructuredContent); strings.Contains(got, "findings") {
		t.Errorf("a key that may not use the tool: got %s, want no findings", got)
	}
}
