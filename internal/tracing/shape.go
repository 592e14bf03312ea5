package tracing

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Shape is what many spans have in common, so that it is made and encoded once for all of them. It does not change.
type Shape struct {
	Name       string
	Kind       trace.SpanKind
	Attributes []attribute.KeyValue

	once    sync.Once
	encoded []byte
}

// Encoded returns the shape as the first call of encode has encoded it.
func (s *Shape) Encoded(encode func(*Shape) []byte) []byte {
	s.once.Do(func() { s.encoded = encode(s) })
	return s.encoded
}

// Shaped is a span of a shape.
type Shaped interface {
	trace.Span
	Add(attribute.KeyValue) // one that the span does not have
	EndAt(time.Time)
}

// Shaper is a trace.Tracer that starts spans of a shape faster than others. Those that are recorded are Shaped. own is
// an attribute that the shape does not have.
type Shaper interface {
	StartShaped(
		ctx context.Context, shape *Shape, links []trace.Link, began time.Time, own attribute.KeyValue,
	) context.Context
}

// StartShaped begins a span of a shape within that of ctx.
func (t Tracer) StartShaped(
	ctx context.Context, shape *Shape, links []trace.Link, began time.Time, own attribute.KeyValue,
) (context.Context, Shaped) {
	switch {
	case !t.on:
		return ctx, plain{noop.Span{}}
	case t.shaper != nil:
		ctx = t.shaper.StartShaped(ctx, shape, links, began, own)
	default:
		ctx, _ = t.tracer.Start(ctx, shape.Name, trace.WithSpanKind(shape.Kind), trace.WithLinks(links...),
			trace.WithAttributes(shape.Attributes...), trace.WithAttributes(own), trace.WithTimestamp(began))
	}
	return ctx, Of(ctx)
}

// Of returns the span of ctx.
func Of(ctx context.Context) Shaped {
	span := trace.SpanFromContext(ctx)
	if shaped, ok := span.(Shaped); ok {
		return shaped
	}
	return plain{span}
}

// plain is a span of a trace.Tracer that is no Shaper.
type plain struct{ trace.Span }

func (p plain) Add(a attribute.KeyValue) { p.SetAttributes(a) }

func (p plain) EndAt(at time.Time) { p.End(trace.WithTimestamp(at)) }

// Bounds of the shapes that are kept: how many, and the bytes of the texts that choose one. Others are made for each
// span.
const (
	maxShapes = 1000
	maxChoice = 400
)

// Shapes are the shapes of spans that differ in a few texts. The zero value has none. Reading takes no lock.
type Shapes struct {
	known atomic.Pointer[map[[4]string]*Shape]
	mu    sync.Mutex // held while known is replaced
}

// Of returns the shape for some texts.
func (s *Shapes) Of(choice [4]string, create func() *Shape) *Shape {
	if known := s.known.Load(); known != nil {
		if shape := (*known)[choice]; shape != nil {
			return shape
		}
	}
	shape := create()
	size := 0
	for i, text := range choice {
		size += len(text)
		choice[i] = strings.Clone(text) // it may be part of a message
	}
	if size > maxChoice {
		return shape
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[[4]string]*Shape{}
	if known := s.known.Load(); known != nil {
		if len(*known) == maxShapes {
			return shape
		}
		next = maps.Clone(*known)
	}
	next[choice] = shape
	s.known.Store(&next)
	return shape
}
