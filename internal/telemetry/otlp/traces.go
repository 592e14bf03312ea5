package otlp

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
)

// Tracer makes spans and exports them. They are encoded once, as they end, so that they cost about a third of the spans
// of the OpenTelemetry SDK, which copies each three times on its way.
type Tracer struct {
	embedded.Tracer
	sampler sdktrace.Sampler
	queue   *queue
}

// NewTracer returns a tracer of a scope. It starts a goroutine, which Shutdown ends. It fails where a variable is
// malformed; it does not connect.
func NewTracer(about *resource.Resource, scope string) (*Tracer, error) {
	p, err := newPoster("traces")
	if err != nil {
		return nil, err
	}
	return &Tracer{sampler: samplerOfEnvironment(), queue: newQueue(p, about, scope)}, nil
}

// Shutdown exports the rest. Spans that end later are lost.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.queue.shutdown(ctx) }

// Start implements trace.Tracer.
func (t *Tracer) Start(
	ctx context.Context, name string, opts ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(opts...)
	parent := trace.SpanContextFromContext(ctx)
	id := parent.TraceID()
	if !id.IsValid() {
		parent = trace.SpanContext{}
		id = newTraceID()
	}
	kind := trace.ValidateSpanKind(config.SpanKind())
	sampled := t.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: ctx, TraceID: id, Name: name, Kind: kind, Attributes: config.Attributes(), Links: config.Links(),
	})
	record := sampled.Decision == sdktrace.RecordAndSample
	own := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: newSpanID(), TraceState: sampled.Tracestate,
		TraceFlags: parent.TraceFlags().WithSampled(record),
	})
	if !record {
		ctx = trace.ContextWithSpanContext(ctx, own)
		return ctx, trace.SpanFromContext(ctx)
	}
	s := &span{queue: t.queue, own: own, parent: parent, name: name, kind: kind, began: time.Now(),
		attributes: config.Attributes(), links: config.Links()}
	return trace.ContextWithSpan(ctx, s), s
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
