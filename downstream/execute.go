package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/agenticnexus/agenticnexus/downstream/dataflow"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
)

// Execution is a plan to run and what its steps need to know of the query.
type Execution struct {
	Plan     plan.Plan
	Problems []plan.Problem // steps that must fail
	Catalog  *Catalog
	Visible  Visible
	Meta     []byte // raw _meta for each step, or nil
	Client   string
	Caller   string // as of Request
	Ask      Asker
	Confirm  func(ctx context.Context, tool *Tool, arguments []byte) error // before a destructive tool; nil = do not ask
	Progress progress.Func
	Began    time.Time
	Done     []plan.Outcome // of earlier rounds
	Early    *Early         // what was started while the plan was written; nil = nothing
}

// since returns the time since the query began.
func (e *Execution) since() time.Duration { return time.Since(e.Began) }

// Execute runs the steps of a checked plan as their data allows and returns one outcome a step, in the
// plan's order. A failed step fails what depends on it and nothing else.
func (m *Manager) Execute(ctx context.Context, e Execution) []plan.Outcome {
	return dataflow.Run(ctx, e.Plan, dataflow.Options{
		MaxParallel: m.opts.Execution.MaxParallel,
		Problems:    e.Problems,
		Done:        e.Done,
		Progress:    e.Progress,
		Log:         m.opts.Logger,
		Elapsed:     e.since,
		Validate: func(step plan.Step, arguments json.RawMessage) *plan.Error {
			tool, err := e.Catalog.Lookup(step.Tool, e.Visible)
			if err != nil {
				return err
			}
			return m.validator.Validate(tool.InputSchema, arguments)
		},
		Call: func(ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome {
			if outcome, ok := e.Early.take(ctx, step, arguments, report); ok {
				return outcome
			}
			return m.step(ctx, &e, step, arguments, report)
		},
	})
}

// Check resolves the tools of a plan and finds what is wrong with it. done are the outcomes of earlier
// rounds, which the plan may refer to.
func (m *Manager) Check(p *plan.Plan, catalog *Catalog, visible Visible, done []plan.Outcome) []plan.Problem {
	return plan.Check(p, m.validator, func(name string) (plan.Tool, *plan.Error) {
		t, err := catalog.Lookup(name, visible)
		if err != nil {
			return plan.Tool{}, err
		}
		return t.Tool, nil
	}, done)
}

// step calls the tool of one step.
func (m *Manager) step(ctx context.Context, e *Execution, step plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome {
	out := plan.Outcome{Step: step, Sent: arguments}
	tool, unknown := e.Catalog.Lookup(step.Tool, e.Visible)
	if unknown != nil {
		out.Err = unknown
		return out
	}
	if e.Confirm != nil && tool.Annotations.Destructive() {
		if err := e.Confirm(ctx, tool, arguments); err != nil {
			out.Err = &plan.Error{Reason: plan.ReasonDeclined, Message: err.Error()}
			return out
		}
	}
	reply, err := m.Call(ctx, &Request{
		Server: tool.Server, Tool: tool.Tool.Tool, Method: "tools/call", Step: true,
		Params:  stepParams(ctx, tool.Tool.Tool, arguments, e.Meta),
		Visible: e.Visible, Client: e.Client, Caller: e.Caller, Ask: e.Ask, Attempts: &out.Attempts,
		Progress: func(params []byte) {
			var p struct {
				Progress, Total float64
				Message         string
			}
			if json.Unmarshal(params, &p) == nil {
				report(progress.Fraction(p.Progress, p.Total), p.Message)
			}
		},
	})
	switch {
	case err != nil:
		out.Err = stepError(err)
	case reply.Err != nil:
		out.Err = &plan.Error{Reason: plan.ReasonToolError, Message: jsonrpc.Text(jsonrpc.Get(reply.Err, "message"))}
	default:
		readResult(&out, reply.Result)
	}
	return out
}

// stepParams are the params of a step's call: the query's own _meta, and the trace context.
func stepParams(ctx context.Context, tool string, arguments, meta []byte) []byte {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for name, value := range carrier {
		meta = jsonrpc.Set(meta, name, []byte(jsonrpc.StringID(value)))
	}
	params := append([]byte(`{"name":`), jsonrpc.StringID(tool)...)
	params = append(append(params, `,"arguments":`...), arguments...)
	if meta != nil {
		params = append(append(params, `,"_meta":`...), meta...)
	}
	return append(params, '}')
}

func readResult(out *plan.Outcome, result json.RawMessage) {
	value, text, blocks, isError, err := plan.ValueOf(result)
	switch {
	case err != nil:
		out.Err = &plan.Error{Reason: link.ReasonProtocol, Message: fmt.Sprintf("the result is no tool result: %v", err)}
	case isError:
		if text == "" {
			text = "the tool failed without saying why"
		}
		out.Err = &plan.Error{Reason: plan.ReasonToolError, Message: text}
	default:
		out.Value, out.Text, out.Blocks = value, text, blocks
	}
}

func stepError(err error) *plan.Error {
	var failure *link.Failure
	var unknown *UnknownError
	var input *InputError
	switch {
	case errors.As(err, &input) && input.Declined:
		return &plan.Error{Reason: plan.ReasonDeclined, Message: input.Error()}
	case errors.As(err, &input):
		return &plan.Error{Reason: plan.ReasonToolError, Message: input.Error()}
	case errors.As(err, &unknown):
		return &plan.Error{Reason: plan.ReasonUnknownTool, Message: unknown.Error()}
	case errors.As(err, &failure) && failure.Reason == link.ReasonTimeout:
		return &plan.Error{Reason: failure.Reason, Message: failure.Message}
	case errors.As(err, &failure):
		return &plan.Error{Reason: failure.Reason, Message: failure.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &plan.Error{Reason: link.ReasonTimeout, Message: "the query's time was up"}
	}
	return &plan.Error{Reason: plan.ReasonCancelled, Message: "cancelled: " + err.Error()}
}
