package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// slowTool answers once it is told to.
func slowTool(started chan string, goOn chan struct{}) peerTool {
	return peerTool{"slow", object, func(c *peerCall) (string, string) {
		started <- c.arguments
		select {
		case <-goOn:
			return textResult("finished"), ""
		case <-c.ctx.Done():
			return "", ""
		}
	}}
}

func TestOps(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Servers = append(o.Config.Servers, server("down", "http://127.0.0.1:1/mcp"))
	})
	r.dial("", nil).query(`{"query":"15% of 200"}`)
	for _, row := range []struct {
		method, path string
		status       int
		kind, want   string
	}{
		{"GET", "/livez", 200, "text/plain", "ok"},
		{"GET", "/readyz", 200, "text/plain", "ok"},
		{"GET", "/healthz", 200, "application/json", `"search"`},
		{"HEAD", "/healthz", 200, "application/json", ""},
		{"GET", "/metrics", 200, "text/plain", "nexus_query_duration_seconds"},
		{"GET", "/metrics", 200, "text/plain", "nexus_sessions"},
		{"GET", "/", 200, "text/plain", "/servers/{name}/mcp "},
		{"POST", "/", 405, "", ""},
		{"POST", "/livez", 405, "", ""},
		{"GET", "/nothing", 404, "", ""},
	} {
		resp, text := r.raw(row.method, row.path, "", nil)
		if resp.StatusCode != row.status || !strings.HasPrefix(resp.Header.Get("Content-Type"), row.kind) || !strings.Contains(text, row.want) {
			t.Errorf("%s %s: got %d %s %.200s, want %d %s with %q", row.method, row.path, resp.StatusCode, resp.Header.Get("Content-Type"), text, row.status, row.kind, row.want)
		}
	}
	mcptest.Eventually(t, "the state of down", func() bool {
		resp, text := r.raw("GET", "/healthz", "", nil)
		var h struct {
			Status  string
			Servers map[string]downstream.Status
		}
		if err := json.Unmarshal([]byte(text), &h); err != nil || resp.StatusCode != 200 {
			t.Fatalf("/healthz: got %d %s, want 200 and JSON", resp.StatusCode, text)
		}
		return h.Status == "degraded" && h.Servers["down"].Status == downstream.StateDisconnected
	})
}

// Calls in flight finish; until then the App is alive, not ready, and takes no new work.
func TestGracefulShutdown(t *testing.T) {
	for transport, dial := range transports {
		t.Run(transport, func(t *testing.T) {
			started, goOn := make(chan string, 4), make(chan struct{})
			r, _ := withPeer(t, nil, nil, slowTool(started, goOn))
			c, late := dial(t, r, ""), r.dial("", nil)
			run, _ := c.start("tools/call", callParams("run", `{"tool":"slow"}`, ""))
			query, _ := c.start("tools/call", callParams("process_query", `{"query":"q","plan":[{"tool":"slow","arguments":{}}]}`, `{"progressToken":1}`))
			<-started
			<-started
			stopped := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				defer cancel()
				stopped <- r.Stop(ctx)
			}()
			mcptest.Eventually(t, "/readyz to tell", func() bool {
				resp, _ := r.raw("GET", "/readyz", "", nil)
				return resp.StatusCode == http.StatusServiceUnavailable
			})
			r.logs.want(t, "Starting graceful shutdown...")
			if resp, _ := r.raw("GET", "/livez", "", nil); resp.StatusCode != 200 {
				t.Errorf("/livez: got %d, want 200", resp.StatusCode)
			}
			refused := `"message":"The router is shutting down","data":{"server":"","reason":"unavailable"`
			mcptest.Eventually(t, "new work to be refused", func() bool { return strings.Contains(string(late.call("run", `{"tool":"slow"}`, "").Error), refused) })
			if got := c.call("run", `{"tool":"slow"}`, ""); !strings.Contains(string(got.Error), refused) {
				t.Errorf("new work of the same session: got %s %s, want it refused", got.Result, got.Error)
			}
			resp, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
			if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, refused) {
				t.Errorf("new work without a session: got %d %s, want 503", resp.StatusCode, text)
			}
			select {
			case err := <-stopped:
				t.Fatalf("Stop: returned %v with calls in flight", err)
			default:
			}
			close(goOn)
			if got := c.result(c.wait(run)).text(); got != "finished" {
				t.Errorf("run: got %s, want finished", got)
			}
			if got := c.result(c.wait(query)); got.IsError || !strings.Contains(got.text(), "finished") {
				t.Errorf("process_query: got %s, want finished", got.text())
			}
			if err := <-stopped; err != nil {
				t.Errorf("Stop: got %v, want nil", err)
			}
			if r.logs.line("Shutdown timeout, forcing exit") != nil {
				t.Error("log: got the timeout, want none")
			}
			if _, err := http.Get(r.base + "/livez"); err == nil {
				t.Error("after Stop: got an answer, want the port closed")
			}
		})
	}
}

// What does not finish within the grace period is cancelled, and Stop returns.
func TestForcedShutdown(t *testing.T) {
	started, cancelled := make(chan string, 4), make(chan string, 4)
	r, _ := withPeer(t, nil, nil, hangTool("hang", started, cancelled))
	r.ends = app.ErrForced
	c := r.dial("", nil)
	run, _ := c.start("tools/call", callParams("run", `{"tool":"hang"}`, ""))
	<-started
	began := time.Now()
	r.stop(200 * time.Millisecond)
	if took := time.Since(began); took < 200*time.Millisecond || took > 15*time.Second {
		t.Errorf("Stop: got back after %v, want a little more than 200 ms", took)
	}
	<-cancelled
	r.logs.want(t, "Shutdown timeout, forcing exit")
	if run.open() {
		c.wait(run)
	}
	if run.Result != nil {
		t.Errorf("run: got a result %s, want an error", run.Result)
	}
	r.stop(time.Second) // may be called again
}

// Every version that a client may ask for in the handshake is answered as the contract says.
func TestVersions(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2024-11": "2025-11-25", "1.0": "2025-11-25", "2026-07-28": "2025-11-25", "": "2025-11-25",
	} {
		var result struct {
			ProtocolVersion string
			ServerInfo      struct{ Name, Version string }
			Capabilities    struct{ Tools struct{ ListChanged bool } }
		}
		reply := r.anonymous(nil).do("initialize", `{"protocolVersion":`+quote(asked)+`,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
		if err := json.Unmarshal(reply.Result, &result); err != nil {
			t.Errorf("version %q: got %s, want a result", asked, reply.Error)
			continue
		}
		if result.ProtocolVersion != want || result.ServerInfo.Name != "agenticnexus-router" || result.ServerInfo.Version != "1.2.3" || !result.Capabilities.Tools.ListChanged {
			t.Errorf("version %q: got %s, want %s by agenticnexus-router with listChanged", asked, reply.Result, want)
		}
	}
	reply := r.dial("", nil).do("resources/list", `{}`)
	wantError(t, reply, -32601, "", "")
}
