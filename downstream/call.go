package downstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// Request is one request to a server.
type Request struct {
	Server  string
	Method  string
	Params  []byte // raw, with the server's own names
	Tool    string // the tool's own name, for tools/call
	Task    string // the tool whose call has begun the task that the request is about; empty = about none
	Client  string // the client session that causes it; empty for the router itself
	Caller  string // charged for the request: an API key or a remote address; empty for the router itself
	Login   string // whose login it uses at servers where callers have their own, see auth.Caller; empty = nobody's
	Proxied bool   // from a proxy surface: use the client's own session if the server has one per client
	Provenance
	Modern   bool // the client handles input_required results and tasks of a modern server itself
	Visible  Visible
	Attempts *int // incremented per call made; may be nil
	Hooks
	handling
}

// handling is what the middleware notes about a request.
type handling struct {
	pause   func() (resume func()) // pauses the time limit; set by limitTime
	permit  *admission.Permit      // of the server's queue; set by admit
	server  *server.Server         // handles the request; set by authorize and admit
	verdict *audit.Verdict         // the decision, for the audit log; nil = there is none
}

// Provenance tells what a call is decided on besides its server, tool and caller, see package trust. The zero value is
// that of a request that a client makes itself.
type Provenance struct {
	Rights       Rights   // of a caller with Visible, for what is no tool; nil = none
	Surface      string   // path that the client is connected to, or stdio; empty in a command
	Step         bool     // a step of a plan: the execution limits apply
	Profile      string   // router, proxy, server:NAME or the name of a profile
	Source       string   // trust.SourceModel, ...; empty = trust.SourceClient
	Round        int      // of the query, from 1; 0 without a plan
	Carries      []string // servers whose results the call carries, sorted
	AfterResults bool     // a model planned it after tools had answered
	Reads        bool     // the tool of a step only reads
	Destructive  bool     // the tool of a step is marked destructive
	Consent      string   // who approved the call before: "user" or "plan"; empty = nobody; see Refused
	Decided      bool     // another replica has made the decision, and has recorded it
}

// Hooks connect a request to its client. Each may be nil. They must not block, except Ask.
type Hooks struct {
	Progress func(params []byte)        // raw params of progress notifications
	Ask      Asker                      // answers the server's own requests
	Notify   func(jsonrpc.Message) bool // receives the call's other notifications; false = call is over
	Gone     func() bool                // the client's connection has ended
	Yield    func(server string)        // another client of the server waits to be asked
	Sent     func()                     // the request has been sent
	Streams  func()                     // the server answers with a stream
	Reserve  func(total int) bool       // charges the response to the caller before its memory is allocated
	Hold     Hold                       // charges data kept after the call
	Logins   string                     // URL of the page to log in to a server, whose name follows; empty = unknown
	Header   http.Header                // of the client's HTTP request; those in forward_headers are forwarded

	Tried func(began time.Time, err error) // an attempt has ended

	Confirm Confirm // nil = nobody can be asked
}

// Confirm asks the user before a call that needs consent. The error is a *ForbiddenError, or the cause of ctx.
type Confirm = func(ctx context.Context, d trust.Decision) error

// connection returns the connection that the request uses.
func (r *Request) connection() *server.Connection {
	if r.Proxied {
		return r.server.Connection(r.Client)
	}
	return r.server.Own
}

// resource returns the resource that a request names.
func (r *Request) resource() server.Resource {
	return server.Resource{Server: r.server.Key(), URI: jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))}
}

// callFunc sends a request and returns the response. Each middleware of callChain wraps another callFunc.
type callFunc func(ctx context.Context, r *Request) (link.Reply, error)

// callChain is the path of every request to a server: a chain of middleware.
type callChain struct {
	opts    *Options
	servers view
	clients *server.Clients
	policy  atomic.Pointer[trust.Policy] // nil = none
	chain   callFunc
}

func newCallChain(opts *Options, servers view, clients *server.Clients) *callChain {
	c := &callChain{opts: opts, servers: servers, clients: clients}
	attempts := c.elsewhere(c.retry(c.trace(c.send)))
	c.chain = c.authorize(c.observe(c.limitTime(c.bridge(loggingIn(servers.servers, c.subscriptions(c.admit(attempts)))))))
	return c
}

// authorize makes the decision on a call, once for all of its attempts and round trips.
func (c *callChain) authorize(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		own := *r // later middleware may change this copy
		if err := c.permit(ctx, &own); err != nil {
			return link.Reply{}, err
		}
		if r.Visible != nil && r.Rights != nil && r.Notify != nil {
			own.Notify = func(m jsonrpc.Message) bool { return !Hears(r.Rights, r.Server, m) || r.Notify(m) }
		}
		reply, err := next(ctx, &own)
		if own.Method == "tools/list" && err == nil {
			own.server.Pins.Passed(own.Params, reply.Result)
			if own.Modern && own.Header != nil || reply.Modern && own.server.Config.Type == server.TransportHTTP {
				reply.Result = own.server.Own.Lists.WithValidHeaders(reply.Result)
			}
		}
		return reply, err
	}
}

// admit makes calls wait in the server's fair queue. If a new configuration replaces the server while a call waits, the
// call moves to the successor.
func (c *callChain) admit(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		for {
			r.permit = new(admission.Permit)
			reply, err := r.server.Admit(ctx, r.permit, r.Caller, r.Client, func() (link.Reply, error) { return next(ctx, r) })
			if !errors.Is(err, admission.ErrRetired) {
				return reply, err
			}
			if err := c.permit(ctx, r); err != nil {
				return link.Reply{}, err
			}
		}
	}
}

// observe measures the call with all its attempts.
func (c *callChain) observe(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		if r.Attempts == nil {
			r.Attempts = new(int)
		}
		began := time.Now()
		reply, err := next(ctx, r)
		took := time.Since(began)
		r.server.Observed(took, err)
		outcome := cmp.Or(errorType(reply, err), OutcomeOK)
		if outcome != OutcomeOK || r.Task != "" && taskFailed(reply.Result) {
			reply = c.masked(reply)
		}
		c.opts.Observe(Observation{
			Server: r.Server, Outcome: outcome, Duration: took, Attempts: *r.Attempts, Method: r.Method, Waited: r.waited(),
			Tool: r.Tool, Listed: r.Tool != "" && r.server.Lists(r.Tool),
			Caller: r.Caller, Step: r.Step, Began: began, Bytes: len(reply.Result),
		})
		return reply, err
	}
}

// masked removes the secrets of the configuration from what a server says about a failure. Its other bytes stay.
func (c *callChain) masked(reply link.Reply) link.Reply {
	reply.Err, reply.Result = c.opts.Mask.KnownJSON(reply.Err), c.opts.Mask.KnownJSON(reply.Result)
	return reply
}

// waited returns how long the request waited in the server's queue.
func (r *Request) waited() time.Duration {
	if r.permit == nil {
		return 0
	}
	return r.permit.Waited
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
	var forbidden *ForbiddenError
	switch {
	case errors.As(err, &failure):
		return failure.Reason
	case errors.As(err, &forbidden):
		return forbidden.Kind()
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
func (c *callChain) send(ctx context.Context, r *Request) (link.Reply, error) {
	qs := &questions{Request: r}
	hooks := &server.CallHooks{Client: r.Client, Notify: r.Notify, Pause: r.pause, Permit: r.permit, Ctx: ctx}
	if r.Ask != nil {
		hooks.Ask = qs.ask
	}
	return qs.outcome(r.connection().Call(ctx, &link.Call{
		Method: r.Method, Params: r.announced(), Progress: r.Progress, Sent: r.Sent, Streams: r.Streams, Reserve: r.Reserve,
		Client: r.Client, Caller: r.Caller, Gone: r.Gone, Header: r.server.Config.Forwarded(r.Header),
		Crowded: qs.crowded, HandlerData: hooks,
	}, r.Tool))
}

// announced returns the params without capabilities of a client of 2026-07-28 that the server may not use: what
// the configuration forbids, and tasks where the client does not handle them itself.
func (r *Request) announced() []byte {
	tasks := !r.Modern && bytes.Contains(r.Params, []byte(protocol.ExtensionTasks))
	if r.server.Config.Requests == nil && !tasks {
		return r.Params
	}
	meta := jsonrpc.Get(r.Params, "_meta")
	capabilities := jsonrpc.Get(meta, mcp.MetaKeyClientCapabilities)
	if capabilities == nil {
		return r.Params
	}
	if extensions := jsonrpc.Get(capabilities, "extensions"); tasks && extensions != nil {
		capabilities = jsonrpc.Set(capabilities, "extensions", jsonrpc.Remove(extensions, protocol.ExtensionTasks))
	}
	meta = jsonrpc.Set(meta, mcp.MetaKeyClientCapabilities, r.server.Config.Announced(capabilities))
	return jsonrpc.Set(r.Params, "_meta", meta)
}

// trace starts a span for each attempt. Only steps of a plan send their trace context to the server: requests
// forwarded for clients stay unchanged.
func (c *callChain) trace(next callFunc) callFunc {
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

func (c *callChain) startSpan(ctx context.Context, r *Request) (context.Context, trace.Span) {
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
func (c *callChain) describe(span trace.Span, reply link.Reply, err error) {
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
