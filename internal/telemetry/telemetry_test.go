package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// setup calls Setup with these OTEL_* variables alone, given as names without the prefix and values.
func setup(t *testing.T, cfg Config, variables ...string) (*Telemetry, *mcptest.Log, error) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for i := 0; i < len(variables); i += 2 {
		t.Setenv("OTEL_"+variables[i], variables[i+1])
	}
	out := &mcptest.Log{}
	tm, err := Setup(t.Context(), cfg, "1.2.3", slog.New(slog.NewTextHandler(out, nil)), nil)
	return tm, out, err
}

func started(t *testing.T, cfg Config, variables ...string) *Telemetry {
	t.Helper()
	tm, _, err := setup(t, cfg, variables...)
	if err != nil {
		t.Fatalf("Setup: got %v, want no error", err)
	}
	return tm
}

func shut(t *testing.T, tm *Telemetry) {
	t.Helper()
	if err := tm.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: got %v, want nil", err)
	}
}

// collector returns one that answers each request with a status, and the bodies that it got.
func collector(t *testing.T, status int) (url string, bodies chan string) {
	bodies = make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, bodies
}

// hanging returns a collector that does not answer before its release.
func hanging(t *testing.T) (url string, release func()) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	release = sync.OnceFunc(func() { close(hang) })
	t.Cleanup(s.Close)
	t.Cleanup(release)
	return s.URL, release
}

var remote = trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	TraceFlags: trace.FlagsSampled, Remote: true})

func TestSpansWithoutExporterHaveTraceIDs(t *testing.T) {
	tm := started(t, Config{})
	ctx, span, id := tm.Tracer().Root(t.Context(), "query")
	if sc := trace.SpanContextFromContext(ctx); !id.IsValid() || sc.TraceID() != id || sc.IsSampled() || span.IsRecording() {
		t.Errorf("got span context %+v, recording %t, want a valid one that is not sampled", sc, span.IsRecording())
	}
	inner, child := tm.Tracer().Start(ctx, "plan")
	if got := trace.SpanContextFromContext(inner).TraceID(); got != id || child.IsRecording() {
		t.Errorf("child: got trace id %s, recording %t, want %s", got, child.IsRecording(), id)
	}
	ctx, span, id = tm.Tracer().Root(trace.ContextWithRemoteSpanContext(t.Context(), remote), "query")
	if sc := trace.SpanContextFromContext(ctx); id != remote.TraceID() || !sc.Equal(remote) || span.IsRecording() {
		t.Errorf("a remote parent: got %+v, want it to be passed on as it is", sc)
	}
	shut(t, tm)
}

func TestWhoExportsTraces(t *testing.T) {
	yes, no := true, false
	for _, row := range []struct {
		name, variable, value string
		traces                *bool
		want                  bool
	}{
		{"nothing", "SERVICE_NAME", "x", nil, false},
		{"an exporter", "TRACES_EXPORTER", "otlp", nil, true},
		{"the console", "TRACES_EXPORTER", "console", nil, true},
		{"none", "TRACES_EXPORTER", "none", nil, false},
		{"an endpoint", "EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", nil, true},
		{"an endpoint for traces", "EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1", nil, true},
		{"switched on", "SERVICE_NAME", "x", &yes, true},
		{"switched off", "TRACES_EXPORTER", "otlp", &no, false},
		{"disabled", "SDK_DISABLED", "True", &yes, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			tm := started(t, Config{Traces: row.traces}, row.variable, row.value)
			if got := tm.Tracer().On(); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
			shut(t, tm)
		})
	}
}

// A tenth of the traces is sampled, unless the caller or a variable decides.
func TestSampling(t *testing.T) {
	for _, row := range []struct {
		name, sampler string
		parent        trace.SpanContext
		least, most   int // of 1,000
	}{
		{"usual", "", trace.SpanContext{}, 50, 150},
		{"sampled by the caller", "", remote, 1000, 1000},
		{"not sampled by the caller", "", remote.WithTraceFlags(0), 0, 0},
		{"variable", "always_on", trace.SpanContext{}, 1000, 1000},
	} {
		t.Run(row.name, func(t *testing.T) {
			url, _ := collector(t, http.StatusOK)
			tm := started(t, Config{}, "EXPORTER_OTLP_ENDPOINT", url, "TRACES_SAMPLER", row.sampler)
			sampled := 0
			for range 1000 {
				_, span := tm.Tracer().Start(trace.ContextWithRemoteSpanContext(t.Context(), row.parent), "call")
				if span.IsRecording() {
					sampled++
				}
			}
			if sampled < row.least || sampled > row.most {
				t.Errorf("got %d of 1,000 spans sampled, want %d to %d", sampled, row.least, row.most)
			}
			shut(t, tm)
		})
	}
}

// Shutdown exports spans as the variables say.
func TestTracesAreExported(t *testing.T) {
	url, bodies := collector(t, http.StatusOK)
	tm := started(t, Config{}, "EXPORTER_OTLP_ENDPOINT", url, "TRACES_SAMPLER", "always_on", "SERVICE_NAME", "my-router",
		"RESOURCE_ATTRIBUTES", "deployment.environment.name=staging", "SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "5", "SPAN_EVENT_COUNT_LIMIT", "1")
	_, span := tm.Tracer().Start(t.Context(), "process_query", trace.WithAttributes(attribute.String("a", "shortened")))
	span.AddEvent("first")
	span.AddEvent("second")
	span.End()
	shut(t, tm)
	body := <-bodies
	for text, want := range map[string]bool{"process_query": true, "my-router": true, "1.2.3": true, "staging": true, "short": true,
		"shortened": false, "first": false, "second": true} {
		if strings.Contains(body, text) != want {
			t.Errorf("the exported span has %q: got %t, want %t", text, !want, want)
		}
	}
}

func TestUnusableVariables(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.pem")
	for _, row := range []struct{ variable, value, want string }{
		{"TRACES_EXPORTER", "pigeon", "want otlp, console or none"},
		{"METRICS_EXPORTER", "pigeon", "want otlp, prometheus or none"},
		{"METRIC_EXPORT_INTERVAL", "1m", "want a whole number"},
		{"BSP_MAX_QUEUE_SIZE", "0", "at least 1"},
		{"BSP_SCHEDULE_DELAY", "0", "at least 1"},
		{"SPAN_EVENT_COUNT_LIMIT", "many", "at least 0"},
		{"EXPORTER_OTLP_PROTOCOL", "grpc", "use http/protobuf"},
		{"EXPORTER_OTLP_COMPRESSION", "zip", "want gzip or none"},
		{"EXPORTER_OTLP_TIMEOUT", "1s", "want milliseconds"},
		{"EXPORTER_OTLP_ENDPOINT", "collector:4318", "want an http or https URL"},
		{"EXPORTER_OTLP_CERTIFICATE", missing, "none.pem"},
		{"EXPORTER_OTLP_CLIENT_CERTIFICATE", missing, "none.pem"},
	} {
		_, _, err := setup(t, Config{}, "TRACES_EXPORTER", "otlp", "METRICS_EXPORTER", "otlp", row.variable, row.value)
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "OTEL_"+row.variable) {
			t.Errorf("%s=%s: got %v, want the variable and %q", row.variable, row.value, err, row.want)
		}
		t.Setenv("OTEL_"+row.variable, "")
	}
}

func TestHangingCollectorNeitherBlocksNorLeaks(t *testing.T) {
	const key = "s3cr3t-v4lue"
	url, _ := hanging(t)
	tm, out, err := setup(t, Config{}, "EXPORTER_OTLP_ENDPOINT", strings.Replace(url, "http://", "http://user:"+key+"@", 1),
		"EXPORTER_OTLP_HEADERS", key+",authorization=Bearer "+key, "TRACES_SAMPLER", "always_on", "METRICS_EXPORTER", "otlp")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tm.Tracer().Start(t.Context(), "process_query")
	span.End()
	start := time.Now()
	err = tm.Shutdown(t.Context())
	if took := time.Since(start); err == nil || took > shutdownLimit+2*time.Second {
		t.Errorf("Shutdown: got %v after %v, want the failure after about %v at most", err, took, shutdownLimit)
	}
	if text := out.String() + err.Error(); strings.Contains(text, key) || !strings.Contains(text, "parse headers") {
		t.Errorf("got %q, want no secret in it, and the malformed header reported", text)
	}
}

// Spans beyond the bounds of the queue and those that the collector refuses are dropped and counted.
func TestDroppedSpans(t *testing.T) {
	const spans = 1000
	work := func(tm *Telemetry, attributes ...attribute.KeyValue) {
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range spans / 10 {
					_, span := tm.Tracer().Start(t.Context(), "work", trace.WithAttributes(attributes...))
					span.End()
				}
			})
		}
		all.Wait()
	}
	for _, row := range []struct {
		name         string
		queue, bytes int
		kept         int64
	}{
		{"count", 30, 0, 30},
		{"bytes", 5000, 1 << 20, maxQueued >> 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			url, release := hanging(t)
			tm := started(t, Config{}, "EXPORTER_OTLP_ENDPOINT", url, "TRACES_SAMPLER", "always_on",
				"BSP_MAX_QUEUE_SIZE", strconv.Itoa(row.queue), "BSP_MAX_EXPORT_BATCH_SIZE", "8")
			work(tm, attribute.String("a", strings.Repeat("x", row.bytes)))
			if got := spans - tm.DroppedSpans(); got != row.kept {
				t.Errorf("got %d spans that wait or are exported, want %d", got, row.kept)
			}
			release()
			_ = tm.Shutdown(t.Context()) // large spans may take longer than it has
		})
	}
	t.Run("refused", func(t *testing.T) {
		url, _ := collector(t, http.StatusBadRequest)
		tm := started(t, Config{}, "EXPORTER_OTLP_ENDPOINT", url, "TRACES_SAMPLER", "always_on")
		work(tm)
		shut(t, tm)
		if got := tm.DroppedSpans(); got != spans {
			t.Errorf("got %d dropped spans, want %d", got, spans)
		}
	})
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
	url, bodies := collector(t, http.StatusOK)
	tm := started(t, Config{}, "METRICS_EXPORTER", "otlp", "EXPORTER_OTLP_METRICS_ENDPOINT", url, "METRIC_EXPORT_INTERVAL", "10")
	promauto.With(tm.Registry()).NewCounter(prometheus.CounterOpts{Name: "nexus_retries_total"}).Inc()
	<-bodies // the first one is that of the interval
	shut(t, tm)
	body := ""
	for len(bodies) > 0 {
		body = <-bodies
	}
	for _, want := range []string{"agenticnexus-router", "nexus_retries_total", "go_goroutines", "process_cpu_seconds_total"} {
		if !strings.Contains(body, want) {
			t.Errorf("the exported metrics lack %s", want)
		}
	}
}

// scrape returns the status and the text of /metrics for one who sees some servers and tools; nil sees all.
func scrape(tm *Telemetry, see Sees) (int, string) {
	w := httptest.NewRecorder()
	sees := func(*http.Request) Sees { return see }
	tm.Handler(sees).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

func TestMetricsCanBeOff(t *testing.T) {
	off := false
	tm := started(t, Config{Metrics: &off})
	if status, _ := scrape(tm, nil); status != http.StatusNotFound || tm.Registry() != nil {
		t.Errorf("/metrics: got %d, want 404", status)
	}
	shut(t, tm)
}

// Series of servers, tools and the router itself that the caller does not see are left out, and so are empty labels.
func TestVisibleMetrics(t *testing.T) {
	tm := started(t, Config{}, "RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	calls := promauto.With(tm.Registry()).NewCounterVec(prometheus.CounterOpts{Name: "calls_total"}, []string{LabelServer, LabelTool, "error_type"})
	for _, labels := range [][]string{{"a", "find", ""}, {"a", "hide", "timeout"}, {"a", Other, ""}, {"b", "", ""}, {"", "", "other"}} {
		calls.WithLabelValues(labels...).Inc()
	}
	const a, hidden, others, b, none = `calls_total{gen_ai_tool_name="find",server="a"} 1`, `calls_total{error_type="timeout",gen_ai_tool_name="hide",server="a"} 1`,
		`calls_total{gen_ai_tool_name="_other",server="a"} 1`, `calls_total{server="b"} 1`, `calls_total{error_type="other"} 1`
	for _, row := range []struct {
		name string
		see  Sees
		want []string
	}{
		{"everything", nil, []string{a, hidden, others, b, none, `deployment_environment_name="staging",service_name="agenticnexus-router"`, "go_goroutines"}},
		{"one server", func(_, server, tool string) bool { return server == "a" && tool != "hide" }, []string{a, others}},
		{"one server and the router", func(_, server, tool string) bool { return server != "b" && tool != "hide" },
			[]string{a, others, none, "go_goroutines"}},
		{"calls", func(series, _, _ string) bool { return series == "calls_total" }, []string{a, hidden, others, b, none}},
		{"nothing", func(string, string, string) bool { return false }, nil},
	} {
		status, got := scrape(tm, row.see)
		for _, line := range row.want {
			if !strings.Contains(got, line) {
				t.Errorf("%s: /metrics lacks %s", row.name, line)
			}
		}
		series := 0
		for _, line := range row.want {
			series += strings.Count(line, "calls_total")
		}
		if n := strings.Count(got, "\ncalls_total"); status != http.StatusOK || n != series {
			t.Errorf("%s: got %d and %d series of calls, want %d", row.name, status, n, series)
		}
	}
	shut(t, tm)
}

func TestScrapesAreBounded(t *testing.T) {
	tm := started(t, Config{})
	var inside, all sync.WaitGroup
	inside.Add(maxScrapes)
	leave := make(chan struct{})
	h := tm.Handler(func(r *http.Request) Sees {
		if r.URL.Path == "/wait" {
			inside.Done()
			<-leave
		}
		return nil
	})
	get := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	for range maxScrapes {
		all.Go(func() {
			if status := get("/wait"); status != http.StatusOK {
				t.Errorf("one of %d at once: got %d, want 200", maxScrapes, status)
			}
		})
	}
	inside.Wait()
	if status := get("/metrics"); status != http.StatusServiceUnavailable {
		t.Errorf("one more: got %d, want 503", status)
	}
	close(leave)
	all.Wait()
	if status := get("/metrics"); status != http.StatusOK {
		t.Errorf("afterwards: got %d, want 200", status)
	}
	shut(t, tm)
}
