package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Whoever runs a tool that is not there learns what may be meant, as far as the key allows.
func TestRun_UnknownTool(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Auth.APIKeys = []auth.KeyConfig{{Name: "all", Key: redact.Secret("all")}, {Name: "few", Key: redact.Secret("few"), Servers: []string{"search"}}}
	})
	all, few := r.dial("", map[string]string{"X-API-Key": "all"}), r.dial("", map[string]string{"X-API-Key": "few"})
	for _, row := range []struct {
		c          *client
		tool, want string
	}{
		{all, "calculat", "Unknown tool: calculat; did you mean calculate?"},
		{all, "calculator.claculate", "Unknown tool: calculator.claculate; did you mean calculate?"},
		{all, "Query_HR", "Unknown tool: Query_HR; did you mean query_hr?"},
		{all, "frobnicate", "Unknown tool: frobnicate"},
		{few, "calculat", "Unknown tool: calculat"},
		{few, "websearch", "Unknown tool: websearch; did you mean web_search?"},
	} {
		reply := row.c.call("run", `{"tool":`+quote(row.tool)+`}`, "")
		var got struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal(reply.Error, &got); err != nil || got.Code != -32602 || got.Message != row.want {
			t.Errorf("run %s: got %s %s, want -32602 and %q", row.tool, reply.Error, reply.Result, row.want)
		}
	}
}

// The router says what it is for and how its tools are called.
func TestInitialize_Instructions(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	_, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+strings.ReplaceAll(initializeParams, "%s", "{}")+`}`, nil)
	for _, want := range []string{`"instructions":"`, "process_query", "search_available_tools"} {
		if !strings.Contains(text, want) {
			t.Errorf("initialize: got %s, want %s in it", text, want)
		}
	}
	c := r.dial("", nil)
	if got := string(c.list()["run"]); !strings.Contains(got, `"title":"Run a tool"`) || strings.Count(got, `"title"`) != 2 {
		t.Errorf("tools/list: got %s, want the title of the tool, and as an annotation", got)
	}
}

// While a server is starting, a tool that no other has is not called unknown.
func TestRun_ServerIsStarting(t *testing.T) {
	goOn := make(chan struct{})
	p := newPeer(textTool("late", object, "here I am"))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-goOn:
			p.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Proxy.ListDeadline = deadline / 100
		o.Config.Servers = []downstream.ServerConfig{server("slow", srv.URL)}
	})
	c := r.dial("", nil)
	wantError(t, c.call("run", `{"tool":"late"}`, ""), -32000, "it is still starting, and no other server has the tool late", `{"server":"slow","reason":"unavailable","retryable":true}`)
	close(goOn)
	mcptest.Eventually(t, "the tool", func() bool {
		return strings.Contains(string(c.call("run", `{"tool":"late"}`, "").Result), "here I am")
	})
}
