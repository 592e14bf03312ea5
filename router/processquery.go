package router

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/synth"
)

const (
	maxStepResult = 8 << 10 // bytes of a step's result in the answer, unless detail is full
	maxBlocks     = 32      // content blocks of tools that are passed on
	maxBlockBytes = 8 << 20 // total size of these blocks
)

// AnswerContent is the structuredContent of process_query.
type AnswerContent struct {
	Answer        string           `json:"answer"`
	Degraded      bool             `json:"degraded"`
	NeedsApproval bool             `json:"needs_approval,omitempty"`
	Unmet         []plan.Unmet     `json:"unmet"`
	Warnings      []string         `json:"warnings"`
	TraceID       string           `json:"trace_id"`
	Plan          plan.Plan        `json:"plan"`
	Steps         []StepResult     `json:"steps"`
	Citations     []synth.Citation `json:"citations"`
	Usage         struct {
		Planner     llm.Usage `json:"planner"`
		Synthesizer llm.Usage `json:"synthesizer"`
	} `json:"usage"`
	Timings struct {
		Plan       float64 `json:"plan_ms"`
		Execute    float64 `json:"execute_ms"`
		Synthesize float64 `json:"synthesize_ms"`
		Total      float64 `json:"total_ms"`
	} `json:"timings"`
}

// StepResult is the outcome of one step, or of one call of a loop. Times are in milliseconds; StartedMS counts from
// the start of the query.
type StepResult struct {
	ID        string          `json:"id"`
	Index     *int            `json:"index,omitempty"` // of the element, in a loop
	Tool      string          `json:"tool"`
	Server    string          `json:"server"`
	Arguments json.RawMessage `json:"arguments"`
	Success   bool            `json:"success"`
	Skipped   bool            `json:"skipped,omitempty"`
	Result    json.RawMessage `json:"result"`
	Truncated bool            `json:"truncated,omitempty"`
	Error     *plan.Error     `json:"error,omitempty"`
	Attempts  int             `json:"attempts"`
	Started   float64         `json:"started_ms"`
	Duration  float64         `json:"duration_ms"`
	Tries     []plan.Try      `json:"-"`
}

// Content returns the record as structured content. full leaves results of steps uncut.
func (r *Record) Content(full bool) *AnswerContent {
	c := &AnswerContent{
		Answer: r.Answer.Text, Degraded: r.Answer.Degraded, NeedsApproval: r.NeedsApproval,
		Unmet: append([]plan.Unmet{}, r.Unmet...), TraceID: r.TraceID,
		Warnings: append([]string{}, r.Warnings...), Steps: []StepResult{},
		Citations: append([]synth.Citation{}, r.Answer.Citations...),
	}
	if c.Plan = r.WholePlan(); r.NeedsApproval {
		c.Plan.Steps, c.Plan.Approval = withAfter(r.pending.Steps), r.pending.Approval
	}
	for _, o := range r.Outcomes {
		for _, call := range o.Calls() {
			s := stepResult(call, full)
			if len(o.Elements) > 0 {
				s.Index = &call.Index
			}
			c.Steps = append(c.Steps, s)
		}
	}
	for i, o := range r.Dropped {
		o.Step.ID = fmt.Sprintf("%s-early-%d", o.Step.ID, i+1) // differs from every id of the plan
		c.Steps = append(c.Steps, stepResult(o, full))
	}
	c.Usage.Planner, c.Usage.Synthesizer = r.PlannerUsage, r.Answer.Usage
	c.Timings.Plan, c.Timings.Execute = milliseconds(r.Timings.Planning), milliseconds(r.Timings.Executing)
	c.Timings.Synthesize, c.Timings.Total = milliseconds(r.Timings.Synthesizing), milliseconds(r.Timings.Total)
	return c
}

// WholePlan returns the plan of all rounds. Content omits writes that were already made from a plan that waits for
// approval.
func (r *Record) WholePlan() plan.Plan {
	p := r.Plan
	p.Steps = withAfter(p.Steps)
	return p
}

// withAfter returns copies of steps whose nil After is encoded as an empty JSON list.
func withAfter(steps []plan.Step) []plan.Step {
	out := make([]plan.Step, len(steps))
	for i, s := range steps {
		if s.After == nil {
			s.After = []string{}
		}
		out[i] = s
	}
	return out
}

func stepResult(o plan.Outcome, full bool) StepResult {
	limit := maxStepResult
	if full {
		limit = 0
	}
	s := StepResult{
		ID: o.Step.ID, Tool: o.Step.Tool, Server: o.Step.Server, Arguments: o.Step.Arguments, Success: o.OK(),
		Skipped:  o.Skipped,
		Attempts: o.Attempts, Tries: o.Tries, Started: milliseconds(o.Started), Duration: milliseconds(o.Duration),
	}
	s.Result, s.Error, s.Truncated = o.Shown(limit)
	if o.Sent != nil {
		s.Arguments = o.Sent
	}
	return s
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// processQuery serves process_query.
func (f *Frontend) processQuery(ctx context.Context, x *edge.Exchange, args arguments) ([]byte, error) {
	q, full, err := readQuery(args)
	if err != nil {
		return nil, err
	}
	if err := edge.AsTask(x); err != nil {
		return nil, err
	}
	q.Origin = execution.Origin{
		Visible: x.Visible, Profile: profileOf(x), Client: clientOf(x), Caller: x.Caller.ID, Header: x.Header,
		Login: x.Caller.Login, Logins: edge.Logins(x, true),
		Ask: asker(x), Yield: edge.Yield(x), Hold: x.Hold, Surface: x.Surface,
	}
	if meta := jsonrpc.Get(x.Message.Params, "_meta"); meta != nil {
		q.Origin.Meta = tracing.Without(jsonrpc.Remove(meta, "progressToken")) // each step gets its own trace context
	}
	q.Elicit, q.Sampling = elicitor(x), sampler(x)
	if send := x.Progress(); send != nil {
		q.Report = NewReporter(send)
		defer q.Report.Close()
	}
	record, err := f.router.Query(ctx, *q)
	if err != nil {
		return nil, err
	}
	blocks, left := passedOn(record.Outcomes)
	if left > 0 {
		record.Warnings = append(record.Warnings,
			fmt.Sprintf("left out %d images or links of tools: an answer has %d of them, of %d MiB, at most", left, maxBlocks, maxBlockBytes>>20))
	}
	return result(record.Answer.Text, record.Content(full), blocks...), nil
}

func readQuery(args arguments) (q *Query, full bool, err error) {
	if !args.given("query") {
		return nil, false, refuse("Invalid argument: query is required")
	}
	q = &Query{}
	detail := ""
	for _, read := range []func() error{
		func() (err error) { q.Text, err = args.text("query"); return },
		func() (err error) { q.Context, err = args.conversation("context"); return },
		func() (err error) { q.Servers, err = args.texts("servers"); return },
		func() (err error) { q.DryRun, err = args.flag("dry_run"); return },
		func() (err error) { q.MaxRounds, err = args.count("max_rounds", 1); return },
		func() (err error) { q.Timeout, err = args.seconds("timeout_seconds"); return },
		func() (err error) { detail, err = args.text("detail"); return },
	} {
		if err := read(); err != nil {
			return nil, false, err
		}
	}
	switch {
	case q.MaxRounds > 10:
		return nil, false, refuse("Invalid argument: max_rounds must be at most 10")
	case detail != "" && detail != "brief" && detail != "full":
		return nil, false, refuse("Invalid argument: detail must be brief or full")
	}
	if args.given("plan") {
		q.Plan = args["plan"]
	}
	return q, detail == "full", nil
}

// passedOn returns the images and links that tools returned, up to maxBlocks and maxBlockBytes, and the number left
// out.
func passedOn(outcomes []plan.Outcome) (blocks []any, left int) {
	bytes := 0
	for _, o := range outcomes {
		for _, c := range o.Calls() {
			for _, raw := range c.Blocks {
				if len(blocks) == maxBlocks || bytes+len(raw) > maxBlockBytes {
					left++
					continue
				}
				bytes += len(raw)
				blocks = append(blocks, raw)
			}
		}
	}
	return blocks, left
}
