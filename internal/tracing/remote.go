package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// _meta members and headers of W3C Trace Context. SEP-414 defines their use in MCP.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
	baggage     = "baggage"
)

// Remote is the trace context of a request, from its raw _meta and its HTTP headers.
type Remote struct {
	Parent, State []byte      // of _meta; nil if absent
	Header        http.Header // may be nil
}

// Sent reports whether the request has a trace context.
func (r Remote) Sent() bool { return r.Parent != nil || r.Header["Traceparent"] != nil }

// Context returns ctx with the remote span as parent, and spans to link. _meta takes precedence over headers, which
// may come from an intermediate hop. For untrusted callers both become links, so that they cannot join or sample
// traces of others. Malformed values are ignored.
func (r Remote) Context(ctx context.Context, trusted bool) (context.Context, []trace.Link) {
	sent := r.Header["Traceparent"]
	var found []trace.SpanContext
	if r.Parent != nil {
		found = extract(found, jsonrpc.Text(r.Parent), jsonrpc.Text(r.State))
	}
	if len(sent) == 1 {
		found = extract(found, sent[0], r.Header.Get(tracestate))
	}
	if trusted && len(found) > 0 {
		ctx, found = trace.ContextWithRemoteSpanContext(ctx, found[0]), found[1:]
	}
	var links []trace.Link
	for _, c := range found {
		links = append(links, trace.Link{SpanContext: c})
	}
	return ctx, links
}

// maxState limits the bytes of a tracestate, which spans retain. The standard requires at least 512.
const maxState = 2 << 10

func extract(to []trace.SpanContext, parent, state string) []trace.SpanContext {
	if len(state) > maxState {
		state = ""
	}
	carrier := propagation.MapCarrier{traceparent: parent, tracestate: state}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier)
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		return append(to, c)
	}
	return to
}

// Without returns a raw _meta without trace context and baggage; nil if nothing else remains.
func Without(meta []byte) []byte {
	for _, name := range []string{traceparent, tracestate, baggage} {
		meta = jsonrpc.Remove(meta, name)
	}
	return meta
}

// Inject returns raw params with the trace context of ctx in their _meta.
func Inject(ctx context.Context, params []byte) []byte {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return params
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	meta := jsonrpc.Get(params, "_meta")
	if len(meta) == 0 || meta[0] != '{' {
		meta = []byte("{}")
	}
	for _, name := range []string{traceparent, tracestate} {
		if value := carrier[name]; value != "" {
			meta = jsonrpc.Set(meta, name, []byte(jsonrpc.StringID(value)))
		}
	}
	return jsonrpc.Set(params, "_meta", meta)
}
