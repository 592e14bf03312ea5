package otlp

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// ExportSpans sends spans of one tracer.
func (c *Client) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: spans[0].InstrumentationScope().Name}}
	for _, s := range spans {
		scope.Spans = append(scope.Spans, encodeSpan(s))
	}
	about := spans[0].Resource()
	return c.send(ctx, &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: encodeResource(about), SchemaUrl: about.SchemaURL(), ScopeSpans: []*tracepb.ScopeSpans{scope}}}})
}

func encodeSpan(s sdktrace.ReadOnlySpan) *tracepb.Span {
	own, parent, status := s.SpanContext(), s.Parent(), s.Status()
	traceID, id := own.TraceID(), own.SpanID()
	out := &tracepb.Span{
		TraceId: traceID[:], SpanId: id[:], TraceState: own.TraceState().String(), Flags: flags(own, parent),
		Name: s.Name(), Kind: tracepb.Span_SpanKind(s.SpanKind()), // equal numbers
		StartTimeUnixNano: nanos(s.StartTime()), EndTimeUnixNano: nanos(s.EndTime()),
		Attributes: encodeAttributes(s.Attributes()), Status: &tracepb.Status{Message: status.Description},
		DroppedAttributesCount: uint32(s.DroppedAttributes()), DroppedEventsCount: uint32(s.DroppedEvents()),
		DroppedLinksCount: uint32(s.DroppedLinks()),
	}
	if parentID := parent.SpanID(); parentID.IsValid() {
		out.ParentSpanId = parentID[:]
	}
	switch status.Code {
	case codes.Ok:
		out.Status.Code = tracepb.Status_STATUS_CODE_OK
	case codes.Error:
		out.Status.Code = tracepb.Status_STATUS_CODE_ERROR
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, &tracepb.Span_Event{TimeUnixNano: nanos(e.Time), Name: e.Name,
			Attributes: encodeAttributes(e.Attributes), DroppedAttributesCount: uint32(e.DroppedAttributeCount)})
	}
	for _, l := range s.Links() {
		traceID, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		out.Links = append(out.Links, &tracepb.Span_Link{TraceId: traceID[:], SpanId: id[:],
			TraceState: l.SpanContext.TraceState().String(), Flags: flags(l.SpanContext, l.SpanContext),
			Attributes: encodeAttributes(l.Attributes), DroppedAttributesCount: uint32(l.DroppedAttributeCount)})
	}
	return out
}

// flags returns the flags of a span or link. They tell whether other, the parent or the linked span, is remote.
func flags(own, other trace.SpanContext) uint32 {
	all := uint32(own.TraceFlags()) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if other.IsRemote() {
		all |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return all
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func encodeResource(about *resource.Resource) *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: encodeAttributes(about.Attributes())}
}

func encodeAttributes(all []attribute.KeyValue) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, len(all))
	for i, a := range all {
		out[i] = &commonpb.KeyValue{Key: string(a.Key), Value: encodeValue(a.Value)}
	}
	return out
}

// encodeValue converts the value of an attribute. Lists, which the router's attributes do not have, become text.
func encodeValue(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.STRING:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.AsString()}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.String()}}
}
