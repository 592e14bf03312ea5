// Package tracing starts the router's spans and propagates their context. names.go has all names.
//
// A [Tracer] is a value. Its zero value starts no spans. If nothing is exported, Start costs one comparison;
// [Tracer.Root] still gives a query its trace id. Content, such as arguments and results, is recorded only if
// enabled, and redacted. Texts that others choose are cut, which bounds the bytes of a span. The package is safe for
// concurrent use and starts no goroutines.
package tracing

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxContent limits the bytes of each recorded content.
const maxContent = 8 << 10

// maxName limits the bytes of untrusted names in span names and attributes.
const maxName = 200

// Tracer starts spans.
type Tracer struct {
	tracer  trace.Tracer // nil = no spans
	on      bool
	content func(text string) string
}

// New returns a Tracer. exported reports whether spans of tracer are exported. content redacts recorded queries,
// arguments and results; nil records none.
func New(tracer trace.Tracer, exported bool, content func(text string) string) Tracer {
	return Tracer{tracer, exported, content}
}

// On reports whether spans are exported. If not, Start returns spans that do nothing.
func (t Tracer) On() bool { return t.on }

// Starts reports whether Start starts a span. It does not below a span of this process that is not sampled, because no
// sampler of the SDK would sample its children.
func (t Tracer) Starts(ctx context.Context) bool {
	if !t.on {
		return false
	}
	parent := trace.SpanFromContext(ctx)
	own := parent.SpanContext()
	return !own.IsValid() || own.IsRemote() || parent.IsRecording()
}

// Start starts a child of the span in ctx.
func (t Tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !t.Starts(ctx) {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, name, opts...)
}

// Root is like Start, but gives ctx a trace id even if spans are not exported.
func (t Tracer) Root(
	ctx context.Context, name string, opts ...trace.SpanStartOption,
) (_ context.Context, _ trace.Span, id trace.TraceID) {
	known := trace.SpanContextFromContext(ctx)
	if t.tracer == nil || known.IsValid() && !t.Starts(ctx) {
		return ctx, noop.Span{}, known.TraceID()
	}
	ctx, span := t.tracer.Start(ctx, name, opts...)
	return ctx, span, span.SpanContext().TraceID()
}

// Lazy is a span that starts with the first part of its work. A nil Lazy is no span.
type Lazy struct {
	start func() trace.Span
	once  sync.Once
	span  trace.Span // nil until it starts; stays nil if it ends first
}

// Lazy returns an unstarted child of the span in ctx.
func (t Tracer) Lazy(ctx context.Context, name string, opts ...trace.SpanStartOption) *Lazy {
	if !t.Starts(ctx) {
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

// Name returns the name of a span with a target, which may be untrusted.
func Name(what, target string) string {
	if target == "" {
		return cut(what, maxName)
	}
	return cut(what, maxName) + " " + cut(target, maxName)
}

// Text returns an attribute with an untrusted name as its value.
func Text(key attribute.Key, name string) attribute.KeyValue { return key.String(cut(name, maxName)) }

// cut shortens text to limit and makes it valid UTF-8, because exporters refuse other text. The result does not
// retain the memory of a long text.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = strings.Clone(texts.Prefix(text, limit))
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// With returns the option that sets attributes at the start of a span, where samplers see them.
func With(attributes ...attribute.KeyValue) trace.SpanStartEventOption {
	return trace.WithAttributes(attributes...)
}

// Named returns the name of the tool or prompt that a request names; empty for other requests. It does not read what
// follows the name, such as long arguments.
func Named(method string, params []byte) (name string) {
	if method != "tools/call" && method != "prompts/get" {
		return ""
	}
	jsonrpc.Members(params, func(member []byte, value jsonrpc.Span) bool {
		if string(member) != "name" {
			return true
		}
		name = jsonrpc.Text(value.Of(params))
		return false
	})
	return name
}

// Target returns the attributes for the tool or prompt that a request names.
func Target(method, name string) []attribute.KeyValue {
	switch {
	case name == "":
		return nil
	case method == "prompts/get":
		return []attribute.KeyValue{Text(PromptName, name)}
	}
	return []attribute.KeyValue{Text(ToolName, name), Operation.String(OperationTool)}
}

// Resource records the URI of the resource that a request names, if content is enabled.
func (t Tracer) Resource(span trace.Span, method string, params []byte) {
	if t.content != nil && strings.HasPrefix(method, "resources/") {
		t.Content(span, ResourceURI, []byte(jsonrpc.Text(jsonrpc.Get(params, "uri"))))
	}
}

// maxCode limits the bytes of the code of a JSON-RPC error, which should be a small integer.
const maxCode = 20

// Code returns the attribute for the raw code of a JSON-RPC error.
func Code(code []byte) attribute.KeyValue { return StatusCode.String(cut(string(code), maxCode)) }

// TypeOfCode returns the error type of a JSON-RPC error: its raw code if specifications define it, else ErrorOther,
// because servers may send any code.
func TypeOfCode(code []byte) string {
	switch string(code) {
	case "-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32020", "-32022", "-32042":
		return string(code)
	}
	return ErrorOther
}

// Fail marks a span as failed with an error type from a small set. The message counts as content, because servers,
// tools and models write it.
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

// redact returns redacted content. It reads no more of a long text than it may need.
func (t Tracer) redact(text string, limit int) string {
	return cut(t.content(texts.Prefix(text, 2*maxContent)), limit)
}

// Content records text if content is enabled.
func (t Tracer) Content(span trace.Span, key attribute.Key, text []byte) {
	if t.content != nil && len(text) > 0 && span.IsRecording() {
		span.SetAttributes(key.String(t.redact(string(text[:min(len(text), 2*maxContent)]), maxContent)))
	}
}

// Call is a call of a tool in a message.
type Call struct{ Name, Arguments string }

// Message records one message of a conversation in the format of the conventions, if content is enabled. Calls that
// do not fit are left out.
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
