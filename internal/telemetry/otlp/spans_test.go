package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// spansOf makes spans and returns what a collector got of them.
func spansOf(t *testing.T, about *resource.Resource, do func(ctx context.Context, tracer *Tracer)) []*tracepb.ResourceSpans {
	t.Helper()
	url, _, bodies := collector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
	tracer, err := NewTracer(about, "the scope")
	if err != nil {
		t.Fatal(err)
	}
	do(t.Context(), tracer)
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(bodies)
	var all []*tracepb.ResourceSpans
	for body := range bodies {
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Fatal(err)
		}
		all = append(all, data.ResourceSpans...)
	}
	return all
}

// A span arrives with all that it was told, and its parent.
func TestSpan(t *testing.T) {
	clean(t)
	state, err := trace.ParseTraceState("v=1")
	if err != nil {
		t.Fatal(err)
	}
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3, 4},
		TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	about := resource.NewWithAttributes("the schema", attribute.String("service.name", "nexus"))
	long := strings.Repeat("long ", 1000)
	var own trace.SpanContext
	got := spansOf(t, about, func(ctx context.Context, tracer *Tracer) {
		shared := make([]attribute.KeyValue, 0, 10)
		shared = append(shared, attribute.String("a", "x"), attribute.Int("n", -7))
		ctx, span := tracer.Start(trace.ContextWithRemoteSpanContext(ctx, remote), "work", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(shared...), trace.WithLinks(trace.Link{SpanContext: remote}))
		own = span.SpanContext()
		_, inner := tracer.Start(ctx, "inner")
		inner.End()
		span.SetAttributes(attribute.String("long", long), attribute.Bool("yes", true), attribute.Float64("half", 0.5),
			attribute.String("a", "z"), attribute.StringSlice("list", []string{"p", "q"}), attribute.String("none", ""))
		if shared[:3][2].Valid() {
			t.Error("the attributes of the start were written to")
		}
		for i := range maxEvents + 2 {
			span.AddEvent(fmt.Sprint("event ", i), trace.WithAttributes(attribute.Int("i", i)))
		}
		span.SetStatus(codes.Error, "failed")
		span.SetStatus(codes.Unset, "")
		span.End()
		span.SetStatus(codes.Ok, "")
		span.End()
		if span.IsRecording() {
			t.Error("an ended span records")
		}
	})
	if len(got) != 1 || got[0].SchemaUrl != "the schema" || got[0].Resource.Attributes[0].Value.GetStringValue() != "nexus" ||
		got[0].ScopeSpans[0].Scope.Name != "the scope" || len(got[0].ScopeSpans[0].Spans) != 2 {
		t.Fatalf("got %v, want two spans in one scope", got)
	}
	inner, s := got[0].ScopeSpans[0].Spans[0], got[0].ScopeSpans[0].Spans[1]
	id, traceID := own.SpanID(), own.TraceID()
	if string(inner.ParentSpanId) != string(id[:]) || string(inner.TraceId) != string(traceID[:]) || inner.Flags != 0x101 {
		t.Errorf("inner: got %v, want a child of the other", inner)
	}
	if s.Name != "work" || string(s.SpanId) != string(id[:]) || s.TraceState != "v=1" || s.Kind != tracepb.Span_SPAN_KIND_CLIENT ||
		s.ParentSpanId[0] != 3 || s.Flags != 0x301 || s.Status.Code != tracepb.Status_STATUS_CODE_ERROR || s.Status.Message != "failed" {
		t.Errorf("got %.500s", s.String())
	}
	if now := uint64(time.Now().UnixNano()); s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano || s.EndTimeUnixNano > now {
		t.Errorf("got the times %d and %d", s.StartTimeUnixNano, s.EndTimeUnixNano)
	}
	var attributes []string
	for _, kv := range s.Attributes {
		attributes = append(attributes, kv.Key+"="+strings.ReplaceAll(kv.Value.String(), " ", ""))
	}
	want := []string{"n=int_value:-7", `long=string_value:"` + strings.ReplaceAll(long, " ", "") + `"`, "yes=bool_value:true",
		"half=double_value:0.5", `a=string_value:"z"`, `list=string_value:"[\"p\",\"q\"]"`, `none=string_value:""`}
	if fmt.Sprint(attributes) != fmt.Sprint(want) {
		t.Errorf("got %.600s, want %.600s", attributes, want)
	}
	last := s.Events[len(s.Events)-1]
	if len(s.Events) != maxEvents || s.DroppedEventsCount != 2 || last.Name != "event 127" || last.Attributes[0].Value.GetIntValue() != 127 || last.TimeUnixNano == 0 {
		t.Errorf("got %d events, %d dropped, the last %v", len(s.Events), s.DroppedEventsCount, last)
	}
	if len(s.Links) != 1 || s.Links[0].TraceId[0] != 1 || s.Links[0].SpanId[0] != 3 || s.Links[0].TraceState != "v=1" || s.Links[0].Flags != 0x301 {
		t.Errorf("got the links %v", s.Links)
	}
}

// Spans of many goroutines arrive in batches; no more wait than the queue has room for.
func TestQueue(t *testing.T) {
	clean(t)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "30")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	var mu sync.Mutex
	var sizes []int
	free := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-free
		var data tracepb.TracesData
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, proto.Unmarshal(body, &data)); err != nil {
			t.Errorf("got no traces: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(data.ResourceSpans[0].ScopeSpans[0].Spans))
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL)
	tracer, err := NewTracer(resource.Empty(), "test")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 100 {
				_, span := tracer.Start(t.Context(), "work")
				span.End()
			}
		})
	}
	all.Wait()
	close(free)
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range sizes {
		if sum += n; n > 8 {
			t.Errorf("got a batch of %d spans, want at most 8", n)
		}
	}
	if sum < 30 || sum > 30+8 { // the first batch has left the queue
		t.Errorf("got %d spans, want those of a full queue and of one batch", sum)
	}
	if got := tracer.Dropped(); got != int64(1000-sum) {
		t.Errorf("got %d dropped spans, want the other %d", got, 1000-sum)
	}
	if _, span := tracer.Start(t.Context(), "late"); !span.IsRecording() {
		t.Error("got no span after the end")
	} else {
		span.End()
	}
}

// A span of a shape arrives as one that was told the same.
func TestShaped(t *testing.T) {
	clean(t)
	link := trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})}
	a, b, c, d := attribute.String("a", "x"), attribute.Int("b", 7), attribute.Bool("c", true), attribute.Float64("d", 0.5)
	began := time.Now().Add(-time.Hour)
	shape := &tracing.Shape{Name: "work", Kind: trace.SpanKindServer, Attributes: []attribute.KeyValue{a, b}}
	got := spansOf(t, resource.Empty(), func(ctx context.Context, tracer *Tracer) {
		_, told := tracer.Start(ctx, "work", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(a, b), trace.WithLinks(link))
		told.SetAttributes(c, d, attribute.String("a", "other"))
		told.End()
		for range 2 {
			_, shaped := tracer.StartShaped(ctx, shape, []trace.Link{link}, began, c)
			shaped.Add(d)
			shaped.SetAttributes(attribute.String("a", "other"))
			shaped.EndAt(began.Add(time.Second))
			shaped.Add(d)
		}
	})[0].ScopeSpans[0].Spans
	texts := map[string]bool{}
	for i, s := range got {
		if took := s.EndTimeUnixNano - s.StartTimeUnixNano; i > 0 && (s.StartTimeUnixNano != uint64(began.UnixNano()) || took != 1e9) {
			t.Errorf("got the time %d from %d, want a second from %d", took, s.StartTimeUnixNano, began.UnixNano())
		}
		slices.SortFunc(s.Attributes, func(a, b *commonpb.KeyValue) int { return strings.Compare(a.Key, b.Key) })
		s.TraceId, s.SpanId, s.StartTimeUnixNano, s.EndTimeUnixNano = nil, nil, 0, 0
		texts[protojson.Format(s)] = true
	}
	if len(got) != 3 || len(texts) != 1 {
		t.Errorf("got %d spans, want three that are the same: %v", len(got), texts)
	}
}

// What the collector refuses is counted.
func TestRefused(t *testing.T) {
	clean(t)
	url, _, _ := collector(t, http.StatusBadRequest)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
	tracer, err := NewTracer(resource.Empty(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, span := tracer.Start(t.Context(), "work")
		span.End()
	}
	if err := tracer.Shutdown(t.Context()); err == nil || tracer.Dropped() != 3 {
		t.Errorf("got %v and %d dropped spans, want an error and 3", err, tracer.Dropped())
	}
}

// Shutdown ends with its context, and with it the export under way.
func TestShutdownIsBounded(t *testing.T) {
	clean(t)
	asked := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		close(asked)
		<-r.Context().Done()
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL)
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	tracer, err := NewTracer(resource.Empty(), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "work")
	span.End()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Shutdown(ctx); err == nil {
		t.Error("got no error, want that spans are lost")
	}
}

func TestSampler(t *testing.T) {
	parent := func(flags trace.TraceFlags) context.Context {
		return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{0xff, 15: 0xff}, SpanID: trace.SpanID{1}, TraceFlags: flags, Remote: true}))
	}
	for _, row := range []struct {
		sampler, ratio             string
		alone, sampled, notSampled bool
	}{
		{"", "", true, true, false},
		{"always_on", "", true, true, true},
		{"always_off", "", false, false, false},
		{"traceidratio", "0", false, false, false},
		{"traceidratio", "", true, true, true},
		{"parentbased_always_off", "", false, true, false},
		{"Parentbased_TraceIDRatio", "0", false, true, false},
		{"parentbased_traceidratio", "2", true, true, false},
		{"no_such", "", true, true, false},
	} {
		clean(t)
		t.Setenv("OTEL_TRACES_SAMPLER", row.sampler)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", row.ratio)
		tracer, err := NewTracer(resource.Empty(), "test")
		if err != nil {
			t.Fatal(err)
		}
		for ctx, want := range map[context.Context]bool{t.Context(): row.alone, parent(trace.FlagsSampled): row.sampled, parent(0): row.notSampled} {
			ctx, span := tracer.Start(ctx, "work")
			c := trace.SpanContextFromContext(ctx)
			if span.IsRecording() != want || c.IsSampled() != want || !c.IsValid() || !c.Equal(span.SpanContext()) || c.IsRemote() {
				t.Errorf("%s %s: got %v, recording %t, want %t", row.sampler, row.ratio, c, span.IsRecording(), want)
			}
		}
		if err := tracer.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A message can be read repeatedly, and in pieces of any size.
func TestTracesReader(t *testing.T) {
	var b batch
	shape := &tracing.Shape{Name: "work", Attributes: []attribute.KeyValue{attribute.String("a", "x")}}
	for i := range 100 {
		r := record{trace: trace.TraceID{1}, id: trace.SpanID{byte(i + 1)}, shape: []*tracing.Shape{nil, shape}[i%2]}
		if i%3 == 0 {
			r.parent = trace.SpanID{1}
		}
		b.add(r, appendNumber(nil, 12, uint64(i)))
	}
	m := newTraces(newEnvelope(resource.NewSchemaless(attribute.String("service.name", "nexus")), "the scope"), b)
	whole, err := io.ReadAll(m.reader())
	var data tracepb.TracesData
	if err := errors.Join(err, proto.Unmarshal(whole, &data)); err != nil || len(whole) != m.size() {
		t.Fatalf("got %d bytes and %v, want %d", len(whole), err, m.size())
	}
	for i, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
		if int(s.DroppedEventsCount) != i || (s.Name == "work" && len(s.Attributes) == 1) != (i%2 == 1) {
			t.Errorf("span %d: got %v", i, s)
		}
	}
	if err := iotest.TestReader(m.reader(), whole); err != nil {
		t.Error(err)
	}
}
