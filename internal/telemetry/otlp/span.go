package otlp

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// maxEvents limits the events of a span. It is the SDK's default.
const maxEvents = 128

// span is a recorded span until its end. It encodes its data immediately instead of keeping it.
type span struct {
	embedded.Span
	queue *queue
	own   trace.SpanContext

	mu          sync.Mutex
	shape       *tracing.Shape // further data; nil = none
	fields      *[]byte        // encoded fields, except those that may change; nil once the span has ended
	events      int32          // including dropped ones
	status      codes.Code
	description string
}

// The router does not use these methods of trace.Span, so they do nothing.

func (*span) AddLink(trace.Link)                      {}
func (*span) RecordError(error, ...trace.EventOption) {}
func (*span) SetName(string)                          {}
func (*span) TracerProvider() trace.TracerProvider    { return noop.NewTracerProvider() }

// begin encodes the data known at the start of a span.
func (s *span) begin(parent trace.SpanContext, links []trace.Link, began time.Time) {
	id, own := s.own.TraceID(), s.own.SpanID()
	b := appendBytes((*s.fields)[:0], 1, id[:])
	b = appendBytes(b, 2, own[:])
	b = appendString(b, 3, s.own.TraceState().String())
	if parent.HasSpanID() {
		id := parent.SpanID()
		b = appendBytes(b, 4, id[:])
	}
	b = appendTime(b, 7, began)
	b = appendFlags(b, 16, s.own.TraceFlags(), parent.IsRemote())
	for _, l := range links {
		b = appendMessage(b, 13, func(b []byte) []byte { return appendLink(b, l) })
	}
	*s.fields = b
}

// SpanContext implements trace.Span.
func (s *span) SpanContext() trace.SpanContext { return s.own }

// IsRecording implements trace.Span.
func (s *span) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fields != nil
}

// End implements trace.Span.
func (s *span) End(...trace.SpanEndOption) { s.EndAt(time.Now()) }

// EndAt implements tracing.Shaped.
func (s *span) EndAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fields == nil {
		return
	}
	b := appendTime(*s.fields, 8, at)
	if s.events > maxEvents {
		b = appendNumber(b, 12, uint64(s.events-maxEvents))
	}
	*s.fields = appendStatus(b, s.status, s.description)
	s.queue.add(s.fields, s.shape)
	s.fields = nil
}

// SetStatus implements trace.Span.
func (s *span) SetStatus(code codes.Code, description string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if code < s.status || s.status == codes.Ok {
		return
	}
	if s.status, s.description = code, description; code != codes.Error {
		s.description = ""
	}
}

// SetAttributes implements trace.Span.
func (s *span) SetAttributes(all ...attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fields == nil {
		return
	}
	for i := range all {
		if s.shape.Has(all[i].Key) {
			*s.fields = append(*s.fields, s.shape.Encoded(encodeShape)...)
			s.shape = nil
		}
		*s.fields = without(*s.fields, all[i].Key)
	}
	*s.fields = appendAttributes(*s.fields, fieldAttribute, all)
}

// Add implements tracing.Shaped.
func (s *span) Add(a attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fields != nil {
		*s.fields = appendAttribute(*s.fields, fieldAttribute, a)
	}
}

// AddEvent implements trace.Span.
func (s *span) AddEvent(name string, opts ...trace.EventOption) {
	config := trace.NewEventConfig(opts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fields == nil {
		return
	}
	if s.events++; s.events > maxEvents {
		return
	}
	*s.fields = appendMessage(*s.fields, 11, func(b []byte) []byte {
		b = appendTime(b, 1, config.Timestamp())
		b = appendString(b, 2, name)
		return appendAttributes(b, 3, config.Attributes())
	})
}
