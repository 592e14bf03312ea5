package downstream

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// trace starts a span for each attempt. Only steps of a plan send their trace context to the server: requests
// forwarded for clients stay unchanged.
func (c *calls) trace(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		on := c.opts.Tracer.On()
		var span tracing.Shaped
		if on {
			shape := r.server.shapes.Of([4]string{r.Method, r.Tool}, r.shape)
			ctx, span = c.opts.Tracer.StartShaped(ctx, shape, nil, time.Now(), tracing.Attempt.Int(*r.Attempts))
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

// shape returns the shared shape of the spans of similar attempts.
func (r *Request) shape() *tracing.Shape {
	out := []attribute.KeyValue{tracing.Text(tracing.MethodName, r.Method), tracing.Server.String(r.Server)}
	if r.Tool != "" {
		out = append(out, tracing.Text(tracing.ToolName, r.Tool), tracing.Operation.String(tracing.OperationTool))
	}
	return &tracing.Shape{Name: tracing.Name(r.Method, r.Tool), Kind: trace.SpanKindClient,
		Attributes: append(out, r.server.where...)}
}

// maxCode limits the length in bytes of a JSON-RPC error code, which should be a small integer.
const maxCode = 20

// describe records in a span how its attempt ended.
func (c *calls) describe(span trace.Span, reply link.Reply, err error) {
	if reply.Err != nil {
		span.SetAttributes(tracing.StatusCode.String(short.Prefix(string(jsonrpc.Get(reply.Err, "code")), maxCode)))
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
