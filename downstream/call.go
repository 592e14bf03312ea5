package downstream

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

func newCalls(opts *Options, servers *servers, clients *clients) *calls {
	c := &calls{opts: opts, servers: servers, clients: clients}
	c.chain = c.authorize(c.observe(c.limitTime(c.bridge(c.subscriptions(c.admit(c.retry(c.trace(c.send))))))))
	return c
}

// authorize finds the server. It treats servers and tools that the caller may not use as unknown.
func (c *calls) authorize(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		s, err := c.serverFor(r)
		if err != nil {
			return link.Reply{}, err
		}
		own := *r // later middleware may change this copy
		own.server = s
		return next(ctx, &own)
	}
}

// observe measures the call with all its attempts.
func (c *calls) observe(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		if r.Attempts == nil {
			r.Attempts = new(int)
		}
		began := time.Now()
		reply, err := next(ctx, r)
		took := time.Since(began)
		r.server.health.observed(took, err)
		outcome := cmp.Or(errorType(reply, err), OutcomeOK)
		c.opts.Observe(Observation{
			Server: r.Server, Outcome: outcome, Duration: took, Attempts: *r.Attempts, Method: r.Method, Waited: r.waited(),
			Tool: r.Tool, Listed: r.Tool != "" && r.server.lists(r.Tool),
			Caller: r.Caller, Step: r.Step, Began: began, Bytes: len(reply.Result),
		})
		return reply, err
	}
}

// waited returns how long the request waited in the server's queue.
func (r *Request) waited() time.Duration {
	if r.place == nil {
		return 0
	}
	return r.place.Waited
}

// OutcomeOK is the outcome of a call that succeeded.
const OutcomeOK = "ok"

// errorType returns why a call failed: a reason of package [reason] or a JSON-RPC error code. It is empty on success.
func errorType(reply link.Reply, err error) string {
	switch {
	case err != nil:
		return reasonOf(err)
	case reply.Err != nil:
		return tracing.TypeOfCode(jsonrpc.Get(reply.Err, "code"))
	case reply.Names.Has(jsonrpc.NameIsError) && string(jsonrpc.Get(reply.Result, "isError")) == "true":
		return reason.ToolError
	}
	return ""
}

func reasonOf(err error) string {
	var failure *link.Failure
	var input *InputError
	switch {
	case errors.As(err, &failure):
		return failure.Reason
	case errors.As(err, &input) && input.Declined:
		return reason.Declined
	case input != nil:
		return reason.ToolError
	case errors.Is(err, context.DeadlineExceeded): // of the query
		return reason.Timeout
	}
	return reason.Cancelled
}

// send makes one attempt.
func (c *calls) send(ctx context.Context, r *Request) (link.Reply, error) {
	sl := r.server.slot(r.owner())
	sl.callers.add(r.Caller)
	session, err := sl.connect(ctx)
	if err != nil {
		if failure, ok := errors.AsType[*link.Failure](err); ok {
			// The failure is that of the handshake, not of the call.
			unsent := *failure
			unsent.Delivered, unsent.Lost, unsent.Unknown = false, false, false
			err = &unsent
		}
		return link.Reply{}, err
	}
	if c.opts.Tracer.On() {
		trace.SpanFromContext(ctx).SetAttributes(tracing.ProtocolVersion.String(session.Version))
	}
	call := &link.Call{
		Method: r.Method, Params: r.Params, Progress: r.Progress, Sent: r.Sent, Streams: r.Streams, Reserve: r.Reserve,
		Client: r.Client, Caller: r.Caller, Gone: r.Gone, Header: r.server.config.forwarded(r.Header),
		Origin: &origin{client: r.Client, ask: r.Ask, notify: r.Notify, pause: r.pause, place: r.place, ctx: ctx},
	}
	if r.Tool != "" && session.ChecksParamHeaders() {
		return callMirrored(ctx, sl, session, call, r.Tool)
	}
	return session.Call(ctx, call)
}

// callMirrored calls a tool of a server that compares HTTP headers with the params they repeat (MCP 2026-07-28). The
// header names come from the tool's definition, which is listed if it is unknown. A server that refuses the headers
// has not run the tool, so the tool is listed again, and called again if its headers have changed.
func callMirrored(
	ctx context.Context, sl *slot, session *link.Session, call *link.Call, tool string,
) (link.Reply, error) {
	if sl.lists.tool(tool) == nil {
		if _, err := sl.lists.get(ctx, "tools/list", forRouter); err != nil && ctx.Err() != nil {
			return link.Reply{}, context.Cause(ctx)
		}
	}
	forwarded := call.Header
	call.Header = sl.lists.tool(tool).ParamHeaders(forwarded, call.Params)
	reply, err := session.Call(ctx, call)
	if err != nil || string(jsonrpc.Get(reply.Err, "code")) != strconv.Itoa(jsonrpc.CodeHeaderMismatch) {
		return reply, err
	}
	if _, err := sl.lists.get(ctx, "tools/list", forClient); err != nil {
		return reply, nil
	}
	again := *call
	again.Header = sl.lists.tool(tool).ParamHeaders(forwarded, call.Params)
	if maps.EqualFunc(call.Header, again.Header, slices.Equal) {
		return reply, nil
	}
	return session.Call(ctx, &again)
}
