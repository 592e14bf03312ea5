package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// toolCall is a call of the tool of a step, or of one element of a loop.
type toolCall struct {
	step      plan.Step
	tool      plan.Tool
	arguments json.RawMessage // final
	from      downstream.Provenance
	report    ProgressFunc
}

// traced makes a call within a span of its own.
func (r *Round) traced(ctx context.Context, c toolCall) plan.Outcome {
	tracer, step := r.opts.Tracer, c.step
	ctx, span := tracer.Start(ctx, tracing.Name(tracing.SpanTool, step.Tool))
	defer span.End()
	if running := r.req.Running; running != nil {
		running(step.Tool, +1)
		defer running(step.Tool, -1)
	}
	out := r.call(ctx, c)
	if span.IsRecording() {
		span.SetAttributes(tracing.Operation.String(tracing.OperationTool), tracing.Text(tracing.ToolName, step.Tool),
			tracing.Server.String(step.Server), tracing.Text(tracing.Step, step.ID), tracing.Attempts.Int(out.Attempts))
		tracer.Content(span, tracing.ToolArguments, c.arguments)
		tracer.Content(span, tracing.ToolResult, out.Value)
		if out.Err != nil {
			tracer.Fail(span, out.Err.Reason, out.Err.Message)
		}
	}
	return out
}

// call makes a call.
func (r *Round) call(ctx context.Context, c toolCall) plan.Outcome {
	tool, arguments := c.tool, c.arguments
	c.from.Step = true
	out := plan.Outcome{Step: c.step, Sent: arguments}
	charge := &charge{hold: r.req.Origin.Hold}
	defer charge.end()
	reply, err := r.opts.Servers.Call(ctx, &downstream.Request{
		Server: tool.Server, Tool: tool.Tool, Method: "tools/call", Provenance: c.from,
		Params:  catalog.Params(tool.Tool, arguments, r.req.Origin.Meta),
		Visible: r.req.Origin.Visible, Client: r.req.Origin.Client, Caller: r.req.Origin.Caller, Attempts: &out.Attempts,
		Login: r.req.Origin.Login,
		Hooks: downstream.Hooks{
			Logins: r.req.Origin.Logins,
			Ask:    r.req.Origin.Ask, Yield: r.req.Origin.Yield, Header: r.req.Origin.Header, Reserve: charge.reserve,
			Progress: func(params []byte) {
				var p struct {
					Progress, Total float64
					Message         string
				}
				if json.Unmarshal(params, &p) == nil {
					c.report(Fraction(p.Progress, p.Total), p.Message)
				}
			},
			Tried: func(began time.Time, err error) {
				try := plan.Try{Started: began.Sub(r.req.Began), Duration: time.Since(began)}
				if err != nil {
					try.Reason = StepError(err).Reason
				}
				out.Tries = append(out.Tries, try)
			},
		},
	})
	switch {
	case err != nil:
		out.Err = StepError(err)
	case !r.req.Results.take(len(reply.Result) + len(reply.Err)):
		out.Err = &plan.Error{
			Reason:  reason.TooLarge,
			Message: "the results of this query exceed limits.query_bytes in total; ask for less",
		}
	case reply.Err != nil:
		out.Err = &plan.Error{Reason: reason.ToolError, Message: jsonrpc.Text(jsonrpc.Get(reply.Err, "message"))}
	default:
		readResult(&out, reply.Result)
		if r.opts.Learn != nil && out.OK() {
			r.opts.Learn(tool, c.from.Carries, arguments, out.Value)
		}
	}
	if out.Err != nil {
		out.Err.Message = r.opts.Mask.Text(out.Err.Message) // before anything cuts it
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
		out.Value, out.Blocks = value, blocks
	}
}

// charge charges a response to its caller while it is read.
type charge struct {
	hold downstream.Hold // nil = no charge

	mu       sync.Mutex
	total    int
	releases []func()
	ended    bool
}

// reserve implements downstream.Hooks.Reserve. A response read again after a failed attempt is charged once.
func (c *charge) reserve(total int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	if c.hold == nil || total <= c.total {
		return true
	}
	release, ok := c.hold(total - c.total)
	if ok {
		c.total = total
		c.releases = append(c.releases, release)
	}
	return ok
}

// end releases the charges.
func (c *charge) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, release := range c.releases {
		release()
	}
}
