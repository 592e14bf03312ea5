package tracing

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

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

// Encoded returns the attributes as the first call of encode has encoded them.
func (s *Shape) Encoded(encode func([]attribute.KeyValue) []byte) []byte {
	s.once.Do(func() { s.encoded = encode(s.Attributes) })
	return s.encoded
}

// Shaper is a trace.Tracer that starts spans of a shape faster than others. None of the further attributes is one of
// the shape.
type Shaper interface {
	StartShaped(
		ctx context.Context, shape *Shape, links []trace.Link, further ...attribute.KeyValue,
	) (context.Context, trace.Span)
}

// StartShaped begins a span of a shape within that of ctx.
func (t Tracer) StartShaped(
	ctx context.Context, shape *Shape, links []trace.Link, further ...attribute.KeyValue,
) (context.Context, trace.Span) {
	switch {
	case !t.on:
		return ctx, noop.Span{}
	case t.shaper != nil:
		return t.shaper.StartShaped(ctx, shape, links, further...)
	}
	return t.tracer.Start(ctx, shape.Name, trace.WithSpanKind(shape.Kind), trace.WithLinks(links...),
		trace.WithAttributes(shape.Attributes...), trace.WithAttributes(further...))
}

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
