// Package tracing starts the spans of the router and carries their context over the wire. names.go has every name.
//
// A [Tracer] is a value. Its zero value starts no spans. Where nothing is exported, Start costs a comparison;
// [Tracer.Root] still gives a query its trace id. Content, such as arguments and results, is recorded only where that
// is enabled, and redacted. Everything here is safe for concurrent use and starts no goroutine.
package tracing

import (
	"context"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// maxContent bounds each recorded content in bytes.
const maxContent = 8 << 10

// maxName bounds names that others choose, in those of spans and in attributes, in bytes.
const maxName = 200

// Tracer starts spans.
type Tracer struct {
	tracer  trace.Tracer // nil = no spans
	shaper  Shaper       // nil = tracer is none
	on      bool
	content func(text string) string
}

// New returns a Tracer. exported tells whether spans of tracer go anywhere. content redacts what is recorded of
// queries, arguments and results; nil records nothing of them.
func New(tracer trace.Tracer, exported bool, content func(text string) string) Tracer {
	shaper, _ := tracer.(Shaper)
	return Tracer{tracer, shaper, exported, content}
}

// On reports whether spans are exported. If not, the spans of Start do nothing.
func (t Tracer) On() bool { return t.on }

// Start begins a span within that of ctx.
func (t Tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !t.on {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, name, opts...)
}

// Root is Start, and gives a context without a trace id one even if spans are not exported.
func (t Tracer) Root(
	ctx context.Context, name string, opts ...trace.SpanStartOption,
) (_ context.Context, _ trace.Span, id trace.TraceID) {
	known := trace.SpanContextFromContext(ctx)
	if t.tracer == nil || !t.on && known.IsValid() {
		return ctx, noop.Span{}, known.TraceID()
	}
	ctx, span := t.tracer.Start(ctx, name, opts...)
	return ctx, span, span.SpanContext().TraceID()
}

// Name returns the name of a span about a target, which others may have chosen.
func Name(what, target string) string {
	if target == "" {
		return cut(what, maxName)
	}
	return cut(what, maxName) + " " + cut(target, maxName)
}

// Text is an attribute with a name that others may have chosen.
func Text(key attribute.Key, name string) attribute.KeyValue { return key.String(cut(name, maxName)) }

// cut bounds text, and makes it valid UTF-8: exporters refuse other text. What is left of a long text does not keep the
// whole in memory.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = strings.Clone(short.Prefix(text, limit))
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// With is the option that gives a span its attributes at the start, where samplers see them.
func With(attributes ...attribute.KeyValue) trace.SpanStartEventOption {
	return trace.WithAttributes(attributes...)
}

// TypeOfCode returns the type of a JSON-RPC error: its raw code if specifications define that, else ErrorOther, because
// servers may send any.
func TypeOfCode(code []byte) string {
	switch string(code) {
	case "-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32020", "-32022", "-32042":
		return string(code)
	}
	return ErrorOther
}

// Fail marks a span as failed with a type of error from a small set. The message is content: servers, tools and models
// wrote it.
func (t Tracer) Fail(span trace.Span, errorType, message string) {
	if !span.IsRecording() {
		return
	}
	if t.content == nil {
		message = ""
	} else {
		message = t.redact(message, maxContent)
	}
	span.SetAttributes(ErrorType.String(errorType))
	span.SetStatus(codes.Error, message)
}

// redact returns content as it is recorded. It reads no more than it may need of a long text.
func (t Tracer) redact(text string, limit int) string {
	return cut(t.content(short.Prefix(text, 2*maxContent)), limit)
}

// Content records text, if content is enabled.
func (t Tracer) Content(span trace.Span, key attribute.Key, text []byte) {
	if t.content != nil && len(text) > 0 && span.IsRecording() {
		span.SetAttributes(key.String(t.redact(string(text[:min(len(text), 2*maxContent)]), maxContent)))
	}
}

// Call is a call of a tool in a message.
type Call struct{ Name, Arguments string }

// Message records one message of a conversation in the form of the conventions, if content is enabled. Calls for which
// there is no room are left out.
func (t Tracer) Message(span trace.Span, key attribute.Key, role, text string, calls ...Call) {
	if t.content == nil || !span.IsRecording() {
		return
	}
	type part struct {
		Type      string `json:"type"`
		Content   string `json:"content,omitempty"`
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments,omitempty"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	room := maxContent
	take := func(text string) string {
		text = t.redact(text, room)
		room -= len(text)
		return text
	}
	var parts []part
	if text != "" || len(calls) == 0 {
		parts = append(parts, part{Type: "text", Content: take(text)})
	}
	for _, c := range calls {
		if room == 0 {
			break
		}
		parts = append(parts, part{Type: "tool_call", Name: take(c.Name), Arguments: take(c.Arguments)})
	}
	raw, err := json.Marshal([]message{{role, parts}})
	if err == nil {
		span.SetAttributes(key.String(string(raw)))
	}
}
