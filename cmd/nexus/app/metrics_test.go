package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// The metrics of a router tell what it did, in series that clients cannot multiply.
func TestMetricsOfARouter(t *testing.T) {
	m := llmtest.New(t)
	m.When(llmtest.Structured, llmtest.Reply{Text: `[{"tool":"calculate","arguments":{"expression":"1+1"}}]`},
		llmtest.Reply{Status: http.StatusUnauthorized, Text: "no"})
	m.Answer(llmtest.Reply{Text: "It is 2."}, llmtest.Reply{Status: http.StatusUnauthorized, Text: "no"})
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Demo = true
		o.Config.Servers = append(o.Config.Servers, server("faulty", faulty(t)))
		o.Config.Execution.ConfirmWrites = downstream.ConfirmAlways
		o.Config.Prices = map[string]config.Price{"stub": {Input: 1000, Output: 1000}}
		o.Config.RateLimit.Requests = 4
	})
	c := r.dial("", nil)
	c.query(`{"query":"what is 1+1"}`)
	c.query(`{"query":"what is 2+2"}`)
	c.query(`{"query":"tell Bob","plan":[{"tool":"send_email","arguments":{"to":"bob@example.com","subject":"Hi","body":"Hello"}}]}`)
	c.refused("process_query", `{"query":""}`)
	c.refused("process_query", `{"query":"one too many"}`)
	for i := range 20 {
		c.do(fmt.Sprintf("made-up/%d", i), `{}`)
		c.call(fmt.Sprintf("made-up-%d", i), `{}`, "")
		c.call("run", fmt.Sprintf(`{"tool":"calculator.made-up-%d"}`, i), "")
		r.raw("POST", fmt.Sprintf("/mcp?made-up=%d", i), `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			map[string]string{"X-Forwarded-For": fmt.Sprintf("192.0.2.%d", i), "User-Agent": fmt.Sprintf("made-up-%d", i)})
	}
	r.raw("POST", "/mcp", `{}`, map[string]string{"Origin": "https://evil.example"})
	r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"faulty__fetch_rates"}}`, nil)

	_, got := r.raw("GET", "/metrics", "", nil)
	for _, want := range []string{
		`mcp_server_operation_duration_seconds_count{gen_ai_tool_name="process_query",mcp_method_name="tools/call"} 3`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",gen_ai_tool_name="process_query",mcp_method_name="tools/call"} 2`,
		`mcp_client_operation_duration_seconds_count{gen_ai_tool_name="calculate",mcp_method_name="tools/call",server="calculator"} 2`,
		`nexus_query_duration_seconds_count{outcome="ok"} 1`, `nexus_query_duration_seconds_count{outcome="degraded"} 2`,
		`nexus_query_duration_seconds_count{outcome="refused"} 1`, `nexus_planning_rounds_total{source="model"} 1`,
		`nexus_planning_rounds_total{source="rules"} 1`, `nexus_fallbacks_total{stage="planning"} 1`, `nexus_fallbacks_total{stage="synthesis"} 1`,
		`nexus_unmet_parts_total{reason="needs_approval"} 1`, `nexus_consents_total{outcome="unanswered"} 1`,
		`nexus_search_duration_seconds_count`, `gen_ai_request_model="stub"`, `nexus_model_cost_total{gen_ai_request_model="stub"}`,
		`error_type="refused"`, `nexus_refused_requests_total{cause="rate_limited"} 1`, `nexus_refused_requests_total{cause="forbidden"} 1`,
		`nexus_server_up{server="calculator"} 1`, `nexus_server_breaker_open{server="calculator"} 0`, `nexus_server_tools{server="faulty"} 2`, `version="1.2.3"`,
		`mcp_client_operation_duration_seconds_bucket{gen_ai_tool_name="fetch_rates",mcp_method_name="tools/call",server="faulty",le="300"} 1`,
		`nexus_retries_total{server="faulty"} 1`, `nexus_queue_wait_seconds_count{server="faulty"} 1`, `nexus_sessions 1`,
		`gen_ai_client_token_usage_count{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="stub",gen_ai_token_type="input"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(got, "made-up") || strings.Contains(got, "192.0.2") {
		t.Error("/metrics has a label that a client chose")
	}
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: got %v, %v, want no problem", problems, err)
	}
	checkDeployment(t, got)
	if t.Failed() {
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go_") && !strings.Contains(line, "_bucket") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// The first tools that are called have their own series; others share one.
func TestToolsWithOwnSeries(t *testing.T) {
	var tools []peerTool
	for i := range 300 {
		tools = append(tools, textTool(fmt.Sprintf("tool-%d", i), object, "seen"))
	}
	tools = append(tools, textTool(strings.Repeat("x", 201), object, "seen"))
	r, _ := withPeer(t, nil, nil, tools...)
	for _, tool := range tools {
		r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peer__`+tool.name+`","arguments":{}}}`, nil)
	}
	_, got := r.raw("GET", "/metrics", "", nil)
	if n := strings.Count(got, `mcp_client_operation_duration_seconds_count{gen_ai_tool_name="tool-`); n != 256 {
		t.Errorf("got %d tools with their own series, want 256", n)
	}
	if want := `mcp_client_operation_duration_seconds_count{gen_ai_tool_name="_other",mcp_method_name="tools/call",server="peer"} 45`; !strings.Contains(got, want) {
		t.Errorf("/metrics lacks %s", want)
	}
}
