package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/synth"
)

// job is one query on its way. It belongs to one goroutine.
type job struct {
	*Router
	q       Query
	given   *plan.Plan // replaces the planner; nil = plan
	visible downstream.Visible
	catalog *downstream.Catalog
	began   time.Time
	record  *Record
	note    string // what the planner wants said
	forms   int    // that the user was asked to fill in
	tokens  int    // that planning has used
}

// round is one planning round and what belongs to it.
type round struct {
	number, of int
	replan     bool // the round before failed or found nothing
	plan       plan.Plan
	problems   []plan.Problem
	begun      *execution.Speculation // steps that began while the plan was written
	outcomes   []plan.Outcome
}

// work plans and executes, round by round.
func (j *job) work(ctx context.Context) (err error) {
	if j.catalog, err = j.available(ctx); err != nil {
		return fmt.Errorf("listing the tools: %w", err)
	}
	lost := missing(j.catalog, j.visible)
	names := make([]string, len(lost))
	for i, m := range lost {
		names[i] = m.Server
		j.record.Warnings = append(j.record.Warnings, fmt.Sprintf("the tools of server %s could not be listed: %s", m.Server, m.Message))
	}
	if len(lost) > 0 && !j.catalog.SeesAny(j.visible) && j.given == nil {
		j.record.Answer.Degraded = true
		j.note = "No server could be listed: " + strings.Join(names, ", ") + "."
		return nil
	}
	rounds := j.opts.Planning.MaxRounds
	if j.q.MaxRounds > 0 {
		rounds = j.q.MaxRounds
	}
	lo := atExecuting
	r := &round{number: 1, of: rounds}
	for more := true; more && ctx.Err() == nil; {
		if more, lo, err = j.round(ctx, r, lo); err != nil {
			return err
		}
		next := &round{number: r.number + 1, of: rounds}
		if !more && j.unsatisfied(r) {
			more, next.replan = true, true
		}
		r = next
	}
	if len(j.record.Outcomes) > 0 {
		j.q.Report.station(atExecuted, "All tools complete")
	}
	return nil
}

// available returns the tools of all servers. Planning searches them, a given plan does not.
func (j *job) available(ctx context.Context) (*downstream.Catalog, error) {
	if j.given != nil {
		return j.Router.catalog(ctx)
	}
	return j.searchable(ctx)
}

// round plans once and runs the plan, whose progress covers lo to hi. more asks for another round.
func (j *job) round(ctx context.Context, r *round, lo float64) (more bool, hi float64, err error) {
	r.begun = j.executor.Speculate(ctx, j.request())
	defer r.begun.Stop()
	if err := j.plan(ctx, r); err != nil {
		return false, lo, err
	}
	j.complete(ctx, r)
	if r.number == 1 || len(r.plan.Steps) > 0 { // a round that adds nothing leaves the plan as it was
		j.record.Plan.Source, j.record.Plan.Rounds = r.plan.Source, r.number
		j.record.Plan.Steps = append(j.record.Plan.Steps, r.plan.Steps...)
		j.record.Plan.Sequential = j.record.Plan.Sequential || r.plan.Sequential
		j.note = r.plan.Note
	}
	switch {
	case j.q.DryRun:
		for _, p := range r.problems {
			j.record.Warnings = append(j.record.Warnings, "step "+p.Step+": "+p.Error.Message)
		}
		return false, lo, nil
	case j.needsApproval(r.plan):
		j.record.NeedsApproval = true
		return false, lo, nil
	case len(r.plan.Steps) == 0:
		return false, lo, nil
	}
	more = j.given == nil && r.plan.More && r.number < r.of
	if hi = atExecuted; more {
		hi = lo + (atExecuted-lo)/2
	}
	if r.number == 1 {
		j.q.Report.station(atExecuting, fmt.Sprintf("Executing %d tools...", len(r.plan.Steps)))
	}
	r.outcomes = j.execute(ctx, r, progress.Func(j.q.Report.step).Span(lo, hi))
	return more, hi, nil
}

// request is what the steps of every round have in common.
func (j *job) request() execution.Request {
	return execution.Request{
		Catalog: j.catalog, Visible: j.visible, Meta: j.q.Meta, Client: j.q.Client, Caller: j.q.Caller, Ask: j.q.Ask, Hold: j.q.Hold,
		Began: j.began,
	}
}

func (j *job) plan(ctx context.Context, r *round) error {
	ctx, span := j.tracer.Start(ctx, "planning")
	defer span.End()
	began := time.Now()
	defer func() { j.record.Planning += time.Since(began) }()
	if j.given != nil {
		r.plan = *j.given
	} else {
		request := planner.Request{
			Query: j.q.Text, Context: j.q.Context, Tools: usable{j.catalog, j.visible}, Round: r.number, MaxRounds: r.of, Outcomes: j.record.Outcomes,
			Replan: r.replan, Tokens: j.tokens, CanAsk: j.q.Elicit != nil, Model: j.lent(),
		}
		if !j.q.DryRun && !j.asksFirst() {
			request.OnStep = r.begun.Start
		}
		result, err := j.planner.Plan(ctx, request)
		j.record.PlannerUsage.Add(result.Usage)
		j.tokens = result.Tokens
		j.record.Warnings = append(j.record.Warnings, result.Warnings...)
		if err != nil {
			return err
		}
		r.plan = result.Plan
	}
	r.problems = j.check(r)
	if unknown := r.unknown(); len(unknown) > 0 {
		catalog, err := j.Router.lookAgain(ctx, j.began, unknown, j.visible)
		if err != nil {
			return err
		}
		j.catalog = catalog
		r.problems = j.check(r)
	}
	span.SetAttributes(attribute.Int("plan.tool_count", len(r.plan.Steps)), attribute.String("plan.source", r.plan.Source))
	return nil
}

// unknown returns the tools of the plan that are not in the catalog.
func (r *round) unknown() (names []string) {
	for _, p := range r.problems {
		if p.Error.Reason != plan.ReasonUnknownTool {
			continue
		}
		for _, step := range r.plan.Steps {
			if step.ID == p.Step {
				names = append(names, step.Tool)
			}
		}
	}
	return names
}

func (j *job) check(r *round) []plan.Problem {
	return j.executor.Check(&r.plan, j.catalog, j.visible, j.record.Outcomes)
}

// lent is the client's model, where it may stand in for one that is not configured.
func (j *job) lent() llm.Model {
	if !j.opts.UseClient {
		return nil
	}
	return j.q.Lent
}

// asksFirst reports whether a plan with a destructive step must be shown before anything of it runs.
func (j *job) asksFirst() bool {
	return j.opts.Execution.ConfirmWrites == downstream.ConfirmAlways && j.q.Elicit == nil
}

// needsApproval reports whether the plan has a destructive step that must not run unasked.
func (j *job) needsApproval(p plan.Plan) bool {
	return j.asksFirst() && slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		tool, err := j.catalog.Lookup(s.Tool, j.visible)
		return err == nil && tool.Annotations.Destructive()
	})
}

func (j *job) execute(ctx context.Context, r *round, report progress.Func) []plan.Outcome {
	ctx, span := j.tracer.Start(ctx, "execution")
	defer span.End()
	began := time.Now()
	e := j.request()
	e.Plan, e.Problems, e.Progress, e.Done, e.Begun = r.plan, r.problems, report, j.record.Outcomes, r.begun
	if j.q.Elicit != nil && j.opts.Execution.ConfirmWrites != downstream.ConfirmNever {
		e.Confirm = func(ctx context.Context, tool *downstream.Tool, arguments []byte) error {
			ctx, cancel := asking(ctx)
			defer cancel()
			_, err := j.q.Elicit(ctx, fmt.Sprintf("Allow %s of server %s with the arguments %s? It says that it may destroy something.",
				tool.Tool.Tool, tool.Server, short.Text(string(arguments), 1000)), []byte(`{"type":"object","properties":{}}`))
			return err
		}
	}
	outcomes := j.executor.Execute(ctx, e)
	j.record.add(outcomes)
	j.record.Executing += time.Since(began)
	failed := 0
	for _, o := range outcomes {
		if !o.OK() {
			failed++
		}
	}
	span.SetAttributes(attribute.Int("execution.failed", failed))
	return outcomes
}

func (j *job) synthesize(ctx context.Context) {
	ctx, span := j.tracer.Start(ctx, "synthesis")
	defer span.End()
	began := time.Now()
	degraded := j.record.Answer.Degraded
	j.record.Answer = j.synth.Compose(ctx, synth.Request{
		Query: j.q.Text, Context: j.q.Context, Outcomes: j.record.Outcomes, Note: j.note, OnText: j.q.Report.answer,
		Model: j.lent(),
	})
	j.record.Answer.Degraded = j.record.Answer.Degraded || degraded
	j.record.Warnings = append(j.record.Warnings, j.record.Answer.Warnings...)
	j.record.Synthesizing = time.Since(began)
}
