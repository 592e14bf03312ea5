package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.opentelemetry.io/otel/attribute"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// measured returns instruments and what reads /metrics as someone who sees only some servers and tools; nil sees all.
func measured(t *testing.T) (*Metrics, func(see func(server, tool string) bool) string) {
	t.Helper()
	quiet(t)
	tm, _ := setup(t, Config{})
	t.Cleanup(func() {
		if err := tm.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: got %v, want nil", err)
		}
	})
	m, err := tm.NewMetrics()
	if err != nil {
		t.Fatalf("NewMetrics: got %v, want no error", err)
	}
	return m, func(see func(server, tool string) bool) string {
		w := httptest.NewRecorder()
		sees := func(*http.Request) func(string, string) bool { return see }
		tm.Handler(sees).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
}

// every makes a series of every instrument.
func every(t *testing.T, m *Metrics) {
	t.Helper()
	ctx := t.Context()
	m.ClientCall(ctx, ClientCall{Server: "search", Method: "tools/call", Tool: "find", Listed: true, Took: 20 * time.Millisecond})
	m.ClientCall(ctx, ClientCall{Server: "search", Method: "tools/call", Tool: "hide", Listed: true, ErrorType: "timeout",
		Took: time.Second, Waited: 30 * time.Millisecond, Retries: 2})
	m.ClientCall(ctx, ClientCall{Server: "search", Method: "made/up", Took: time.Second})
	m.ServerCall("tools/call", "process_query", "-32602", time.Second)
	m.Query(ctx, QueryCall{Outcome: "degraded", Took: time.Second, Source: "rules", Rounds: 2, Fallbacks: []string{"planning"},
		Unmet: []string{"no_tool"}, Consents: map[string]int{"given": 3}})
	m.Search(time.Millisecond)
	m.ModelCall(ctx, ModelCall{Operation: "chat", Model: "gpt-5", Provider: "openai", ErrorType: "server", Took: time.Second,
		Input: 100, Output: 20, Cost: 0.5})
	if err := m.Watch("1.2.3", func() Readings {
		return Readings{Sessions: 1, Tracked: 3, Dropped: 4, Spans: 11, Refusals: map[string]int64{"overloaded": 7},
			Servers: map[string]ServerReading{"search": {Up: true, BreakerOpen: true, InFlight: 5, Queued: 6, Sessions: 8, Tools: 9, Quarantined: 10}}}
	}); err != nil {
		t.Fatalf("Watch: got %v, want no error", err)
	}
}

func TestMetrics(t *testing.T) {
	m, read := measured(t)
	every(t, m)
	got := read(nil)
	for _, want := range []string{
		`mcp_client_operation_duration_seconds_bucket{gen_ai_tool_name="find",mcp_method_name="tools/call",server="search",le="0.02"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="timeout",gen_ai_tool_name="hide",mcp_method_name="tools/call",server="search"} 1`,
		`mcp_client_operation_duration_seconds_count{mcp_method_name="_other",server="search"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32602",gen_ai_tool_name="process_query",mcp_method_name="tools/call"} 1`,
		`nexus_retries_total{server="search"} 2`,
		`nexus_queue_wait_seconds_count{server="search"} 3`,
		`nexus_query_duration_seconds_count{outcome="degraded"} 1`,
		`nexus_planning_rounds_total{source="rules"} 2`, `nexus_fallbacks_total{stage="planning"} 1`,
		`nexus_unmet_parts_total{reason="no_tool"} 1`, `nexus_consents_total{outcome="given"} 3`,
		`nexus_search_duration_seconds_bucket{le="0.001"} 1`,
		`gen_ai_client_operation_duration_seconds_count{error_type="server",gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="gpt-5"} 1`,
		`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="gpt-5",gen_ai_token_type="input"} 100`,
		`nexus_model_cost_total{gen_ai_request_model="gpt-5"} 0.5`,
		"nexus_sessions 1", "nexus_tracked_requests 3", "nexus_dropped_notifications_total 4", "nexus_dropped_spans_total 11",
		`nexus_refused_requests_total{cause="overloaded"} 7`, `nexus_server_up{server="search"} 1`,
		`nexus_server_breaker_open{server="search"} 1`, `nexus_server_in_flight{server="search"} 5`,
		`nexus_server_queued{server="search"} 6`, `nexus_server_sessions{server="search"} 8`,
		`nexus_server_tools{server="search"} 9`, `nexus_server_quarantined_tools{server="search"} 10`,
		`nexus_build_info{go_version="go`, `version="1.2.3"} 1`, `service_name="agenticnexus-router"`, "go_goroutines", "process_cpu_seconds_total",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	for _, name := range []string{"mcp_client", "nexus_retries", "nexus_server", "nexus_queue"} {
		if strings.Contains(read(func(string, string) bool { return false }), name) {
			t.Errorf("/metrics of someone who sees no server has %s", name)
		}
	}
	some := read(func(_, tool string) bool { return tool != "hide" })
	if strings.Contains(some, `"hide"`) || !strings.Contains(some, `gen_ai_tool_name="find"`) {
		t.Error("/metrics of someone who does not see a tool has it, or lacks another")
	}
}

// The checks of promtool check metrics.
func TestMetricsAreClean(t *testing.T) {
	m, read := measured(t)
	every(t, m)
	problems, err := promlint.New(strings.NewReader(read(nil))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Clients, tools and errors without end do not make series without end, and names that are not listed make none.
func TestCardinality(t *testing.T) {
	m, read := measured(t)
	ctx := t.Context()
	for i := range 10_000 {
		name := fmt.Sprintf("made-up-%d", i)
		code := tracing.TypeOfCode([]byte(fmt.Sprint(-i)))
		m.ClientCall(ctx, ClientCall{Server: "a", Method: "tools/call", Tool: fmt.Sprintf("tool-%d", i), Listed: true, ErrorType: code})
		m.ClientCall(ctx, ClientCall{Server: "a", Method: "tools/call", Tool: name})
		m.ClientCall(ctx, ClientCall{Server: "a", Method: name, ErrorType: "timeout"})
		m.ServerCall(name, "", code, time.Millisecond)
	}
	got := read(nil)
	if strings.Contains(got, "made-up") {
		t.Error("a name that a client chose is a label")
	}
	if tools := strings.Count(got, "mcp_client_operation_duration_seconds_count"); tools > maxTools+10 {
		t.Errorf("got %d series of requests to servers, want at most %d", tools, maxTools+10)
	}
	if !strings.Contains(got, `{error_type="_OTHER",gen_ai_tool_name="_other",mcp_method_name="tools/call",server="a"} `) {
		t.Error("got no series for the tools beyond the bound")
	}
	m.ClientCall(ctx, ClientCall{Server: "b", Method: "tools/call", Tool: strings.Repeat("x", 1<<20), Listed: true})
	if got = read(nil); len(got) > 2<<20 {
		t.Errorf("/metrics has %d bytes, want at most 2 MiB", len(got))
	}
}

// An instrument has a bound of series, and one of them has the rest.
func TestSeriesAreBounded(t *testing.T) {
	d := (&durations{}).create("wait", "", nil, labelServer)
	for i := range maxSeries + 100 {
		d.record(time.Second, values{fmt.Sprint(i)})
	}
	if n := len(*d.known.Load()); n != maxSeries {
		t.Errorf("got %d series kept, want %d", n, maxSeries)
	}
	if last := d.of(values{"another"}); last.count != 101 || last.attributes.Encoded(attribute.DefaultEncoder()) != "otel.metric.overflow=true" {
		t.Errorf("got %d in the series %v, want 101 in that of the rest", last.count, last.attributes)
	}
}
