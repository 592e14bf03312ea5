package otlp

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// Tracer creates and exports spans. Their data is encoded immediately and once: docs/decisions/011-own-spans.md.
type Tracer struct {
	embedded.Tracer
	sampler sampler
	queue   *queue
}

// NewTracer returns a tracer with an instrumentation scope. It starts a goroutine, which Shutdown ends. It fails if a
// variable is malformed; it does not connect.
func NewTracer(about *resource.Resource, scope string) (*Tracer, error) {
	p, err := newPoster("traces")
	if err != nil {
		return nil, err
	}
	return &Tracer{sampler: samplerOfEnvironment(), queue: newQueue(p, about, scope)}, nil
}

// Shutdown exports the queued spans. Spans that end later are lost.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.queue.shutdown(ctx) }

// Start implements trace.Tracer.
func (t *Tracer) Start(
	ctx context.Context, name string, opts ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(opts...)
	ctx, s := t.start(ctx, config.Links(), time.Now())
	if s == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	s.fields = appendShape(s.fields, name, trace.ValidateSpanKind(config.SpanKind()), config.Attributes())
	return ctx, s
}

// StartShaped implements tracing.Shaper.
func (t *Tracer) StartShaped(
	ctx context.Context, shape *tracing.Shape, links []trace.Link, began time.Time, own attribute.KeyValue,
) (context.Context, tracing.Shaped) {
	ctx, s := t.start(ctx, links, began)
	if s == nil {
		return ctx, nil
	}
	s.shape, s.fields = shape, appendAttribute(s.fields, fieldAttribute, own)
	return ctx, s
}

func encodeShape(s *tracing.Shape) []byte { return appendShape(nil, s.Name, s.Kind, s.Attributes) }

// start returns a child of the span in ctx, and ctx with it. The span is nil if it is not sampled.
func (t *Tracer) start(ctx context.Context, links []trace.Link, began time.Time) (context.Context, *span) {
	parent := trace.SpanContextFromContext(ctx)
	id := parent.TraceID()
	if !id.IsValid() {
		parent = trace.SpanContext{}
		id = newTraceID()
	}
	record := t.sampler.samples(parent, id)
	own := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: newSpanID(), TraceState: parent.TraceState(),
		TraceFlags: parent.TraceFlags().WithSampled(record),
	})
	if !record {
		return trace.ContextWithSpanContext(ctx, own), nil
	}
	s := &span{queue: t.queue, own: own, parent: parent.SpanID(), remote: parent.IsRemote(), began: nanos(began)}
	s.fields = appendString(s.room[:0], 3, own.TraceState().String())
	for _, l := range links {
		s.fields = appendMessage(s.fields, 13, func(b []byte) []byte { return appendLink(b, l) })
	}
	return trace.ContextWithSpan(ctx, s), s
}

// Dropped returns the number of spans not exported, because the queue was full or the collector refused them.
func (t *Tracer) Dropped() int64 { return t.queue.dropped.Load() }

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
