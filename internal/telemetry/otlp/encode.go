package otlp

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of fields are those of opentelemetry/proto/trace/v1/trace.proto and its common and resource parts.

// Flags of spans and links beside those of W3C.
const (
	flagHasRemote = 0x100 // it is known whether the parent is remote,
	flagRemote    = 0x200 // and it is
)

// appendMessage appends a field with a message.
func appendMessage(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	begin := len(b)
	b = body(b)
	length := len(b) - begin
	var room [10]byte
	size := protowire.SizeVarint(uint64(length))
	b = append(b, room[:size]...)
	copy(b[begin+size:], b[begin:begin+length])
	protowire.AppendVarint(b[:begin], uint64(length))
	return b
}

func appendString(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return appendBytes(b, field, text)
}

func appendBytes[T string | []byte](b []byte, field protowire.Number, bytes T) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return append(protowire.AppendVarint(b, uint64(len(bytes))), bytes...)
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendTime(b []byte, field protowire.Number, t time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), nanos(t))
}

func appendFlags(b []byte, field protowire.Number, flags trace.TraceFlags, remote bool) []byte {
	all := uint32(flags) | flagHasRemote
	if remote {
		all |= flagRemote
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), all)
}

func appendAttributes(b []byte, field protowire.Number, all []attribute.KeyValue) []byte {
	for i := range all {
		var room [64]byte // most values fit
		value := appendValue(room[:0], all[i].Value)
		key := string(all[i].Key)
		size := 2 + protowire.SizeBytes(len(key)) + protowire.SizeBytes(len(value)) // and two tags of one byte
		b = protowire.AppendTag(b, field, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
		b = appendBytes(appendBytes(b, 1, key), 2, value)
	}
	return b
}

// appendValue appends the field of a value; lists, which our spans do not have, are written as text.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return appendNumber(b, 2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return appendNumber(b, 3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.STRING:
		return appendBytes(b, 1, v.AsString())
	}
	return appendBytes(b, 1, v.String())
}

// appendSpan appends a span that has ended as a field of ScopeSpans.
func appendSpan(b []byte, s *span, ended time.Time) []byte {
	return appendMessage(b, 2, func(b []byte) []byte {
		trace, id := s.own.TraceID(), s.own.SpanID()
		b = appendBytes(b, 1, trace[:])
		b = appendBytes(b, 2, id[:])
		b = appendString(b, 3, s.own.TraceState().String())
		if s.parent.HasSpanID() {
			id := s.parent.SpanID()
			b = appendBytes(b, 4, id[:])
		}
		b = appendString(b, 5, s.name)
		b = appendNumber(b, 6, uint64(s.kind)) // the numbers are the same
		b = appendTime(b, 7, s.began)
		b = appendTime(b, 8, ended)
		b = appendAttributes(b, 9, s.attributes)
		for i := range s.events {
			b = appendMessage(b, 11, func(b []byte) []byte {
				b = appendTime(b, 1, s.events[i].at)
				b = appendString(b, 2, s.events[i].name)
				return appendAttributes(b, 3, s.events[i].attributes)
			})
		}
		if s.dropped > 0 {
			b = appendNumber(b, 12, uint64(s.dropped))
		}
		for i := range s.links {
			b = appendMessage(b, 13, func(b []byte) []byte { return appendLink(b, s.links[i]) })
		}
		b = appendStatus(b, s.status, s.description)
		return appendFlags(b, 16, s.own.TraceFlags(), s.parent.IsRemote())
	})
}

func appendLink(b []byte, l trace.Link) []byte {
	trace, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
	b = appendBytes(b, 1, trace[:])
	b = appendBytes(b, 2, id[:])
	b = appendString(b, 3, l.SpanContext.TraceState().String())
	b = appendAttributes(b, 4, l.Attributes)
	return appendFlags(b, 6, l.SpanContext.TraceFlags(), l.SpanContext.IsRemote())
}

func appendStatus(b []byte, status codes.Code, description string) []byte {
	numbers := map[codes.Code]uint64{codes.Ok: 1, codes.Error: 2} // not those of the package
	if status == codes.Unset {
		return b
	}
	return appendMessage(b, 15, func(b []byte) []byte {
		return appendNumber(appendString(b, 2, description), 3, numbers[status])
	})
}

// envelope is what is around the spans of a request.
type envelope struct{ resource, scope, schema []byte }

func newEnvelope(about *resource.Resource, scope string) envelope {
	return envelope{
		resource: appendMessage(nil, 1, func(b []byte) []byte { return appendAttributes(b, 1, about.Attributes()) }),
		scope:    appendMessage(nil, 1, func(b []byte) []byte { return appendString(b, 1, scope) }),
		schema:   appendString(nil, 3, about.SchemaURL()),
	}
}

// around returns TracesData with encoded spans.
func (e envelope) around(spans []byte) []byte {
	b := make([]byte, 0, len(spans)+len(e.resource)+len(e.scope)+len(e.schema)+64)
	return appendMessage(b, 1, func(b []byte) []byte {
		b = append(b, e.resource...)
		b = appendMessage(b, 2, func(b []byte) []byte { return append(append(b, e.scope...), spans...) })
		return append(b, e.schema...)
	})
}
