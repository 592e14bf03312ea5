package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// quiet unsets the variables that this machine may have.
func quiet(t *testing.T) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

func setup(t *testing.T, cfg Config) (*Telemetry, *mcptest.Log) {
	t.Helper()
	out := &mcptest.Log{}
	tm, err := Setup(t.Context(), cfg, "1.2.3", slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		t.Fatalf("Setup: got %v, want no error", err)
	}
	return tm, out
}

func TestSpansWithoutExporterHaveTraceIDs(t *testing.T) {
	quiet(t)
	tm, _ := setup(t, Config{})
	ctx, span, id := tm.Tracer().Root(t.Context(), "query")
	if sc := trace.SpanContextFromContext(ctx); !id.IsValid() || sc.TraceID() != id || sc.IsSampled() || span.IsRecording() {
		t.Errorf("got span context %+v, recording %t, want a valid one that is not sampled", sc, span.IsRecording())
	}
	inner, child := tm.Tracer().Start(ctx, "plan")
	if got := trace.SpanContextFromContext(inner).TraceID(); got != id || child.IsRecording() {
		t.Errorf("child: got trace id %s, recording %t, want %s", got, child.IsRecording(), id)
	}
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx, span, id = tm.Tracer().Root(trace.ContextWithRemoteSpanContext(t.Context(), remote), "query")
	if sc := trace.SpanContextFromContext(ctx); id != remote.TraceID() || !sc.Equal(remote) || span.IsRecording() {
		t.Errorf("a remote parent: got %+v, want it to be passed on as it is", sc)
	}
	if err := tm.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: got %v, want nil", err)
	}
}

func TestWhoExportsTraces(t *testing.T) {
	quiet(t)
	yes, no := true, false
	for _, row := range []struct {
		name, variable, value string
		traces                *bool
		want                  bool
	}{
		{"nothing", "OTEL_SERVICE_NAME", "x", nil, false},
		{"an exporter", "OTEL_TRACES_EXPORTER", "otlp", nil, true},
		{"none", "OTEL_TRACES_EXPORTER", "none", nil, false},
		{"an endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", nil, true},
		{"an endpoint for traces", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1", nil, true},
		{"switched on", "OTEL_SERVICE_NAME", "x", &yes, true},
		{"switched off", "OTEL_TRACES_EXPORTER", "otlp", &no, false},
		{"disabled", "OTEL_SDK_DISABLED", "true", &yes, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv(row.variable, row.value)
			if got := exportsTraces(Config{Traces: row.traces}); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}

func TestTracesAreExported(t *testing.T) {
	quiet(t)
	bodies := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tm, _ := setup(t, Config{})
	_, span := tm.Tracer().Start(t.Context(), "process_query")
	span.End()
	if err := tm.Shutdown(t.Context()); err != nil {
		t.Fatalf("Shutdown: got %v, want nil", err)
	}
	body := <-bodies
	for _, want := range []string{"process_query", "agenticnexus-router", "1.2.3"} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("the exported span lacks %q", want)
		}
	}
}

func TestSetupRefusesUnknownExporters(t *testing.T) {
	quiet(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "pigeon")
	if _, err := Setup(t.Context(), Config{}, "1", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "trace exporter") {
		t.Errorf("got %v, want an error about the trace exporter", err)
	}
}

func TestFailingEndpointNeitherBlocksNorLeaks(t *testing.T) {
	quiet(t)
	const key = "s3cr3t-v4lue"
	hang := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer collector.Close()
	defer close(hang)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(collector.URL, "http://", "http://user:"+key+"@", 1))
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", key+",authorization=Bearer "+key)
	tm, out := setup(t, Config{})
	_, span := tm.Tracer().Start(t.Context(), "process_query")
	span.End()
	start := time.Now()
	err := tm.Shutdown(t.Context())
	if took := time.Since(start); took > shutdownLimit+2*time.Second {
		t.Errorf("Shutdown: took %v, want about %v at most", took, shutdownLimit)
	}
	if err == nil {
		t.Error("Shutdown: got nil, want the failure")
	}
	if text := out.String() + err.Error(); strings.Contains(text, key) {
		t.Errorf("got %q, want no secret in it", text)
	}
	if got := out.String(); !strings.Contains(got, "parse headers") {
		t.Errorf("got the log %q, want the malformed header reported", got)
	}
}

func TestFailuresAreReportedOnceAMinute(t *testing.T) {
	out := &mcptest.Log{}
	f := &failures{log: slog.New(slog.NewTextHandler(out, nil))}
	for range 5 {
		f.Handle(context.DeadlineExceeded)
	}
	f.last = f.last.Add(-quietPeriod)
	f.Handle(context.DeadlineExceeded)
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "suppressed=4") {
		t.Errorf("got %q, want two lines, the second with suppressed=4", got)
	}
}

func TestMetricsAreExported(t *testing.T) {
	quiet(t)
	bodies := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	}))
	defer collector.Close()
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", collector.URL)
	tm, _ := setup(t, Config{})
	m, err := tm.NewMetrics()
	if err != nil {
		t.Fatal(err)
	}
	m.ClientCall(t.Context(), ClientCall{Server: "search", Method: "ping", Retries: 1})
	if err := tm.Shutdown(t.Context()); err != nil {
		t.Fatalf("Shutdown: got %v, want nil", err)
	}
	body := <-bodies
	for _, want := range []string{"nexus.retries", "mcp.client.operation.duration", "go_goroutines", "process_cpu_seconds_total"} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("the exported metrics lack %s", want)
		}
	}
}

func TestMetricsCanBeOff(t *testing.T) {
	quiet(t)
	off := false
	tm, _ := setup(t, Config{Metrics: &off})
	if m, err := tm.NewMetrics(); err != nil {
		t.Errorf("NewMetrics: got %v, want no error", err)
	} else {
		m.Query(t.Context(), QueryCall{Outcome: "ok", Took: time.Second})
	}
	w := httptest.NewRecorder()
	tm.Handler(func(*http.Request) func(string, string) bool { return nil }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("/metrics: got %d, want 404", w.Code)
	}
}

// Those who may see some servers only have their part in the one bound of requests at once.
func TestMetricsAreBounded(t *testing.T) {
	quiet(t)
	tm, _ := setup(t, Config{})
	m, err := tm.NewMetrics()
	if err != nil {
		t.Fatal(err)
	}
	m.ClientCall(t.Context(), ClientCall{Server: "hidden", Method: "ping"})
	var inside sync.WaitGroup
	inside.Add(maxScrapes)
	leave := make(chan struct{})
	h := tm.Handler(func(r *http.Request) func(string, string) bool {
		if r.URL.Path == "/wait" {
			inside.Done()
			<-leave
		}
		return func(string, string) bool { return false }
	})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	var all sync.WaitGroup
	for range maxScrapes {
		all.Go(func() {
			if w := get("/wait"); w.Code != http.StatusOK {
				t.Errorf("one of %d at once: got %d, want 200", maxScrapes, w.Code)
			}
		})
	}
	inside.Wait()
	if w := get("/metrics"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "try again later") {
		t.Errorf("one more: got %d %q, want 503 and what to do", w.Code, w.Body)
	}
	close(leave)
	all.Wait()
	if w := get("/metrics"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "hidden") || !strings.Contains(w.Body.String(), "go_goroutines") {
		t.Errorf("afterwards: got %d %q, want what concerns no hidden server", w.Code, w.Body)
	}
	if err := tm.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTwoInOneProcess(t *testing.T) {
	quiet(t)
	for range 2 {
		tm, _ := setup(t, Config{})
		if _, err := tm.NewMetrics(); err != nil {
			t.Errorf("got %v, want two to live side by side", err)
		}
		defer func() { _ = tm.Shutdown(context.Background()) }()
	}
}

func BenchmarkUnsampledSpan(b *testing.B) {
	tm, err := Setup(b.Context(), Config{}, "1", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, span := tm.Tracer().Start(b.Context(), "tools/call")
		span.End()
	}
}

func BenchmarkCallMetric(b *testing.B) {
	tm, err := Setup(b.Context(), Config{}, "1", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	m, err := tm.NewMetrics()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.ClientCall(b.Context(), ClientCall{Server: "search", Method: "tools/call", Tool: "find", Listed: true, Took: time.Millisecond})
	}
}
