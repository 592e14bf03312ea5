// Package execution runs the plan of a query: it checks the steps, starts each once its inputs are there, and calls
// their tools.
//
// An Executor may be used from any goroutine. Execute returns once every step has its outcome. Speculate begins steps
// while their plan is still being written; the Speculation owns their goroutines until Stop.
package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

// Caller sends a request to a server. The errors are those of downstream.Manager.Call.
type Caller interface {
	Call(ctx context.Context, r *downstream.Request) (link.Reply, error)
}

// Options of an Executor. Only Servers is required.
type Options struct {
	Servers     Caller
	MaxParallel int             // steps of one query at a time; 0 = as documented
	Validator   *plan.Validator // nil makes one; sharing it shares compiled schemas
	Logger      *slog.Logger    // nil discards
	Tracer      tracing.Tracer

	// Learn gets the arguments and the value of each step that has succeeded; nil = nobody does. It does not block.
	Learn func(t plan.Tool, arguments, value json.RawMessage)
}

// Executor runs plans.
type Executor struct {
	servers     Caller
	maxParallel int
	validator   *plan.Validator
	logger      *slog.Logger
	tracer      tracing.Tracer
	learn       func(t plan.Tool, arguments, value json.RawMessage)
}

// New makes an Executor.
func New(opts Options) *Executor {
	x := &Executor{servers: opts.Servers, maxParallel: opts.MaxParallel, validator: opts.Validator,
		logger: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), tracer: opts.Tracer, learn: opts.Learn}
	x.maxParallel = cmp.Or(max(x.maxParallel, 0), downstream.DefaultExecution().MaxParallel)
	if x.validator == nil {
		x.validator = plan.NewValidator()
	}
	return x
}

// Request is a plan to run and what its steps need to know of the query.
type Request struct {
	Plan        plan.Plan
	Problems    []plan.Problem // steps that must fail
	Catalog     *downstream.Catalog
	Origin      Origin
	Confirm     Confirm // before each call; nil = any may be made
	Progress    progress.Func
	Began       time.Time
	Done        []plan.Outcome // of earlier rounds
	Speculation *Speculation   // what was started while the plan was written; nil = nothing
	Results     *Budget        // bytes of results, of all rounds; nil = no bound
	Calls       *Budget        // calls, of all rounds; nil = no bound
	Span        *tracing.Lazy  // of the spans of steps; nil = that of the context
}

// Origin is for whom the steps of a query run.
type Origin struct {
	Visible downstream.Visible
	Client  string           // session of the client
	Caller  string           // whose share of the servers the steps take: an API key or a remote address
	Header  http.Header      // of the client's HTTP request, see downstream.Request
	Meta    []byte           // raw _meta for each step, or nil
	Ask     downstream.Asker // answers requests of servers; nil = nobody
	Hold    downstream.Hold  // charges the caller for results while they are read; nil = nobody pays
}

// Confirm says whether a tool may be called with these final arguments, once for each of them, and may ask the user.
// The error is that of a step that may not run. It is called from many goroutines at once.
type Confirm func(ctx context.Context, tool *downstream.Tool, calls []json.RawMessage) *plan.Error

// since returns the time since the query began.
func (r *Request) since() time.Duration { return time.Since(r.Began) }

// Execute runs the steps of a checked plan as their data allows and returns one outcome a step, in the
// plan's order. A failed step fails what depends on it and nothing else.
func (x *Executor) Execute(ctx context.Context, r Request) []plan.Outcome {
	r.Speculation.drop(r.Plan)
	ctx = r.Span.Within(ctx)
	return dataflow.Run(ctx, r.Plan, dataflow.Options{
		MaxParallel: x.maxParallel,
		Problems:    r.Problems,
		Done:        r.Done,
		Progress:    r.Progress,
		Log:         x.logger,
		Elapsed:     r.since,
		Validate: func(step plan.Step, arguments json.RawMessage) *plan.Error {
			tool, err := r.Catalog.Lookup(step.Tool, r.Origin.Visible)
			if err != nil {
				return err
			}
			return x.validator.Validate(tool.InputSchema, arguments)
		},
		Hold:  r.Results.take,
		Allow: r.allow,
		Call: func(ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome {
			if outcome, ok := r.Speculation.take(ctx, step, arguments, report); ok {
				return outcome
			}
			return x.step(ctx, &r, step, arguments, report)
		},
	})
}

// MaxCalls is how many calls a query may make.
const MaxCalls = 10_000

// allow reports whether the calls of a step may be made.
func (r *Request) allow(ctx context.Context, step plan.Step, calls []json.RawMessage) *plan.Error {
	if !r.Calls.take(len(calls)) {
		return &plan.Error{Reason: reason.TooLarge, Message: fmt.Sprintf("a query makes at most %d calls; nothing was called", MaxCalls)}
	}
	if r.Confirm == nil {
		return nil
	}
	tool, err := r.Catalog.Lookup(step.Tool, r.Origin.Visible)
	if err != nil {
		return err
	}
	return r.Confirm(ctx, tool, calls)
}

// Check resolves the tools of a plan and finds what is wrong with it. done are the outcomes of earlier
// rounds, which the plan may refer to.
func (x *Executor) Check(
	p *plan.Plan, catalog *downstream.Catalog, visible downstream.Visible, done []plan.Outcome,
) []plan.Problem {
	return plan.Check(p, x.validator, func(name string) (plan.Tool, *plan.Error) {
		t, err := catalog.Lookup(name, visible)
		if err != nil {
			return plan.Tool{}, err
		}
		return t.Tool, nil
	}, done)
}

// step calls the tool of one step within a span of its own.
func (x *Executor) step(
	ctx context.Context, r *Request, step plan.Step, arguments json.RawMessage, report progress.Func,
) plan.Outcome {
	ctx, span := x.tracer.Start(ctx, tracing.Name(tracing.SpanTool, step.Tool))
	defer span.End()
	out := x.call(ctx, r, step, arguments, report)
	if span.IsRecording() {
		span.SetAttributes(tracing.Operation.String(tracing.OperationTool), tracing.Text(tracing.ToolName, step.Tool),
			tracing.Server.String(step.Server), tracing.Text(tracing.Step, step.ID), tracing.Attempts.Int(out.Attempts))
		x.tracer.Content(span, tracing.ToolArguments, arguments)
		x.tracer.Content(span, tracing.ToolResult, out.Value)
		if out.Err != nil {
			x.tracer.Fail(span, out.Err.Reason, out.Err.Message)
		}
	}
	return out
}

// call calls the tool of one step.
func (x *Executor) call(
	ctx context.Context, r *Request, step plan.Step, arguments json.RawMessage, report progress.Func,
) plan.Outcome {
	out := plan.Outcome{Step: step, Sent: arguments}
	tool, unknown := r.Catalog.Lookup(step.Tool, r.Origin.Visible)
	if unknown != nil {
		out.Err = unknown
		return out
	}
	release, err := r.Speculation.slot(ctx)
	if err != nil {
		out.Err = StepError(err)
		return out
	}
	defer release()
	answer := &reading{hold: r.Origin.Hold}
	defer answer.end()
	reply, err := x.servers.Call(ctx, &downstream.Request{
		Server: tool.Server, Tool: tool.Tool.Tool, Method: "tools/call", Step: true,
		Params:  downstream.ToolParams(tool.Tool.Tool, arguments, r.Origin.Meta),
		Visible: r.Origin.Visible, Client: r.Origin.Client, Caller: r.Origin.Caller, Attempts: &out.Attempts,
		Hooks: downstream.Hooks{Ask: r.Origin.Ask, Header: r.Origin.Header, Reserve: answer.reserve,
			Progress: func(params []byte) {
				var p struct {
					Progress, Total float64
					Message         string
				}
				if json.Unmarshal(params, &p) == nil {
					report(progress.Fraction(p.Progress, p.Total), p.Message)
				}
			}, Tried: func(began time.Time, err error) {
				try := plan.Try{Started: began.Sub(r.Began), Duration: time.Since(began)}
				if err != nil {
					try.Reason = StepError(err).Reason
				}
				out.Tries = append(out.Tries, try)
			}},
	})
	switch {
	case err != nil:
		out.Err = StepError(err)
	case !r.Results.take(len(reply.Result) + len(reply.Err)):
		out.Err = &plan.Error{
			Reason:  reason.TooLarge,
			Message: "the results of this query are larger together than limits.query_bytes allows; ask for less",
		}
	case reply.Err != nil:
		out.Err = &plan.Error{Reason: reason.ToolError, Message: jsonrpc.Text(jsonrpc.Get(reply.Err, "message"))}
	default:
		readResult(&out, reply.Result)
		if x.learn != nil && out.OK() {
			x.learn(tool.Tool, arguments, out.Value)
		}
	}
	return out
}

func readResult(out *plan.Outcome, result json.RawMessage) {
	value, text, blocks, isError, err := plan.ValueOf(result)
	switch {
	case err != nil:
		out.Err = &plan.Error{Reason: reason.Protocol, Message: fmt.Sprintf("the result is no tool result: %v", err)}
	case isError:
		out.Err = &plan.Error{Reason: reason.ToolError, Message: cmp.Or(text, "the tool failed without saying why")}
	default:
		out.Value, out.Text, out.Blocks = value, text, blocks
	}
}

// StepError is how a step fails whose call ended with err.
func StepError(err error) *plan.Error {
	var failure *link.Failure
	var unknown *downstream.UnknownError
	var input *downstream.InputError
	switch {
	case errors.As(err, &input) && input.Declined:
		return &plan.Error{Reason: reason.Declined, Message: input.Error()}
	case errors.As(err, &input):
		return &plan.Error{Reason: reason.ToolError, Message: input.Error()}
	case errors.As(err, &unknown):
		return &plan.Error{Reason: reason.UnknownTool, Message: unknown.Error()}
	case errors.As(err, &failure) && failure.Reason == reason.Timeout:
		return &plan.Error{Reason: failure.Reason, Message: failure.Message}
	case errors.As(err, &failure):
		return &plan.Error{Reason: failure.Reason, Message: failure.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &plan.Error{Reason: reason.Timeout, Message: "the query's time was up"}
	}
	return &plan.Error{Reason: reason.Cancelled, Message: "cancelled: " + err.Error()}
}
