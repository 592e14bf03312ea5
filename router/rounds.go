package router

import (
	"cmp"
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
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// queryState is a query in progress. run plans and executes it round by round; Router.process (query.go) then calls
// compose (compose.go) for the answer. It is used by one goroutine.
type queryState struct {
	router    *Router
	q         Query      // Origin.Visible is limited to q.Servers
	given     *plan.Plan // replaces the planner; nil = plan
	catalog   *downstream.Catalog
	began     time.Time
	record    *Record
	last      *round // nil before the first
	maxRounds int
	planned   float64         // progress up to which earlier rounds have planned
	note      string          // the planner's note for the answer
	addresses map[string]bool // of the answer: whether a result has them
	user      userState
	planning  planningState
	results   *execution.Budget // bytes
	calls     *execution.Budget
}

// planningState is the planner's state that lasts from round to round.
type planningState struct {
	tokens int           // used so far
	shown  planner.Shown // tools shown to the model
}

// userState is what the user was asked, and has said about the query besides its text.
type userState struct {
	forms    int               // shown to the user
	entered  []string          // texts entered in them
	stated   map[string]string // the step for each server that sends only what the user has said, see decider.stated
	declined declinedFlows
	approved bool // the given plan is approved as it is
}

// round is one round of planning and execution.
type round struct {
	number    int
	replan    bool   // the round before failed or found nothing
	lacks     string // what the writer of the answer asks for; empty if it did not ask for the round
	more      bool   // its plan asks for another round
	plan      plan.Plan
	problems  []plan.Problem
	span      *tracing.Lazy // of the execution
	execution *execution.Round
	outcomes  []plan.Outcome
	decider   *decider
}

func (r *Router) newState(q Query, given *plan.Plan, began time.Time) *queryState {
	q.Origin.Profile = cmp.Or(q.Origin.Profile, "router") // of queries in this process
	q.Origin.Visible = within(q.Origin.Visible, q.Servers...)
	s := &queryState{
		router: r, q: q, given: given, began: began, maxRounds: r.opts.MaxRounds, planned: atExecuting,
		user:    userState{stated: map[string]string{}},
		results: execution.NewBudget(int64(r.opts.Limits.QueryBytes)), calls: execution.NewBudget(execution.MaxCalls),
		record: &Record{Plan: plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}}, missing: map[string][]string{}},
	}
	if q.MaxRounds > 0 {
		s.maxRounds = q.MaxRounds
	}
	return s
}

// run plans and executes until no further round is needed, and once more for what the writer of the answer asks for.
func (s *queryState) run(ctx context.Context) error {
	n := &round{number: 1}
	if s.last != nil {
		n = &round{number: s.last.number + 1, lacks: s.record.Answer.Lacks}
	} else if found, err := s.listTools(ctx); err != nil {
		return fmt.Errorf("listing the tools: %w", err)
	} else if !found {
		return nil
	}
	for ; n != nil && ctx.Err() == nil; n = s.next() {
		if err := s.runRound(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// listTools loads the catalog. found is false if no server could be listed and there is nothing to plan with.
func (s *queryState) listTools(ctx context.Context) (found bool, err error) {
	list := s.router.directory.searchable
	if s.given != nil {
		list = s.router.directory.all // nothing is searched
	}
	if s.catalog, err = list(ctx); err != nil {
		return false, err
	}
	if s.given == nil && s.router.servers.Reconnect(ctx, missing(s.catalog, s.q.Origin.Visible)) {
		if s.catalog, err = list(ctx); err != nil {
			return false, err
		}
	}
	for s.given == nil && !s.catalog.SeesAny(s.q.Origin.Visible) {
		waited, failed := s.router.directory.awaitStart(ctx, s.catalog, s.q.Origin.Visible)
		if !waited || failed != nil {
			break
		}
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
		s.record.unserved = []plan.Unmet{{Text: s.q.Text, Reason: plan.UnmetFailed}} // a model cannot help
		s.note = "No server could be listed: " + strings.Join(names, ", ") + "."
		return false, nil
	}
	return true, nil
}

func (s *queryState) warn(format string, args ...any) {
	s.record.Warnings = append(s.record.Warnings, fmt.Sprintf(format, args...))
}

// next returns the next round, or nil if the last one was final.
func (s *queryState) next() *round {
	replan := !s.last.more && s.unsatisfied(s.last)
	if s.record.NeedsApproval || !s.last.more && !replan {
		return nil
	}
	return &round{number: s.last.number + 1, replan: replan}
}

// runRound plans a round, asks for missing arguments and executes it.
func (s *queryState) runRound(ctx context.Context, r *round) error {
	s.last = r
	r.decider = newDecider(s, r)
	r.span = s.router.tracer.Lazy(ctx, tracing.SpanExecution, tracing.With(tracing.Round.Int(r.number)))
	defer r.span.End()
	r.execution = s.router.executor.Begin(ctx, execution.Request{Origin: s.q.Origin, Began: s.began,
		Done: s.record.Outcomes, Results: s.results, Calls: s.calls, Span: r.span,
		Running: s.q.Report.running})
	defer s.endExecution(r)
	if err := s.plan(ctx, r); err != nil {
		return err
	}
	s.askMissing(ctx, r)
	r.decider.addSources()
	s.record.addPlan(r, s.reads)
	if r.plan.Note != "" || len(r.plan.Steps) > 0 { // a round without steps or note keeps the note
		s.note = r.plan.Note
	}
	switch {
	case s.q.DryRun:
		for _, p := range r.problems {
			s.warn("%s", p.String())
		}
	case len(r.plan.Steps) > 0:
		r.more = s.given == nil && r.plan.More && r.number < s.maxRounds
		s.execute(ctx, r)
		r.more = s.given == nil && r.wantsMore(ctx, s)
	}
	s.record.addUnserved(r)
	return nil
}

// wantsMore reports whether another round follows because the plan asks for it, after the round was executed.
func (r *round) wantsMore(ctx context.Context, s *queryState) bool {
	wanted, failed := r.plan.Continues(ctx, s.record.Outcomes)
	if failed != nil && ctx.Err() == nil {
		s.warn("the condition for another round cannot be computed and counts as true: %s",
			s.router.opts.Models.Observed.Mask.Text(failed.Message))
	}
	last := r.number >= s.maxRounds
	if wanted && last && r.plan.MoreIf != "" { // the planner reports the others
		s.warn("the plan asks for another round, but max_rounds is %d", s.maxRounds)
	}
	return wanted && !last
}

// endExecution stops the early calls that are not in the plan and records them, because they were made.
func (s *queryState) endExecution(r *round) {
	for _, o := range r.execution.Stop() {
		s.record.Dropped = append(s.record.Dropped, o)
		s.warn("%s was called as step %s while the plan was being written, and is not part of the plan", o.Step.Tool,
			o.Step.ID)
	}
}

// usable returns the tools that the query may use.
func (s *queryState) usable() usable {
	return usable{catalog: s.catalog, visible: s.q.Origin.Visible, caller: s.q.Origin.Login}
}

// plan obtains and checks the plan of a round.
func (s *queryState) plan(ctx context.Context, r *round) error {
	ctx, span := s.router.tracer.Start(ctx, tracing.SpanPlanning, tracing.With(
		tracing.Operation.String(tracing.OperationPlan), tracing.Round.Int(r.number)))
	defer span.End()
	began := time.Now()
	defer func() { s.record.Timings.Planning += s.record.phase(PhasePlanning, s.began, began) }()
	if s.given != nil {
		r.plan = *s.given
	} else {
		request := planner.Request{
			Query: s.q.Text, Context: s.q.Context,
			Round: r.number, MaxRounds: s.maxRounds, Outcomes: s.record.Outcomes, Replan: r.replan, Lacks: r.lacks,
			Tokens: s.planning.tokens, CanAsk: s.q.Elicit != nil, Approved: s.q.Approved, Model: s.model(),
			Shown: &s.planning.shown,
		}
		tools := s.usable()
		if !s.q.Approved {
			tools.private, request.NeedsApproval = r.decider.private(), r.decider.needsApproval
		}
		request.Tools = tools
		if !s.q.DryRun {
			request.OnStep = func(step plan.Step) { r.decider.startEarly(step) }
		}
		result, err := s.router.planner.Plan(ctx, request)
		s.record.PlannerUsage.Add(result.Usage)
		s.planning.tokens = result.Tokens
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
	if r.describesRouter() {
		r.plan.Note = describeTools(s.catalog, s.q.Origin.Visible)
	}
	r.problems = s.check(r) // also for a given plan: it sets the servers of the steps
	if unknown := r.unknown(); len(unknown) > 0 {
		catalog, err := s.router.directory.relist(ctx, s.began, unknown, s.q.Origin.Visible)
		if err != nil {
			return err
		}
		s.catalog = catalog
		r.problems = s.check(r)
	}
	if s.given != nil && r.plan.Approval != "" {
		if s.user.approved = s.router.approvals.valid(&r.plan, &s.q.Origin, time.Now()); !s.user.approved {
			s.warn("the approval of the plan is not valid: an hour has passed, or the plan, the caller or the profile differs")
		}
	}
	span.SetAttributes(tracing.Steps.Int(len(r.plan.Steps)), tracing.PlanSource.String(r.plan.Source))
	return nil
}

// describesRouter reports whether the answer may describe the router itself: the rules ask for it, or a model planned
// no call and so knows nothing of the tools.
func (r *round) describesRouter() bool {
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

func (s *queryState) check(r *round) []plan.Problem {
	return plan.Check(&r.plan, s.router.opts.Validator, s.usable().Lookup, s.record.Outcomes)
}

// model returns the client's model if it may replace a model that is not configured.
func (s *queryState) model() llm.Model {
	if !s.router.opts.Models.Sampling || s.q.Sampling == nil {
		return nil
	}
	return s.router.opts.Models.Observed.Model(s.q.Sampling, ClientModel, "")
}

// execute runs the plan of a round and records the outcomes.
func (s *queryState) execute(ctx context.Context, r *round) {
	ctx = r.span.Within(ctx)
	began := time.Now()
	if n := r.plan.Tools(); r.number == 1 && n > 0 {
		s.q.Report.milestone(atExecuting, fmt.Sprintf("Executing %d tools...", n))
	}
	lo, hi := s.planned, atExecuted
	if r.replan || r.lacks != "" { // the round before may use all that was left, but rarely does
		lo = max(atExecuting, s.q.Report.reached())
	}
	if r.more {
		hi = lo + (atExecuted-lo)/2
	}
	s.planned = hi
	r.decider.begin()
	r.outcomes = r.execution.Execute(ctx, execution.Work{
		Plan: r.plan, Problems: r.problems, Lookup: s.usable().Lookup, Decide: r.decider.decide,
		Progress: func(x float64, message string) { s.q.Report.step(lo+(hi-lo)*x, message) },
	})
	s.record.addOutcomes(r.outcomes)
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

// unsatisfied reports whether a model's plan should be followed by another: a step failed in a way that another plan
// may avoid, or a read found nothing. It is false if the outcome of any write is unknown: the user has to check
// first.
func (s *queryState) unsatisfied(r *round) bool {
	if r.plan.Source != plan.SourceModel || r.number >= s.maxRounds || s.record.mayHaveWritten(s.reads) {
		return false
	}
	wanted := false
	for _, o := range r.outcomes {
		switch {
		case o.Skipped:
		case o.OK():
			wanted = wanted || o.Empty() && s.reads(o.Step) && !o.Step.Computes()
		case !r.refused(o.Step.ID):
			wanted = wanted || mayBeMended(o.Err.Reason)
		}
	}
	return wanted
}

// reads reports whether a step changes nothing: its tool only reads, or it calls none.
func (s *queryState) reads(step plan.Step) bool {
	tool, unknown := s.usable().Lookup(step.Tool)
	return step.Computes() || unknown == nil && tool.Reads()
}

// refused reports whether a step was already invalid in the plan. The repair turn has shown that to the model in
// vain.
func (r *round) refused(step string) bool {
	return slices.ContainsFunc(r.problems, func(p plan.Problem) bool { return p.Step == step })
}

// mayBeMended reports whether another plan may avoid a failure with this reason. Failures that follow from another
// failure or from the user's decision do not count.
func mayBeMended(why string) bool {
	switch why {
	case reason.DependencyFailed, reason.NeedsApproval, reason.Declined, reason.Cancelled,
		reason.Internal:
		return false
	}
	return true
}
