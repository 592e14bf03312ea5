package tracing

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Shape holds the data that many spans share, so that it is built and encoded once. It is immutable.
type Shape struct {
	Name       string
	Kind       trace.SpanKind
	Attributes []attribute.KeyValue

	once    sync.Once
	encoded []byte
}

// Encoded returns the encoded shape; nil for a nil Shape. The first call determines the encoding.
func (s *Shape) Encoded(encode func(*Shape) []byte) []byte {
	if s == nil {
		return nil
	}
	s.once.Do(func() { s.encoded = encode(s) })
	return s.encoded
}

// Has reports whether the shape has an attribute. A nil Shape has none.
func (s *Shape) Has(key attribute.Key) bool {
	return s != nil && slices.ContainsFunc(s.Attributes, func(a attribute.KeyValue) bool { return a.Key == key })
}

// Shaped is a span with a Shape.
type Shaped interface {
	trace.Span
	Add(attribute.KeyValue) // adds an attribute that the span does not have
	EndAt(time.Time)
}

// Shaper is a trace.Tracer that starts spans with a Shape at lower cost. own is an attribute that the shape does not
// have. The span is nil if it is not recorded.
type Shaper interface {
	StartShaped(
		ctx context.Context, shape *Shape, links []trace.Link, began time.Time, own attribute.KeyValue,
	) (context.Context, Shaped)
}

// StartShaped starts a child of the span in ctx with a shape.
func (t Tracer) StartShaped(
	ctx context.Context, shape *Shape, links []trace.Link, began time.Time, own attribute.KeyValue,
) (context.Context, Shaped) {
	if !t.on {
		return ctx, plain{noop.Span{}}
	}
	if t.shaper == nil {
		ctx, span := t.tracer.Start(ctx, shape.Name, trace.WithSpanKind(shape.Kind), trace.WithLinks(links...),
			trace.WithAttributes(shape.Attributes...), trace.WithAttributes(own), trace.WithTimestamp(began))
		return ctx, plain{span}
	}
	ctx, span := t.shaper.StartShaped(ctx, shape, links, began, own)
	if span == nil {
		return ctx, plain{noop.Span{}}
	}
	return ctx, span
}

// Of returns the span of ctx.
func Of(ctx context.Context) Shaped {
	span := trace.SpanFromContext(ctx)
	if shaped, ok := span.(Shaped); ok {
		return shaped
	}
	return plain{span}
}

// plain is a span of a trace.Tracer that is not a Shaper.
type plain struct{ trace.Span }

func (p plain) Add(a attribute.KeyValue) { p.SetAttributes(a) }

func (p plain) EndAt(at time.Time) { p.End(trace.WithTimestamp(at)) }

// Limits of the stored shapes: their number, and the bytes of the texts that select one. Beyond them, each span gets
// a new shape.
const (
	maxShapes = 1000
	maxChoice = 400
)

// Shapes stores the shapes of spans that differ in a few texts. The zero value is empty. Reading takes no lock.
type Shapes struct {
	known atomic.Pointer[map[[4]string]*Shape]
	mu    sync.Mutex // guards replacement of known
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
		choice[i] = strings.Clone(text) // do not retain the message it may be part of
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
