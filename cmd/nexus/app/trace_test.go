package app_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/proto"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/spantest"
)

// collect sends the traces of the Apps of a test to a sink.
func collect(t *testing.T) *spantest.Sink {
	t.Helper()
	s := spantest.New(t)
	exportTo(t, s.URL)
	return s
}

// exportTo sets the variables of the environment that name a collector.
func exportTo(t *testing.T, url string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_on")
}

// instrumented is a server of the official SDK that others instrumented: its spans have the parents that _meta names.
func instrumented(t *testing.T) (url string, spans *tracetest.InMemoryExporter) {
	t.Helper()
	spans = tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("others")
	s := sdkServer()
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			carrier := propagation.MapCarrier{}
			if params, ok := r.GetParams().(*mcp.CallToolParamsRaw); ok {
				for name, value := range params.GetMeta() {
					if text, ok := value.(string); ok {
						carrier[name] = text
					}
				}
			}
			ctx, span := tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), method)
			defer span.End()
			return next(ctx, method, r)
		}
	})
	behind := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(behind.Close)
	return behind.URL + "/mcp", spans
}

// faulty is a server with a tool that answers from the second call on, and one that fails.
func faulty(t *testing.T) string {
	t.Helper()
	p := newPeer(textTool("fetch_rates", `"annotations":{"readOnlyHint":true},`+object, "1.1"),
		peerTool{"fetch_quota", object, func(*peerCall) (string, string) {
			return `{"content":[{"type":"text","text":"no quota for s3cr3t"}],"isError":true}`, ""
		}})
	var calls atomic.Int32
	p.OnHTTP = func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" && strings.Contains(string(m.Params), "fetch_rates") && calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	return p.serve(t).URL
}

const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentSpan  = "00f067aa0ba902b7"
	parent      = "00-" + parentTrace + "-" + parentSpan + "-01"
)

// One query with a step that is retried and one that fails: the spans, their parents, attributes and status.
func TestTraceOfAQuery(t *testing.T) {
	s := collect(t)
	sdk, others := instrumented(t)
	m := scripted(t, "The sum is 6.", `{"steps":[
		{"id":"s1","tool":"count","arguments":{"to":3}},
		{"id":"s2","tool":"fetch_rates","arguments":{}},
		{"id":"s3","tool":"fetch_quota","arguments":{}},
		{"id":"s4","tool":"fetch_rates","arguments":{"q":1},"after":["s3"]}]}`)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.Servers = append(o.Config.Servers, server("sdk", sdk), server("faulty", faulty(t)))
	})
	c := r.dial("", map[string]string{"Traceparent": parent, "Baggage": "user=alice"})
	a := c.query(`{"query":"sum the rates","max_rounds":1}`)
	r.stop(deadline)

	if a.TraceID != parentTrace {
		t.Errorf("trace_id: got %s, want that of the caller, %s", a.TraceID, parentTrace)
	}
	if line := r.logs.want(t, "retrying call"); line["trace_id"] != parentTrace || line["span_id"] == nil {
		t.Errorf("log of the retry: got %v, want the ids of the trace", line)
	}
	var root []byte
	for _, span := range s.Spans() {
		if span.Name == "process_query" {
			root = span.SpanId
		}
	}
	got := s.Tree(root, "nexus.round", "nexus.step", "nexus.attempts", "nexus.attempt", "mcp.method.name", "gen_ai.operation.name",
		"gen_ai.request.model", "rpc.response.status_code")
	want := `execution round=1
  execute_tool count step=s1 attempts=1 name=execute_tool
    tools/call count (client) attempt=1 name=tools/call name=execute_tool
  execute_tool fetch_quota step=s3 attempts=1 name=execute_tool ERROR tool_error
    tools/call fetch_quota (client) attempt=1 name=tools/call name=execute_tool ERROR tool_error
  execute_tool fetch_rates step=s2 attempts=2 name=execute_tool
    tools/call fetch_rates (client) attempt=1 name=tools/call name=execute_tool ERROR unavailable
    tools/call fetch_rates (client) attempt=2 name=tools/call name=execute_tool
planning round=1 name=plan
  chat stub (client) attempts=1 name=chat model=stub
synthesis
  chat stub (client) attempts=1 name=chat model=stub
`
	if got != want {
		t.Errorf("spans of the query: got\n%swant\n%s", got, want)
	}
	for _, span := range s.Spans() {
		switch {
		case span.Name == "tools/call process_query" && (span.Attribute("gen_ai.tool.name") != "process_query" ||
			string(span.SpanId) == string(root)):
			t.Errorf("the server span: got %v", span)
		case span.Name == "execution" && (len(span.Events) != 1 || span.Attribute("nexus.failed") != "2"):
			t.Errorf("execution: got %v, want an event for the step that depends on the failed one", span)
		}
		if strings.Contains(span.String(), "s3cr3t") || strings.Contains(span.String(), "alice") {
			t.Errorf("got the span %v, want no content and no baggage", span)
		}
	}
	joined := 0
	for _, span := range others.GetSpans() {
		if span.Name == "tools/call" && span.SpanContext.TraceID().String() == parentTrace && has(s, span.Parent.SpanID().String(), "tools/call count") {
			joined++
		}
	}
	if joined != 1 {
		t.Errorf("got %d spans of the instrumented server below the attempt, want 1", joined)
	}
	for _, req := range m.Requests() {
		if !strings.HasPrefix(req.Header.Get("traceparent"), "00-"+parentTrace) {
			t.Errorf("model call: got traceparent %q, want that of the query", req.Header.Get("traceparent"))
		}
	}
}

// has reports whether a span has an id, in hexadecimal, and a name.
func has(s *spantest.Sink, id, name string) bool {
	return slices.ContainsFunc(s.Spans(), func(p spantest.Span) bool { return hex.EncodeToString(p.SpanId) == id && p.Name == name })
}

// On the proxy surface there are a server and a client span, and the server gets what the client sent. Callers from
// elsewhere without a key cannot choose the trace: their context is a link.
func TestTraceOfAForwardedCall(t *testing.T) {
	s := collect(t)
	meta := make(chan string, 4)
	p := newPeer(peerTool{"look", object, func(c *peerCall) (string, string) {
		meta <- c.meta
		return textResult("seen"), ""
	}})
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("a", p.serve(t).URL))
		o.Config.TrustedProxies = []string{"127.0.0.1"}
	})
	const sent = `{"traceparent":"` + parent + `","baggage":"user=alice"}`
	for _, from := range []string{"", "203.0.113.9"} {
		header := map[string]string{}
		if from != "" {
			header["X-Forwarded-For"] = from
		}
		r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__look","arguments":{},"_meta":`+sent+`}}`, header)
		got := <-meta
		if !strings.Contains(got, `"traceparent":"`+parent+`"`) || !strings.Contains(got, `"baggage":"user=alice"`) {
			t.Errorf("the server got _meta %s, want the client's own", got)
		}
	}
	r.stop(deadline)
	trusted, linked := 0, 0
	for _, span := range s.Spans() {
		if span.Name != "tools/call a__look" {
			continue
		}
		switch {
		case hex.EncodeToString(span.ParentSpanId) == parentSpan && len(span.Links) == 0:
			trusted++
		case len(span.ParentSpanId) == 0 && len(span.Links) == 1 && hex.EncodeToString(span.Links[0].SpanId) == parentSpan && hex.EncodeToString(span.TraceId) != parentTrace:
			linked++
		}
		if below := s.Tree(span.SpanId); below != "tools/call look (client)\n" {
			t.Errorf("below the server span: got %q, want one client span", below)
		}
	}
	if trusted != 1 || linked != 1 {
		t.Errorf("got %d spans with the caller as parent and %d with a link, want 1 and 1", trusted, linked)
	}
}

// Without a model the spans of planning are those of searches.
func TestTraceOfPlanningByRules(t *testing.T) {
	s := collect(t)
	r := start(t, func(o *app.Options) { o.Demo = true })
	a := r.dial("", nil).query(`{"query":"15% of $2500"}`)
	r.stop(deadline)
	for _, span := range s.Spans() {
		if span.Name == "planning" && (!strings.HasPrefix(s.Tree(span.SpanId), "search_tools\n") || hex.EncodeToString(span.TraceId) != a.TraceID) {
			t.Errorf("below planning: got %q of trace %x, want searches of trace %s", s.Tree(span.SpanId), span.TraceId, a.TraceID)
		}
	}
	if !slices.ContainsFunc(s.Spans(), func(p spantest.Span) bool { return p.Name == "planning" }) {
		t.Error("got no span of planning")
	}
}

// Content is recorded if that is enabled, without secrets.
func TestTraceWithContent(t *testing.T) {
	s := collect(t)
	m := scripted(t, "Done.", `[{"tool":"echo","arguments":{"password":"s3cr3t","city":"Bern"}}]`)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.Telemetry.Content = true
		o.Config.Servers = append(o.Config.Servers, server("a", newPeer(echoTool("echo")).serve(t).URL))
	})
	r.dial("", nil).query(`{"query":"how is the weather in Bern"}`)
	r.stop(deadline)
	text := ""
	for _, span := range s.Spans() {
		text += span.String()
	}
	for _, want := range []string{"how is the weather", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "Bern", "Done."} {
		if !strings.Contains(text, want) {
			t.Errorf("spans: got nothing of %q", want)
		}
	}
	if strings.Contains(text, "s3cr3t") {
		t.Error("spans: got a password, want it redacted")
	}
}

// Spans have no more than the beginning of long names that clients choose: of methods, tools and ids of steps.
func TestTraceOfLongNames(t *testing.T) {
	s := collect(t)
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Servers = append(o.Config.Servers, server("a", newPeer(textTool("look", object, "seen")).serve(t).URL))
	})
	long := strings.Repeat("x", 10_000)
	send := func(path, method, params string) {
		r.raw("POST", path, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, nil)
	}
	for _, path := range []string{"/mcp", "/proxy/mcp", "/servers/a/mcp"} {
		send(path, long, `{}`)
		send(path, "tools/call", `{"name":"a__`+long+`","arguments":{}}`)
		send(path, "tools/call", `{"name":"`+long+`","arguments":{}}`)
	}
	send("/mcp", "tools/call", `{"name":"process_query","arguments":{"query":"q","plan":[{"id":"`+long+`","tool":"a__look"},{"id":"t","tool":"`+long+`"}]}}`)
	r.stop(deadline)
	for _, span := range s.Spans() {
		if n := proto.Size(span); n > 4000 {
			t.Errorf("got a span of %d bytes, %.200s, want at most 4000", n, span.Name)
		}
	}
	if len(s.Spans()) < 10 {
		t.Errorf("got %d spans, want those of 10 requests", len(s.Spans()))
	}
}
