package downstream

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// trace starts a span for each attempt. Only steps of a plan send their trace context to the server: requests
// forwarded for clients stay unchanged.
func (c *calls) trace(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		ctx, span := c.startSpan(ctx, r)
		defer span.End()
		if r.Step {
			own := *r
			own.Params = tracing.Inject(ctx, r.Params)
			r = &own
		}
		reply, err := next(ctx, r)
		if span.IsRecording() {
			c.describe(span, reply, err)
		}
		return reply, err
	}
}

func (c *calls) startSpan(ctx context.Context, r *Request) (context.Context, trace.Span) {
	if !c.opts.Tracer.Starts(ctx) {
		return ctx, noop.Span{}
	}
	name := r.Tool
	if name == "" {
		name = tracing.Named(r.Method, r.Params)
	}
	ctx, span := c.opts.Tracer.Start(ctx, tracing.Name(r.Method, name), trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		attributes := append(tracing.Target(r.Method, name), tracing.Text(tracing.MethodName, r.Method),
			tracing.Server.String(r.Server), tracing.Attempt.Int(*r.Attempts))
		span.SetAttributes(append(attributes, r.server.Where...)...)
		c.opts.Tracer.Resource(span, r.Method, r.Params)
	}
	return ctx, span
}

// describe records in a span how its attempt ended.
func (c *calls) describe(span trace.Span, reply link.Reply, err error) {
	if reply.Err != nil {
		span.SetAttributes(tracing.Code(jsonrpc.Get(reply.Err, "code")))
	}
	kind := errorType(reply, err)
	switch {
	case kind == "":
	case err != nil:
		c.opts.Tracer.Fail(span, kind, err.Error())
	default:
		c.opts.Tracer.Fail(span, kind, jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	}
}
