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

// span is a recorded span until its end. It encodes attributes, events and links immediately instead of keeping them.
type span struct {
	embedded.Span
	queue  *queue
	own    trace.SpanContext
	parent trace.SpanID // zero = none
	remote bool         // the parent is remote
	began  uint64       // ns since 1970

	mu          sync.Mutex
	shape       *tracing.Shape // further data; nil = none
	fields      []byte         // further encoded fields, except those that may change
	over        bool           // the span has ended
	events      int32          // including dropped ones
	status      codes.Code
	description string
	room        [usualFields]byte // the initial memory of fields
}

// usualFields is the size in bytes of the further fields of a forwarded request.
const usualFields = 40

// The router does not use these methods of trace.Span, so they do nothing.

func (*span) AddLink(trace.Link)                      {}
func (*span) RecordError(error, ...trace.EventOption) {}
func (*span) SetName(string)                          {}
func (*span) TracerProvider() trace.TracerProvider    { return noop.NewTracerProvider() }

// SpanContext implements trace.Span.
func (s *span) SpanContext() trace.SpanContext { return s.own }

// IsRecording implements trace.Span.
func (s *span) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over
}

// End implements trace.Span.
func (s *span) End(...trace.SpanEndOption) { s.EndAt(time.Now()) }

// EndAt implements tracing.Shaped.
func (s *span) EndAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if s.events > maxEvents {
		s.fields = appendNumber(s.fields, 12, uint64(s.events-maxEvents))
	}
	s.fields = appendStatus(s.fields, s.status, s.description)
	s.queue.add(record{trace: s.own.TraceID(), id: s.own.SpanID(), parent: s.parent, began: s.began, ended: nanos(at),
		shape: s.shape, flags: flagsOf(s.own.TraceFlags(), s.remote)}, s.fields)
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
	if s.over {
		return
	}
	for i := range all {
		if s.shape.Has(all[i].Key) {
			s.fields = append(s.fields, s.shape.Encoded(encodeShape)...)
			s.shape = nil
		}
		s.fields = without(s.fields, all[i].Key)
	}
	s.fields = appendAttributes(s.fields, fieldAttribute, all)
}

// Add implements tracing.Shaped.
func (s *span) Add(a attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.fields = appendAttribute(s.fields, fieldAttribute, a)
	}
}

// AddEvent implements trace.Span.
func (s *span) AddEvent(name string, opts ...trace.EventOption) {
	config := trace.NewEventConfig(opts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.events++; s.events > maxEvents {
		return
	}
	s.fields = appendMessage(s.fields, 11, func(b []byte) []byte {
		b = appendFixed(b, 1, nanos(config.Timestamp()))
		b = appendString(b, 2, name)
		return appendAttributes(b, 3, config.Attributes())
	})
}
