package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// Spans of prompts and resources name them as the conventions say; a URI counts as content. Both sides have the code of
// an error.
func TestTraceOfPromptsAndResources(t *testing.T) {
	s := sdkServer()
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///a", Text: "hi"}}}, nil
	})
	behind := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(behind.Close)
	for _, content := range []bool{false, true} {
		sink := collect(t)
		r := start(t, func(o *app.Options) {
			o.Config.Telemetry.Content = content
			o.Config.Servers = append(o.Config.Servers, server("sdk", behind.URL+"/mcp"))
		})
		for _, request := range []string{
			`"prompts/get","params":{"name":"sdk__greet"}`, `"prompts/get","params":{"name":"sdk__none"}`,
			`"resources/read","params":{"uri":"sdk__file:///a?token=s3cr3t"}`,
		} {
			r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":`+request+`}`, nil)
		}
		r.stop(deadline)
		want := `prompts/get sdk__greet (server) name=sdk__greet
  prompts/get greet (client) name=greet
prompts/get sdk__none (server) name=sdk__none status_code=-32602 ERROR -32602
  prompts/get none (client) name=none status_code=-32602 ERROR -32602
resources/read (server) uri=sdk__file:///a?token=[redacted] status_code=-32602 ERROR -32602
  resources/read (client) uri=file:///a?token=[redacted] status_code=-32602 ERROR -32602
`
		if !content {
			want = strings.NewReplacer(" uri=sdk__file:///a?token=[redacted]", "", " uri=file:///a?token=[redacted]", "").Replace(want)
		}
		if got := sink.Tree(nil, "gen_ai.prompt.name", "gen_ai.tool.name", "mcp.resource.uri", "rpc.response.status_code"); got != want {
			t.Errorf("content %t: got\n%swant\n%s", content, got, want)
		}
	}
}

// A call that ends with the time of its query has timed out, in its span as in that of its step.
func TestTraceOfAQueryThatIsLate(t *testing.T) {
	s := collect(t)
	started, cancelled := make(chan string, 1), make(chan string, 1)
	m := scripted(t, "Late.", `[{"tool":"hang","arguments":{}}]`)
	r, _ := withPeer(t, m, func(o *app.Options) { o.Config.Query.Timeout = 500 * time.Millisecond }, hangTool("hang", started, cancelled))
	r.dial("", nil).query(`{"query":"hang","max_rounds":1}`)
	<-cancelled
	_, metrics := r.raw("GET", "/metrics", "", nil)
	r.stop(deadline)
	for _, span := range s.Spans() {
		if strings.HasSuffix(span.Name, " hang") && span.Attribute("error.type") != "timeout" {
			t.Errorf("%s: got the type %q, want timeout", span.Name, span.Attribute("error.type"))
		}
	}
	if want := `mcp_client_operation_duration_seconds_count{error_type="timeout",gen_ai_tool_name="hang",`; !strings.Contains(metrics, want) {
		t.Errorf("/metrics lacks %s", want)
	}
}

// A client that closes its connection has cancelled its request. That is no failure of the router.
func TestClosedConnectionIsACancellation(t *testing.T) {
	for name, row := range map[string]struct {
		header map[string]string
		meta   string
	}{
		"no session": {map[string]string{}, "{}"},
		"2026-07-28": {map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"},
			`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := collect(t)
			started, cancelled := make(chan string, 1), make(chan string, 1)
			m := scripted(t, "Never.", `[{"tool":"hang","arguments":{}}]`)
			r, _ := withPeer(t, m, nil, hangTool("hang", started, cancelled))
			for _, call := range []struct{ path, tool, arguments string }{
				{"/mcp", "process_query", `{"query":"hang"}`}, {"/proxy/mcp", "peer__hang", `{}`},
			} {
				ctx, hangUp := context.WithCancel(t.Context())
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.base+call.path,
					strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+callParams(call.tool, call.arguments, row.meta)+`}`))
				for name, value := range row.header {
					req.Header.Set(name, value)
				}
				req.Header.Set("Mcp-Name", call.tool)
				req.Header.Set("Content-Type", "application/json")
				transport, ended := &http.Transport{}, make(chan struct{})
				go func() {
					defer close(ended)
					if resp, err := transport.RoundTrip(req); err == nil {
						resp.Body.Close()
					}
				}()
				<-started
				hangUp()
				<-ended
				<-cancelled
				transport.CloseIdleConnections()
			}
			r.stop(deadline)
			if line := r.logs.want(t, "Query failed"); line["outcome"] != "cancelled" || line["level"] != "INFO" {
				t.Errorf("log: got %v, want a cancelled query at level INFO", line)
			}
			failed := 0
			for _, span := range s.Spans() {
				if got := span.Attribute("error.type"); got != "" {
					failed++
					if got != "cancelled" {
						t.Errorf("%s: got the type %s, want cancelled", span.Name, got)
					}
				}
			}
			if failed != 6 {
				t.Errorf("got %d spans of cancelled work, want those of 2 requests, a query, a step and 2 attempts", failed)
			}
		})
	}
}

// A wrong key counts as refused wherever it is sent.
func TestMetricsOfWrongKeys(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Auth.APIKeys = keys("right")
	})
	for _, request := range []struct{ method, path, body string }{
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`}, {"GET", "/metrics", ""}, {"GET", "/healthz", ""}, {"GET", "/ui/", ""},
	} {
		r.raw(request.method, request.path, request.body, bearer("wrong"))
	}
	const wrong = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"health_check","arguments":{},"_meta":{"api_key":"wrong"}}}`
	r.raw("POST", "/mcp", wrong, nil)
	r.raw("POST", "/mcp", "["+wrong+"]", map[string]string{"Mcp-Protocol-Version": "2025-03-26"})
	_, got := r.raw("GET", "/metrics", "", bearer("right"))
	if want := `nexus_refused_requests_total{cause="unauthorized"} 6`; !strings.Contains(got, want) {
		t.Errorf("/metrics lacks %s", want)
	}
}
