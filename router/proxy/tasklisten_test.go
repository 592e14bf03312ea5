package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// What one server announces while another has not yet answered is charged to the caller.
func TestListenTasks_ChargesWhatWaits(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		s.config.ListDeadline = time.Minute
		for _, name := range []string{"talks", "silent"} {
			server := &mcptest.Server{Version: mcptest.Modern}
			server.OnMessage = func(ctx context.Context, m mcptest.Message, send func(string)) bool {
				ids := string(jsonrpc.Get(m.Params, "notifications", "taskIds"))
				if ids == "" {
					return false
				}
				if name == "talks" {
					meta := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(m.ID) + `}`
					send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `,"notifications":{"taskIds":` + ids + `}}}`)
					for range 2 {
						send(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{` + meta + `,"taskId":` + strings.Trim(ids, "[]") + `,"status":"completed","result":{"text":"` + strings.Repeat("x", 1<<20) + `"}}}`)
					}
				}
				<-ctx.Done()
				return true
			}
			h := httptest.NewServer(server)
			t.Cleanup(h.Close)
			t.Cleanup(h.CloseClientConnections)
			s.downstream.Servers = append(s.downstream.Servers, downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: h.URL})
		}
	})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := &mcptest.Client{URL: w.url + "/proxy/mcp", Version: mcptest.Modern, Capabilities: mcptest.Tasks, HTTP: &http.Client{Transport: transport}}
	var ids []string
	for _, name := range []string{"talks", "silent"} {
		task, err := c.Begin(t.Context(), "tools/call", `{"name":"`+name+`__slow_compute","arguments":{"seconds":60}}`)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprintf("%q", task.ID))
	}
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := c.Post(ctx, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":[`+strings.Join(ids, ",")+`]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+mcptest.Tasks+`}}}`); err == nil {
			resp.Body.Close()
		}
	}()
	held := func(what string, enough func(n int) bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !enough(w.edge.Held()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: got %d bytes held", what, w.edge.Held())
			}
		}
	}
	held("while it waits", func(n int) bool { return n > 1<<20 })
	hangUp()
	<-ended
	held("in the end", func(n int) bool { return n == 0 })
}
