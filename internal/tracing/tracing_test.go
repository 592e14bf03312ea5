package tracing_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

const (
	inMeta   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	inHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// _meta wins over headers; callers that are not trusted get links; what is malformed is ignored.
func TestRemote(t *testing.T) {
	meta, header := []byte(`"`+inMeta+`"`), http.Header{"Traceparent": {inHeader}}
	for _, row := range []struct {
		name   string
		remote tracing.Remote
		trust  bool
		parent string // span id
		links  string
	}{
		{"nothing", tracing.Remote{Header: http.Header{}}, true, "", ""},
		{"of _meta", tracing.Remote{Parent: meta}, true, "00f067aa0ba902b7", ""},
		{"of the header", tracing.Remote{Header: header}, true, "b7ad6b7169203331", ""},
		{"of both", tracing.Remote{Parent: meta, Header: header}, true, "00f067aa0ba902b7", "b7ad6b7169203331"},
		{"not trusted", tracing.Remote{Parent: meta, Header: header}, false, "", "00f067aa0ba902b7 b7ad6b7169203331"},
		{"malformed", tracing.Remote{Parent: []byte(`"00-zz-1-1"`), Header: header}, true, "b7ad6b7169203331", ""},
		{"no string", tracing.Remote{Parent: []byte(`[1]`)}, true, "", ""},
		{"two headers", tracing.Remote{Header: http.Header{"Traceparent": {inHeader, inHeader}}}, true, "", ""},
	} {
		ctx, links := row.remote.Context(t.Context(), row.trust)
		parent := ""
		if c := trace.SpanContextFromContext(ctx); c.IsValid() {
			parent = c.SpanID().String()
		}
		var ids []string
		for _, l := range links {
			ids = append(ids, l.SpanContext.SpanID().String())
		}
		if got := strings.Join(ids, " "); parent != row.parent || got != row.links {
			t.Errorf("%s: got the parent %q and the links %q, want %q and %q", row.name, parent, got, row.parent, row.links)
		}
	}
}

func TestInject(t *testing.T) {
	ctx, _ := tracing.Remote{Parent: []byte(`"` + inMeta + `"`), State: []byte(`"v=1"`)}.Context(t.Context(), true)
	for params, want := range map[string]string{
		`{"name":"x"}`: `{"_meta":{"tracestate":"v=1","traceparent":"` + inMeta + `"},"name":"x"}`,
		`{"_meta":{"traceparent":"old","big":9007199254740993}}`: `{"_meta":{"tracestate":"v=1","traceparent":"` + inMeta + `","big":9007199254740993}}`,
		`{"_meta":null}`: `{"_meta":{"tracestate":"v=1","traceparent":"` + inMeta + `"}}`,
	} {
		if got := string(tracing.Inject(ctx, []byte(params))); got != want {
			t.Errorf("%s: got %s, want %s", params, got, want)
		}
		if got := string(tracing.Inject(t.Context(), []byte(params))); got != params {
			t.Errorf("%s without a trace: got %s, want it unchanged", params, got)
		}
	}
	if got := string(tracing.Without([]byte(`{"traceparent":"a","tracestate":"b","baggage":"c","user":"u"}`))); got != `{"user":"u"}` {
		t.Errorf("Without: got %s, want the user alone", got)
	}
}

// recorder returns a Tracer whose spans are kept.
func recorder(content func(string) string) (tracing.Tracer, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	return tracing.New(provider.Tracer("test"), true, content), spans
}

// Content and messages of failures are recorded only if that is enabled, redacted and cut.
func TestContent(t *testing.T) {
	redact := func(text string) string { return strings.ReplaceAll(text, "key", "***") }
	for _, content := range []func(string) string{nil, redact} {
		tracer, spans := recorder(content)
		_, span := tracer.Start(t.Context(), "x")
		tracer.Content(span, tracing.ToolResult, []byte("the key "+strings.Repeat("x", 1<<20)))
		tracer.Message(span, tracing.InputMessages, "user", "my key")
		tracer.Message(span, tracing.OutputMessages, "assistant", "", tracing.Call{Name: "f", Arguments: "a key"},
			tracing.Call{Name: "long", Arguments: strings.Repeat("x", 1<<20)}, tracing.Call{Name: "beyond"})
		tracer.Fail(span, "timeout", "no key")
		span.End()
		got := spans.GetSpans()[0]
		text := ""
		for _, kv := range got.Attributes {
			text += string(kv.Key) + "=" + kv.Value.String() + "\n"
		}
		text += got.Status.Description
		on := content != nil
		if strings.Contains(text, "gen_ai.tool.call.result=the ***") != on || strings.Contains(text, `"content":"my ***"`) != on ||
			strings.Contains(text, `[{"type":"tool_call","name":"f","arguments":"a ***"},{"type":"tool_call","name":"long"`) != on ||
			strings.Contains(text, "no ***") != on || strings.Contains(text, "key ") || strings.Contains(text, "beyond") || len(text) > 20<<10 {
			t.Errorf("content %t: got %d bytes, %.300s", on, len(text), text)
		}
		if got.Status.Code != codes.Error || !strings.Contains(text, "error.type=timeout") {
			t.Errorf("got the status %v, want an error of type timeout", got.Status)
		}
	}
}

// Without an exporter spans do nothing, not even to a span of the program around the router.
func TestOff(t *testing.T) {
	outer, spans := recorder(nil)
	ctx, span := outer.Start(t.Context(), "outer")
	var off tracing.Tracer
	inner, none := off.Start(ctx, "inner")
	none.SetName("other")
	none.End()
	if _, _, id := off.Root(ctx, "root"); id != span.SpanContext().TraceID() || inner != ctx || len(spans.GetSpans()) > 0 {
		t.Errorf("got the trace id %s and %d ended spans, want %s and none", id, len(spans.GetSpans()), span.SpanContext().TraceID())
	}
	lazy := off.Lazy(ctx, "lazy")
	if lazy.Within(ctx) != ctx {
		t.Error("a lazy span that is off changes the context")
	}
	lazy.End()
}

// Below a span that is not sampled none starts, and the context keeps its trace.
func TestNotSampled(t *testing.T) {
	tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test"), true, nil)
	ctx, span, id := tracer.Root(t.Context(), "root")
	if !id.IsValid() || span.IsRecording() || tracer.Starts(ctx) {
		t.Fatalf("got the trace id %s, recording %t, children %t; want an id alone", id, span.IsRecording(), tracer.Starts(ctx))
	}
	inner, _ := tracer.Start(ctx, "inner")
	again, _, same := tracer.Root(ctx, "again")
	if inner != ctx || again != ctx || same != id || tracer.Lazy(ctx, "lazy").Within(ctx) != ctx {
		t.Error("got another context, want that of the root")
	}
}

// A lazy span begins with its first use, once, and never after its end.
func TestLazy(t *testing.T) {
	tracer, spans := recorder(nil)
	unused := tracer.Lazy(t.Context(), "unused")
	unused.End()
	if ctx := unused.Within(t.Context()); trace.SpanContextFromContext(ctx).IsValid() {
		t.Error("a lazy span begins after its end")
	}
	used := tracer.Lazy(t.Context(), "used")
	one, other := used.Within(t.Context()), used.Within(context.Background())
	used.End()
	if !trace.SpanContextFromContext(one).Equal(trace.SpanContextFromContext(other)) {
		t.Error("a lazy span began twice")
	}
	if got := spans.GetSpans(); len(got) != 1 || got[0].Name != "used" {
		t.Errorf("got %d spans, want the used one", len(got))
	}
}

func TestTypeOfCode(t *testing.T) {
	for code, want := range map[string]string{"-32602": "-32602", "-32000": "-32000", "7": "_OTHER", `"x"`: "_OTHER", "": "_OTHER"} {
		if got := tracing.TypeOfCode([]byte(code)); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
}

// What others choose is cut in spans, and what is left does not keep the whole in memory: a queue of spans would hold
// as many requests. Of a huge text no more is redacted than may be recorded.
func TestLongNames(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const spans = 100
	var kept []sdktrace.ReadOnlySpan
	redacted := 0
	tracer, _ := recorder(func(text string) string {
		redacted = max(redacted, len(text))
		return text
	})
	for range spans {
		huge := strings.Repeat("x", 1<<20)
		remote := tracing.Remote{Parent: []byte(`"` + inMeta + `"`), State: []byte(`"v=1` + strings.Repeat(",", 1<<20) + `"`)}
		ctx, _ := remote.Context(t.Context(), true)
		_, span := tracer.Start(ctx, tracing.Name(huge, huge), tracing.With(tracing.Text(tracing.ToolName, huge)))
		tracer.Content(span, tracing.ToolResult, []byte(huge))
		tracer.Message(span, tracing.InputMessages, "user", huge)
		tracer.Fail(span, "timeout", huge)
		kept = append(kept, span.(sdktrace.ReadOnlySpan))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > spans*64<<10 {
		t.Errorf("%d spans keep %d bytes, want at most 64 KiB each", len(kept), grown)
	}
	if n := len(kept[0].Name()); n > 500 || redacted > 64<<10 {
		t.Errorf("got a name of %d bytes, want at most 500; redacted %d bytes, want at most 64 KiB", n, redacted)
	}
	runtime.KeepAlive(kept)
}

// Exporters lose whole batches that have a text which is no UTF-8.
func TestInvalidText(t *testing.T) {
	tracer, spans := recorder(func(text string) string { return text })
	_, span := tracer.Start(t.Context(), tracing.Name("x\xff", "y\xff"), tracing.With(tracing.Text(tracing.ToolName, "z\xff")))
	tracer.Content(span, tracing.ToolResult, []byte("a\xff"))
	tracer.Fail(span, "timeout", "b\xff")
	span.End()
	got := spans.GetSpans()[0]
	text := got.Name + got.Status.Description
	for _, kv := range got.Attributes {
		text += kv.Value.String()
	}
	if !utf8.ValidString(text) {
		t.Errorf("got %q, want valid UTF-8", text)
	}
}
