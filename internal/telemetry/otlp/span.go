package otlp

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// maxEvents bounds the events of a span. It is the SDK's default.
const maxEvents = 128

// span is recorded until it ends. It does nothing for the methods of trace.Span that the router does not use.
type span struct {
	noop.Span
	queue       *queue
	own, parent trace.SpanContext
	kind        trace.SpanKind
	began       time.Time

	mu          sync.Mutex
	ended       bool
	name        string
	attributes  []attribute.KeyValue
	events      []event
	dropped     int // events
	links       []trace.Link
	status      codes.Code
	description string
}

type event struct {
	name       string
	at         time.Time
	attributes []attribute.KeyValue
}

// SpanContext implements trace.Span.
func (s *span) SpanContext() trace.SpanContext { return s.own }

// IsRecording implements trace.Span.
func (s *span) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

// End implements trace.Span.
func (s *span) End(...trace.SpanEndOption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		s.queue.add(s, time.Now())
	}
}

// SetName implements trace.Span.
func (s *span) SetName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
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

// SetAttributes implements trace.Span. It keeps the slice, which the caller must not change.
func (s *span) SetAttributes(all ...attribute.KeyValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attributes) == 0 {
		s.attributes = all
		return
	}
	kept := make([]attribute.KeyValue, 0, len(s.attributes)+len(all)) // those of the start may be shared
	for _, kv := range s.attributes {
		if !slices.ContainsFunc(all, func(o attribute.KeyValue) bool { return o.Key == kv.Key }) {
			kept = append(kept, kv)
		}
	}
	s.attributes = append(kept, all...)
}

// AddEvent implements trace.Span.
func (s *span) AddEvent(name string, opts ...trace.EventOption) {
	config := trace.NewEventConfig(opts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == maxEvents {
		s.dropped++
		return
	}
	s.events = append(s.events, event{name, config.Timestamp(), config.Attributes()})
}
