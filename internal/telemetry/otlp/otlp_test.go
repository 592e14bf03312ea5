package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// clean removes the OTEL_* variables of the environment for the test.
func clean(t *testing.T) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// collector returns a server that answers with the statuses in turn, then with 200, and the requests that it got.
func collector(t *testing.T, statuses ...int) (url string, got chan *http.Request, bodies chan []byte) {
	t.Helper()
	var n atomic.Int64
	got, bodies = make(chan *http.Request, 10), make(chan []byte, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		b, _ := io.ReadAll(body)
		got <- r
		bodies <- b
		if i := int(n.Add(1)) - 1; i < len(statuses) {
			w.WriteHeader(statuses[i])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got, bodies
}

func exportSpan(t *testing.T) error {
	t.Helper()
	tracer, err := NewTracer(resource.Empty(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "work")
	span.End()
	return tracer.Shutdown(t.Context())
}

func TestTraces(t *testing.T) {
	clean(t)
	url, got, bodies := collector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url+"/base/")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-one=1, x-two=a%20b")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	if err := exportSpan(t); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.URL.Path != "/base/v1/traces" || r.Header.Get("X-One") != "1" || r.Header.Get("X-Two") != "a b" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("got %s with %v", r.URL.Path, r.Header)
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal(<-bodies, &data); err != nil {
		t.Fatal(err)
	}
	if name := data.ResourceSpans[0].ScopeSpans[0].Spans[0].Name; name != "work" {
		t.Errorf("got the span %q, want work", name)
	}
}

func TestRetries(t *testing.T) {
	for _, row := range []struct {
		name     string
		statuses []int
		attempts int
		fails    bool
	}{
		{"busy", []int{http.StatusServiceUnavailable}, 2, false},
		{"refused", []int{http.StatusBadRequest}, 1, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			clean(t)
			url, got, _ := collector(t, row.statuses...)
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url+"/spans")
			if err := exportSpan(t); (err != nil) != row.fails {
				t.Errorf("got %v", err)
			}
			if len(got) != row.attempts {
				t.Errorf("got %d attempts, want %d", len(got), row.attempts)
			}
			if r := <-got; r.URL.Path != "/spans" {
				t.Errorf("got %s, want the path of the variable as it is", r.URL.Path)
			}
		})
	}
}

func TestTimeoutEndsRetries(t *testing.T) {
	clean(t)
	url, _, _ := collector(t, 503, 503, 503, 503)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "50")
	if err := exportSpan(t); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

func TestMetrics(t *testing.T) {
	clean(t)
	url, got, bodies := collector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	exporter, err := NewMetrics()
	if err != nil {
		t.Fatal(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(time.Hour))))
	meter := provider.Meter("test")
	count, _ := meter.Int64Counter("calls")
	took, _ := meter.Float64Histogram("seconds", metric.WithExplicitBucketBoundaries(1, 10))
	level, _ := meter.Float64Gauge("level")
	count.Add(t.Context(), 2, metric.WithAttributes(attribute.String("kind", "a")))
	count.Add(t.Context(), 3, metric.WithAttributes(attribute.String("kind", "a")))
	took.Record(t.Context(), 1.5)
	took.Record(t.Context(), 20)
	level.Record(t.Context(), 0.25)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.URL.Path != "/v1/metrics" {
		t.Errorf("got %s, want /v1/metrics", r.URL.Path)
	}
	var data metricspb.MetricsData
	if err := proto.Unmarshal(<-bodies, &data); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]*metricspb.Metric{}
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		metrics[m.Name] = m
	}
	calls := metrics["calls"].GetSum()
	if p := calls.DataPoints[0]; p.GetAsInt() != 5 || !calls.IsMonotonic || p.Attributes[0].Value.GetStringValue() != "a" || p.TimeUnixNano == 0 {
		t.Errorf("calls: got %v", calls)
	}
	seconds := metrics["seconds"].GetHistogram().DataPoints[0]
	if seconds.Count != 2 || seconds.GetSum() != 21.5 || seconds.GetMax() != 20 || !slices.Equal(seconds.BucketCounts, []uint64{0, 1, 1}) {
		t.Errorf("seconds: got %v", seconds)
	}
	if v := metrics["level"].GetGauge().DataPoints[0].GetAsDouble(); v != 0.25 {
		t.Errorf("level: got %v, want 0.25", v)
	}
}

func TestMalformedVariables(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.pem")
	for _, row := range []struct{ variable, value, want string }{
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "use http/protobuf"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "want gzip or none"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "1s", "want milliseconds"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "want an http or https URL"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", missing, "none.pem"},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", missing, "none.pem"},
	} {
		t.Run(row.variable, func(t *testing.T) {
			clean(t)
			t.Setenv(row.variable, row.value)
			if _, err := NewTracer(resource.Empty(), ""); err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), row.variable) {
				t.Errorf("got %v, want the variable and %q", err, row.want)
			}
		})
	}
}
