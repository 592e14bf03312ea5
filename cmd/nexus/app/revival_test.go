package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// Without a key no server hears of a client and nothing of a server is shown, on any surface. With a key the
// server gets the client's own handshake, also from a router that was started since.
func TestHandshakesReachServersWithAKey(t *testing.T) {
	p := newPeer(echoTool("echo"))
	url, state := p.serve(t).URL, t.TempDir()
	options := func(o *app.Options) {
		o.Config.State = state
		o.Config.Auth.APIKeys = keys("good")
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
	}
	r := start(t, options)
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"stranger","version":"1"}}}`
	hellos := func() (n int) {
		for _, m := range p.received("initialize") {
			if strings.Contains(string(m.Params), `"stranger"`) {
				n++
			}
		}
		return n
	}
	sessions := map[string]string{}
	for _, path := range []string{"/mcp", "/proxy/mcp", "/servers/peer/mcp", "/servers/none/mcp"} {
		resp, text := r.raw("POST", path, initialize, nil)
		sessions[path] = resp.Header.Get("Mcp-Session-Id")
		if resp.StatusCode != http.StatusOK || !strings.Contains(text, `"serverInfo":{"name":"agenticnexus-router","version":"1.2.3"}`) {
			t.Errorf("%s: got %d %s, want the router's own answer", path, resp.StatusCode, text)
		}
	}
	if hellos() > 0 || len(p.received("tools/list")) > 0 {
		t.Error("before a key: the server has heard of the client")
	}
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"api_key":"good"}}}`
	header := map[string]string{"Mcp-Session-Id": sessions["/servers/peer/mcp"]}
	for i := range 2 {
		if resp, text := r.raw("POST", "/servers/peer/mcp", call, header); resp.StatusCode != http.StatusOK || !strings.Contains(text, `"result"`) {
			t.Fatalf("router %d: got %d %s, want the result", i, resp.StatusCode, text)
		}
		if got := hellos(); got != i+1 {
			t.Errorf("router %d: got %d handshakes of the client, want %d", i, got, i+1)
		}
		r.stop(5 * time.Second)
		r = start(t, options)
	}
	if resp, _ := r.raw("POST", "/servers/none/mcp", call, map[string]string{"Mcp-Session-Id": sessions["/servers/none/mcp"]}); resp.StatusCode != http.StatusOK {
		t.Errorf("a server that is not there: got %d, want what every server that the key does not allow gets", resp.StatusCode)
	}
}

// A folder that cannot be used is one warning; sessions work as long as the router.
func TestNoStateFolder(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Config.State = "/dev/null/state" })
	if resp, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+fmt.Sprintf(initializeParams, "{}")+`}`, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("got %d %s, want a session", resp.StatusCode, text)
	}
	if got := strings.Count(r.logs.String(), "client sessions will not survive a restart"); got != 1 {
		t.Errorf("got %d warnings, want 1", got)
	}
}
