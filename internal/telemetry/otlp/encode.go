package otlp

import (
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers are those of opentelemetry/proto/trace/v1/trace.proto and its common and resource parts.

// fieldAttribute is the field number of a span's attributes.
const fieldAttribute = 9

// Flags of spans and links in addition to those of W3C.
const (
	flagHasRemote = 0x100 // flagRemote is valid
	flagRemote    = 0x200 // the parent is remote
)

// appendMessage appends a field that contains a message.
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

func appendFixed(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), n)
}

// flagsOf returns the flags of a span or link; remote tells whether the parent or the linked span is.
func flagsOf(flags trace.TraceFlags, remote bool) uint32 {
	all := uint32(flags) | flagHasRemote
	if remote {
		all |= flagRemote
	}
	return all
}

// appendShape appends the fields that spans may share.
func appendShape(b []byte, name string, kind trace.SpanKind, all []attribute.KeyValue) []byte {
	b = appendString(b, 5, name)
	b = appendNumber(b, 6, uint64(kind)) // equal numbers
	return appendAttributes(b, fieldAttribute, all)
}

func appendAttributes(b []byte, field protowire.Number, all []attribute.KeyValue) []byte {
	for i := range all {
		b = appendAttribute(b, field, all[i])
	}
	return b
}

func appendAttribute(b []byte, field protowire.Number, a attribute.KeyValue) []byte {
	key, value := string(a.Key), &a.Value
	text, number := "", uint64(0)
	size := 0 // size of the value including its tag
	switch value.Type() {
	case attribute.BOOL:
		size = 2
	case attribute.INT64:
		number = uint64(value.AsInt64())
		size = 1 + protowire.SizeVarint(number)
	case attribute.FLOAT64:
		size = 9
	case attribute.STRING:
		text = value.AsString()
		size = 1 + protowire.SizeBytes(len(text))
	default: // lists, which the router's spans do not have, become text
		text = value.String()
		size = 1 + protowire.SizeBytes(len(text))
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(key))+1+protowire.SizeBytes(size)))
	b = appendBytes(b, 1, key)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.BytesType), uint64(size))
	switch value.Type() {
	case attribute.BOOL:
		return appendNumber(b, 2, protowire.EncodeBool(value.AsBool()))
	case attribute.INT64:
		return appendNumber(b, 3, number)
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(value.AsFloat64()))
	}
	return appendBytes(b, 1, text)
}

// without removes an attribute from the encoded fields of a span.
func without(fields []byte, key attribute.Key) []byte {
	for at := 0; at < len(fields); {
		field, kind, tag := protowire.ConsumeTag(fields[at:])
		end := at + tag + protowire.ConsumeFieldValue(field, kind, fields[at+tag:])
		if field == fieldAttribute {
			pair, _ := protowire.ConsumeBytes(fields[at+tag:])
			if has, _ := protowire.ConsumeBytes(pair[1:]); string(has) == string(key) {
				return append(fields[:at], fields[end:]...)
			}
		}
		at = end
	}
	return fields
}

func appendLink(b []byte, l trace.Link) []byte {
	trace, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
	b = appendBytes(b, 1, trace[:])
	b = appendBytes(b, 2, id[:])
	b = appendString(b, 3, l.SpanContext.TraceState().String())
	b = appendAttributes(b, 4, l.Attributes)
	flags := flagsOf(l.SpanContext.TraceFlags(), l.SpanContext.IsRemote())
	return protowire.AppendFixed32(protowire.AppendTag(b, 6, protowire.Fixed32Type), flags)
}

func appendStatus(b []byte, status codes.Code, description string) []byte {
	if status == codes.Unset {
		return b
	}
	number := uint64(1) // numbers differ from those of the package
	if status == codes.Error {
		number = 2
	}
	return appendMessage(b, 15, func(b []byte) []byte {
		return appendNumber(appendString(b, 2, description), 3, number)
	})
}
