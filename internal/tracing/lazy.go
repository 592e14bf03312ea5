package tracing

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// Lazy is a span that starts with the first part of its work. A nil Lazy is no span.
type Lazy struct {
	start func() trace.Span
	once  sync.Once
	span  trace.Span // nil until it starts; stays nil if it ends first
}

// Lazy returns an unstarted child of the span in ctx.
func (t Tracer) Lazy(ctx context.Context, name string, opts ...trace.SpanStartOption) *Lazy {
	if !t.on {
		return nil
	}
	return &Lazy{start: func() trace.Span {
		_, span := t.tracer.Start(ctx, name, opts...)
		return span
	}}
}

// Within starts the span if necessary and returns ctx with it.
func (l *Lazy) Within(ctx context.Context) context.Context {
	if l == nil {
		return ctx
	}
	l.once.Do(func() { l.span = l.start() })
	if l.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, l.span)
}

// End ends the span if it has started.
func (l *Lazy) End() {
	if l == nil {
		return
	}
	l.once.Do(func() {})
	if l.span != nil {
		l.span.End()
	}
}
