// Package execution runs the plan of a query: it checks the steps, starts each as soon as its inputs are available,
// and calls the tools.
//
// An Executor is safe for concurrent use. Execute returns once every step has its outcome. Speculate starts steps
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
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
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
	MaxParallel int             // concurrent steps per query; 0 = the default
	Validator   *plan.Validator // nil creates one; share it to share compiled schemas
	Logger      *slog.Logger    // nil discards
	Tracer      tracing.Tracer

	// Learn receives the arguments and the value of each successful step. It must not block; nil = unused.
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

// New returns an Executor.
func New(opts Options) *Executor {
	x := &Executor{servers: opts.Servers, maxParallel: opts.MaxParallel, validator: opts.Validator,
		logger: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), tracer: opts.Tracer, learn: opts.Learn}
	x.maxParallel = cmp.Or(max(x.maxParallel, 0), downstream.DefaultExecution().MaxParallel)
	if x.validator == nil {
		x.validator = plan.NewValidator()
	}
	return x
}

// Request is a plan to run, with the data of its query.
type Request struct {
	Plan        plan.Plan
	Problems    []plan.Problem // steps that must fail
	Catalog     *downstream.Catalog
	Origin      Origin
	Confirm     Confirm // asked before each call; nil allows all
	Progress    progress.Func
	Began       time.Time
	Done        []plan.Outcome // of earlier rounds
	Speculation *Speculation   // steps started while the plan was written; nil = none
	Results     *Budget        // bytes of results of all rounds; nil = no limit
	Calls       *Budget        // calls of all rounds; nil = no limit
	Span        *tracing.Lazy  // parent of step spans; nil = the context's span
}

// Origin describes for whom the steps of a query run.
type Origin struct {
	Visible downstream.Visible
	Client  string           // session of the client
	Caller  string           // charged for the steps: an API key or a remote address
	Header  http.Header      // of the client's HTTP request, see downstream.Request
	Meta    []byte           // raw _meta for each step, or nil
	Ask     downstream.Asker // answers requests of servers; nil = unsupported
	Hold    downstream.Hold  // charges results to the caller while they are read; nil = no charge
}

// Confirm asks whether a tool may be called once with each of these final arguments; it may ask the user. An error
// becomes the error of the step. It must be safe for concurrent use.
type Confirm func(ctx context.Context, tool *downstream.Tool, calls []json.RawMessage) *plan.Error

// since returns the time since the query began.
func (r *Request) since() time.Duration { return time.Since(r.Began) }

// Execute runs the steps of a checked plan as soon as their inputs are available and returns one outcome per step, in
// plan order. A failed step fails only the steps that depend on it.
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

// MaxCalls is the maximum number of calls of one query.
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

// Check resolves the tools of a plan and returns its problems. done are the outcomes of earlier rounds, to which the
// plan may refer.
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

// step calls the tool of one step within its own span.
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
		Params:  catalog.Params(tool.Tool.Tool, arguments, r.Origin.Meta),
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
			Message: "the results of this query exceed limits.query_bytes in total; ask for less",
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
		out.Err = &plan.Error{Reason: reason.Protocol, Message: fmt.Sprintf("invalid tool result: %v", err)}
	case isError:
		out.Err = &plan.Error{Reason: reason.ToolError, Message: cmp.Or(text, "the tool failed without saying why")}
	default:
		out.Value, out.Text, out.Blocks = value, text, blocks
	}
}

// StepError returns the error of a step whose call ended with err.
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
