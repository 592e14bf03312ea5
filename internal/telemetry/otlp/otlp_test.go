package otlp

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// request is one that a collector got.
type request struct {
	*http.Request
	body []byte
}

// collector returns a server that answers with the statuses in turn, then with 200, and the requests that it got.
// Answers other than 200 have the value of Retry-After.
func collector(t *testing.T, retryAfter string, statuses ...int) (url string, got chan request) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	got = make(chan request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := len(got)
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		content, _ := io.ReadAll(body)
		got <- request{r, content}
		if n < len(statuses) {
			w.Header().Set("Retry-After", retryAfter)
			w.WriteHeader(statuses[n])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// export exports the spans that do starts and ends.
func export(t *testing.T, do func(context.Context, trace.Tracer)) error {
	t.Helper()
	client, err := NewClient("traces")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	spans := tracetest.NewInMemoryExporter()
	about := resource.NewWithAttributes("the schema", attribute.String("service.name", "nexus"))
	do(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithResource(about)).Tracer("the scope"))
	return client.ExportSpans(t.Context(), spans.GetSpans().Snapshots())
}

func oneSpan(ctx context.Context, tracer trace.Tracer) {
	_, span := tracer.Start(ctx, "work")
	span.End()
}

// A span arrives with all that it was told, and its parent.
func TestExportSpans(t *testing.T) {
	url, requests := collector(t, "")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url+"/base/")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "alone,bad=%zz,=nameless,x-one=1, x-two=a%20b")
	state, err := trace.ParseTraceState("v=1")
	if err != nil {
		t.Fatal(err)
	}
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3, 4},
		TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	var own trace.SpanContext
	if err := export(t, func(ctx context.Context, tracer trace.Tracer) {
		ctx, span := tracer.Start(trace.ContextWithRemoteSpanContext(ctx, remote), "work", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithLinks(trace.Link{SpanContext: remote}))
		own = span.SpanContext()
		oneSpan(ctx, tracer)
		span.SetAttributes(attribute.String("a", "x"), attribute.Int("n", -7), attribute.Bool("yes", true), attribute.Float64("half", 0.5),
			attribute.StringSlice("list", []string{"p", "q"}))
		span.AddEvent("event", trace.WithAttributes(attribute.Int("i", 1)))
		span.SetStatus(codes.Error, "failed")
		span.End()
	}); err != nil {
		t.Fatal(err)
	}
	r := <-requests
	if r.URL.Path != "/base/v1/traces" || r.Header.Get("X-One") != "1" || r.Header.Get("X-Two") != "a b" || r.Header.Values("Bad") != nil ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("got %s with %v", r.URL.Path, r.Header)
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal(r.body, &data); err != nil {
		t.Fatal(err)
	}
	got := data.ResourceSpans[0]
	if got.SchemaUrl != "the schema" || got.Resource.Attributes[0].Value.GetStringValue() != "nexus" ||
		got.ScopeSpans[0].Scope.Name != "the scope" || len(got.ScopeSpans[0].Spans) != 2 {
		t.Fatalf("got %v, want two spans in one scope", got)
	}
	inner, s := got.ScopeSpans[0].Spans[0], got.ScopeSpans[0].Spans[1]
	if hex.EncodeToString(inner.ParentSpanId) != own.SpanID().String() || hex.EncodeToString(inner.TraceId) != own.TraceID().String() || inner.Flags != 0x101 {
		t.Errorf("inner: got %v, want a child of the other", inner)
	}
	if s.Name != "work" || hex.EncodeToString(s.SpanId) != own.SpanID().String() || s.TraceState != "v=1" || s.Kind != tracepb.Span_SPAN_KIND_CLIENT ||
		s.ParentSpanId[0] != 3 || s.Flags != 0x301 || s.Status.Code != tracepb.Status_STATUS_CODE_ERROR || s.Status.Message != "failed" {
		t.Errorf("got %v", s)
	}
	if now := uint64(time.Now().UnixNano()); s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano || s.EndTimeUnixNano > now {
		t.Errorf("got the times %d and %d", s.StartTimeUnixNano, s.EndTimeUnixNano)
	}
	var attributes []string
	for _, kv := range s.Attributes {
		attributes = append(attributes, kv.Key+"="+strings.ReplaceAll(kv.Value.String(), " ", ""))
	}
	want := []string{`a=string_value:"x"`, "n=int_value:-7", "yes=bool_value:true", "half=double_value:0.5", `list=string_value:"[\"p\",\"q\"]"`}
	if fmt.Sprint(attributes) != fmt.Sprint(want) {
		t.Errorf("got %s, want %s", attributes, want)
	}
	if len(s.Events) != 1 || s.Events[0].Name != "event" || s.Events[0].Attributes[0].Value.GetIntValue() != 1 || s.Events[0].TimeUnixNano == 0 {
		t.Errorf("got the events %v", s.Events)
	}
	if len(s.Links) != 1 || s.Links[0].TraceId[0] != 1 || s.Links[0].SpanId[0] != 3 || s.Links[0].TraceState != "v=1" || s.Links[0].Flags != 0x301 {
		t.Errorf("got the links %v", s.Links)
	}
}

// A busy collector is asked again within the timeout, less and less often, and not before the time that it names.
func TestRetries(t *testing.T) {
	const busy = http.StatusServiceUnavailable
	for _, row := range []struct {
		name, retryAfter string
		statuses         []int
		attempts         int
		fails, timeout   bool
	}{
		{"busy once", "", []int{busy}, 2, false, false},
		{"refused", "", []int{http.StatusBadRequest}, 1, true, false},
		{"busy", "0", []int{busy, busy, busy, busy, busy}, 3, true, true}, // pauses of 0.5 to 1.5 s, and half as long again
		{"busy for a minute", "60", []int{busy}, 1, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			url, got := collector(t, row.retryAfter, row.statuses...)
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url+"/spans")
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1900")
			if err := export(t, oneSpan); (err != nil) != row.fails || errors.Is(err, context.DeadlineExceeded) != row.timeout {
				t.Errorf("got %v", err)
			}
			if n := len(got); n < 1 || n > row.attempts || !row.fails && n != row.attempts {
				t.Errorf("got %d attempts, want at most %d, and all of them if it succeeds", n, row.attempts)
			}
			if r := <-got; r.URL.Path != "/spans" {
				t.Errorf("got %s, want the path of the variable as it is", r.URL.Path)
			}
		})
	}
}

// Counters, gauges and histograms arrive under their names; summaries do not.
func TestExportMetrics(t *testing.T) {
	url, requests := collector(t, "")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	registry := prometheus.NewRegistry()
	create := promauto.With(registry)
	calls := create.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"kind"})
	calls.WithLabelValues("a").Add(5)
	create.NewGauge(prometheus.GaugeOpts{Name: "level"}).Set(0.25)
	create.NewSummary(prometheus.SummaryOpts{Name: "summary"}).Observe(1)
	seconds := create.NewHistogram(prometheus.HistogramOpts{Name: "seconds", Buckets: []float64{1, 10}})
	seconds.Observe(1.5)
	seconds.Observe(20)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient("metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	began := time.Now()
	if err := client.ExportMetrics(t.Context(), resource.Empty(), "the scope", began, families); err != nil {
		t.Fatal(err)
	}
	r := <-requests
	var data metricspb.MetricsData
	if err := proto.Unmarshal(r.body, &data); err != nil || r.URL.Path != "/v1/metrics" {
		t.Fatalf("got %s and %v", r.URL.Path, err)
	}
	got := map[string]*metricspb.Metric{}
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		got[m.Name] = m
	}
	sum := got["calls_total"].GetSum()
	if p := sum.DataPoints[0]; p.GetAsDouble() != 5 || !sum.IsMonotonic || p.Attributes[0].Key != "kind" ||
		p.Attributes[0].Value.GetStringValue() != "a" || p.StartTimeUnixNano != uint64(began.UnixNano()) || p.TimeUnixNano < p.StartTimeUnixNano {
		t.Errorf("calls_total: got %v", sum)
	}
	if h := got["seconds"].GetHistogram().DataPoints[0]; h.Count != 2 || h.GetSum() != 21.5 || !slices.Equal(h.ExplicitBounds, []float64{1, 10}) ||
		!slices.Equal(h.BucketCounts, []uint64{0, 1, 1}) {
		t.Errorf("seconds: got %v", h)
	}
	if v := got["level"].GetGauge().DataPoints[0].GetAsDouble(); v != 0.25 || got["summary"] != nil {
		t.Errorf("level: got %v, want 0.25; summary: got %v, want nothing", v, got["summary"])
	}
}

func TestCertificates(t *testing.T) {
	_, _ = collector(t, "") // unsets the variables of this machine
	clients := make(chan int, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		clients <- len(r.TLS.PeerCertificates)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, kind string, content []byte) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	certificate, keyFile := write("cert.pem", "CERTIFICATE", s.Certificate().Raw), write("key.pem", "PRIVATE KEY", key)

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", keyFile)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)
	if err := export(t, oneSpan); err != nil || len(clients) != 1 || <-clients != 1 {
		t.Errorf("got %v, want one request with the client's certificate", err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", keyFile)
	if _, err := NewClient("traces"); err == nil || !strings.Contains(err.Error(), "has no PEM certificate") {
		t.Errorf("a key in place of the certificate: got %v, want an error that says so", err)
	}
}
