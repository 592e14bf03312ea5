package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// rounds is a query in progress. It plans and executes round by round, then composes the answer (compose.go). It is
// used by one goroutine.
type rounds struct {
	router  *Router
	q       Query      // Origin.Visible is limited to q.Servers
	given   *plan.Plan // replaces the planner; nil = plan
	catalog *downstream.Catalog
	began   time.Time
	record  *Record
	last    *round // nil before the first
	most    int    // maximum number of rounds
	share   float64
	note    string // the planner's note for the answer
	forms   int    // forms shown to the user
	carried planning
	results *execution.Budget // bytes
	calls   *execution.Budget
}

// planning is the planner's state that lasts from round to round.
type planning struct {
	tokens int           // used so far
	shown  planner.Shown // tools shown to the model
}

// round is one round of planning and execution.
type round struct {
	number    int
	replan    bool // the round before failed or found nothing
	more      bool // its plan asks for another round
	plan      plan.Plan
	problems  []plan.Problem
	span      *tracing.Lazy // of the execution
	execution *execution.Round
	outcomes  []plan.Outcome
}

func (r *Router) newRounds(q Query, given *plan.Plan, began time.Time) *rounds {
	q.Origin.Visible = within(q.Origin.Visible, q.Servers...)
	s := &rounds{
		router: r, q: q, given: given, began: began, most: r.opts.MaxRounds, share: atExecuting,
		results: execution.NewBudget(int64(r.opts.Limits.QueryBytes)), calls: execution.NewBudget(execution.MaxCalls),
		record: &Record{Plan: plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}}, missing: map[string][]string{}},
	}
	if q.MaxRounds > 0 {
		s.most = q.MaxRounds
	}
	return s
}

// run plans and executes until no further round is needed.
func (s *rounds) run(ctx context.Context) error {
	found, err := s.listTools(ctx)
	if err != nil {
		return fmt.Errorf("listing the tools: %w", err)
	}
	if !found {
		return nil
	}
	for n := (&round{number: 1}); n != nil && ctx.Err() == nil; n = s.next() {
		if err := s.play(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// listTools loads the catalog. found is false if no server could be listed and there is nothing to plan with.
func (s *rounds) listTools(ctx context.Context) (found bool, err error) {
	list := s.router.tools.searchable
	if s.given != nil {
		list = s.router.tools.all // nothing is searched
	}
	if s.catalog, err = list(ctx); err != nil {
		return false, err
	}
	if s.given == nil && s.router.servers.Reconnect(ctx, missing(s.catalog, s.q.Origin.Visible)) {
		if s.catalog, err = list(ctx); err != nil {
			return false, err
		}
	}
	var names []string
	for _, m := range missing(s.catalog, s.q.Origin.Visible) {
		names = append(names, m.Server)
		s.warn("the tools of server %s could not be listed: %s", m.Server, m.Message)
	}
	if len(names) > 0 && !s.catalog.SeesAny(s.q.Origin.Visible) && s.given == nil {
		s.record.open = []plan.Unmet{{Text: s.q.Text, Reason: plan.UnmetFailed}} // a model cannot help
		s.note = "No server could be listed: " + strings.Join(names, ", ") + "."
		return false, nil
	}
	return true, nil
}

func (s *rounds) warn(format string, args ...any) {
	s.record.Warnings = append(s.record.Warnings, fmt.Sprintf(format, args...))
}

// next returns the next round, or nil if the last one was final.
func (s *rounds) next() *round {
	replan := !s.last.more && s.unsatisfied(s.last)
	if s.record.NeedsApproval || !s.last.more && !replan {
		return nil
	}
	return &round{number: s.last.number + 1, replan: replan}
}

// play plans a round, asks for missing arguments and executes it.
func (s *rounds) play(ctx context.Context, r *round) error {
	s.last = r
	r.span = s.router.tracer.Lazy(ctx, tracing.SpanExecution, tracing.With(tracing.Round.Int(r.number)))
	defer r.span.End()
	r.execution = s.router.executor.Begin(ctx, execution.Request{Origin: s.q.Origin, Began: s.began,
		Done: s.record.Outcomes, Results: s.results, Calls: s.calls, Span: r.span})
	defer s.endExecution(r)
	if err := s.plan(ctx, r); err != nil {
		return err
	}
	s.askMissing(ctx, r)
	s.record.take(r, s.reads)
	s.record.lacks(r)
	if r.plan.Note != "" || len(r.plan.Steps) > 0 { // a round without steps or note keeps the note
		s.note = r.plan.Note
	}
	switch {
	case s.q.DryRun:
		for _, p := range r.problems {
			s.warn("step %s: %s", p.Step, p.Error.Message)
		}
	case len(r.plan.Steps) > 0:
		r.more = s.given == nil && r.plan.More && r.number < s.most
		s.execute(ctx, r)
	}
	return nil
}

// endExecution stops the early calls that are not in the plan and records them, because they were made.
func (s *rounds) endExecution(r *round) {
	for _, o := range r.execution.Stop() {
		s.record.Dropped = append(s.record.Dropped, o)
		s.warn("%s was called as step %s while the plan was being written, and is not part of the plan", o.Step.Tool,
			o.Step.ID)
	}
}

// usable returns the tools that the query may use.
func (s *rounds) usable() usable { return usable{s.catalog, s.q.Origin.Visible} }

// plan obtains and checks the plan of a round.
func (s *rounds) plan(ctx context.Context, r *round) error {
	ctx, span := s.router.tracer.Start(ctx, tracing.SpanPlanning, tracing.With(
		tracing.Operation.String(tracing.OperationPlan), tracing.Round.Int(r.number)))
	defer span.End()
	began := time.Now()
	defer func() { s.record.Timings.Planning += s.record.phase(PhasePlanning, s.began, began) }()
	if s.given != nil {
		r.plan = *s.given
	} else {
		request := planner.Request{
			Query: s.q.Text, Context: s.q.Context, Tools: s.usable(),
			Round: r.number, MaxRounds: s.most, Outcomes: s.record.Outcomes, Replan: r.replan,
			Tokens: s.carried.tokens, CanAsk: s.q.Elicit != nil, Approved: s.q.Approved, Model: s.model(),
			Shown: &s.carried.shown,
		}
		if !s.q.DryRun {
			request.OnStep = func(step plan.Step) {
				if tool, unknown := request.Tools.Lookup(step.Tool); unknown == nil {
					r.execution.Start(step, tool)
				}
			}
		}
		result, err := s.router.planner.Plan(ctx, request)
		s.record.PlannerUsage.Add(result.Usage)
		s.carried.tokens = result.Tokens
		s.record.Warnings = append(s.record.Warnings, result.Warnings...)
		if err != nil {
			s.router.tracer.Fail(span, outcomeOf(err), err.Error())
			return err
		}
		r.plan = result.Plan
		if result.Usage.Model != "" && r.plan.Source == plan.SourceRules {
			s.record.Fallbacks = append(s.record.Fallbacks, PhasePlanning)
		}
	}
	if r.tellsAbout() {
		r.plan.Note = about(s.catalog, s.q.Origin.Visible)
	}
	r.problems = s.check(r) // also for a given plan: it sets the servers of the steps
	if unknown := r.unknown(); len(unknown) > 0 {
		catalog, err := s.router.tools.lookAgain(ctx, s.began, unknown, s.q.Origin.Visible)
		if err != nil {
			return err
		}
		s.catalog = catalog
		r.problems = s.check(r)
	}
	span.SetAttributes(tracing.Steps.Int(len(r.plan.Steps)), tracing.PlanSource.String(r.plan.Source))
	return nil
}

// tellsAbout reports whether the answer may describe the router itself: the rules ask for it, or a model planned no
// call and so knows nothing of the tools.
func (r *round) tellsAbout() bool {
	byModel := r.plan.Source == plan.SourceModel && r.number == 1 && len(r.plan.Unmet) == 0
	return len(r.plan.Steps) == 0 && (r.plan.About || byModel)
}

// unknown returns the tools of the plan that the catalog lacks.
func (r *round) unknown() (names []string) {
	for _, p := range r.problems {
		if p.Error.Reason != reason.UnknownTool {
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

func (s *rounds) check(r *round) []plan.Problem {
	return plan.Check(&r.plan, s.router.opts.Validator, s.usable().Lookup, s.record.Outcomes)
}

// model returns the client's model if it may replace a model that is not configured.
func (s *rounds) model() llm.Model {
	if !s.router.opts.Models.Sampling || s.q.Sampling == nil {
		return nil
	}
	return s.router.opts.Models.Observed.Model(s.q.Sampling, ClientModel, "")
}

// execute runs the plan of a round and records the outcomes.
func (s *rounds) execute(ctx context.Context, r *round) {
	ctx = r.span.Within(ctx)
	began := time.Now()
	if r.number == 1 {
		s.q.Report.station(atExecuting, fmt.Sprintf("Executing %d tools...", len(r.plan.Steps)))
	}
	lo, hi := s.share, atExecuted
	if r.replan { // the round before may use all that was left, but rarely does
		lo = max(atExecuting, s.q.Report.reached())
	}
	if r.more {
		hi = lo + (atExecuted-lo)/2
	}
	s.share = hi
	r.outcomes = r.execution.Execute(ctx, execution.Work{
		Plan: r.plan, Problems: r.problems, Lookup: s.usable().Lookup, Confirm: s.confirm(r),
		Progress: progress.Func(s.q.Report.step).Span(lo, hi),
	})
	s.record.add(r.outcomes)
	s.record.Timings.Executing += s.record.phase(PhaseExecution, s.began, began)
	describeOutcomes(trace.SpanFromContext(ctx), r.outcomes)
}

// describeOutcomes adds to an execution span what the spans of its steps do not show: steps that never reached their
// tools.
func describeOutcomes(span trace.Span, outcomes []plan.Outcome) {
	if !span.IsRecording() {
		return
	}
	failed := 0
	for _, o := range outcomes {
		if o.Failed() {
			failed++
		}
		if o.Attempts > 0 || o.OK() {
			continue
		}
		about := []attribute.KeyValue{tracing.Text(tracing.Step, o.Step.ID), tracing.Text(tracing.ToolName, o.Step.Tool)}
		if o.Failed() {
			about = append(about, tracing.ErrorType.String(o.Err.Reason))
		}
		span.AddEvent(tracing.EventNotRun, trace.WithAttributes(about...))
	}
	span.SetAttributes(tracing.Failed.Int(failed))
}

// within restricts what a caller may use to the given servers; without servers, it restricts nothing.
func within(visible downstream.Visible, servers ...string) downstream.Visible {
	if len(servers) == 0 {
		return visible
	}
	return func(server, tool string) bool {
		return slices.Contains(servers, server) && (visible == nil || visible(server, tool))
	}
}
