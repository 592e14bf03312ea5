package app_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// The POST that searches answers with a stream of two events.
func TestSearchStream(t *testing.T) {
	r, _ := withPeer(t, nil, nil, textTool("send_mail", `"description":"Send an e-mail message",`+object, "sent"))
	body := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":"send mail"}}}`
	resp, text := r.raw("POST", "/mcp", body, map[string]string{"Accept": "application/json, text/event-stream"})
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	if len(events) != 2 || events[0] != "event: message\ndata: "+`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` || !strings.HasPrefix(events[1], "event: message\ndata: "+`{"jsonrpc":"2.0","id":"x","result":{`) {
		t.Errorf("got %q, want list_changed and then the response", text)
	}
	// Callers without a session share what was found, by their address.
	if _, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); !strings.Contains(text, `"peer__send_mail"`) {
		t.Errorf("tools/list without a session: got %s, want peer__send_mail in it", text)
	}
	resp, text = r.raw("POST", "/mcp", body, map[string]string{"Accept": "application/json"})
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") || !strings.Contains(text, `"is_error":false`) {
		t.Errorf("a client that takes no stream: got %s %s, want the response as JSON", resp.Header.Get("Content-Type"), text)
	}
}

// What a caller found with a key stays with the key.
func TestSearchByKey(t *testing.T) {
	r, _ := withPeer(t, nil, func(o *app.Options) { o.Config.Auth.APIKeys = keys("one", "two") },
		textTool("weather", `"description":"Weather forecast of a city",`+object, "sunny"))
	post := func(key, body string) string {
		_, text := r.raw("POST", "/mcp", body, map[string]string{"X-API-Key": key})
		return text
	}
	post("one", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":"weather"}}}`)
	for key, want := range map[string]bool{"one": true, "two": false} {
		if got := post(key, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); strings.Contains(got, `"peer__weather"`) != want {
			t.Errorf("key %s: got %s, want peer__weather in it: %t", key, got, want)
		}
	}
}
