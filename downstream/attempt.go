package downstream

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// trace starts a span for each attempt. Only steps of a plan send their trace context to the server: requests
// forwarded for clients stay unchanged.
func (c *calls) trace(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		on := c.opts.Tracer.On()
		var span tracing.Shaped
		if on {
			name := r.Tool
			if name == "" {
				name = tracing.Named(r.Method, r.Params)
			}
			shape := r.server.shapes.Of([4]string{r.Method, name}, func() *tracing.Shape { return r.shape(name) })
			ctx, span = c.opts.Tracer.StartShaped(ctx, shape, nil, time.Now(), tracing.Attempt.Int(*r.Attempts))
			c.opts.Tracer.Resource(span, r.Method, r.Params)
			defer span.End()
		}
		if r.Step {
			own := *r
			own.Params = tracing.Inject(ctx, r.Params)
			r = &own
		}
		reply, err := next(ctx, r)
		if on {
			c.describe(span, reply, err)
		}
		return reply, err
	}
}

// shape returns the shared shape of the spans of similar attempts. name is that of the tool or prompt.
func (r *Request) shape(name string) *tracing.Shape {
	out := []attribute.KeyValue{tracing.Text(tracing.MethodName, r.Method), tracing.Server.String(r.Server)}
	out = append(out, tracing.Target(r.Method, name)...)
	return &tracing.Shape{Name: tracing.Name(r.Method, name), Kind: trace.SpanKindClient,
		Attributes: append(out, r.server.where...)}
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
