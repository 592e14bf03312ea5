package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Execute runs the steps of a plan as soon as their inputs are available and returns one outcome per step, in plan
// order. When ctx is done, it waits for running steps; the others fail as timeout if the deadline has passed, else as
// cancelled.
func (r *Round) Execute(ctx context.Context, w Work) []plan.Outcome {
	r.drop(w.Plan)
	s := newSchedule(r, w)
	s.settle()
	s.run(r.req.Span.Within(ctx))
	return s.outcomes
}

// schedule is the state of one call of Execute. Only its goroutine writes it. The goroutines of steps read only
// outcomes that were complete before they started.
type schedule struct {
	*Round
	work     Work
	steps    []plan.Step
	index    map[string]int // steps by id
	earlier  map[string]plan.Outcome
	outcomes []plan.Outcome
	settled  []bool  // the step has its outcome
	waiting  []int   // number of dependencies that have not succeeded yet
	children [][]int // steps that depend on this one
	ready    []unit  // in order of becoming ready; in plan order if sequential
	loops    []*loop // set once a step's loop is prepared
	tracker  *tracker
}

func newSchedule(r *Round, w Work) *schedule {
	n := len(w.Plan.Steps)
	s := &schedule{
		Round: r, work: w, steps: w.Plan.Steps, index: make(map[string]int, n),
		earlier: make(map[string]plan.Outcome, len(r.req.Done)), outcomes: make([]plan.Outcome, n),
		settled: make([]bool, n), waiting: make([]int, n), children: make([][]int, n), loops: make([]*loop, n),
		tracker: newTracker(n, w.Plan.Tools(), w.Progress),
	}
	for i, step := range s.steps {
		s.index[step.ID] = i
	}
	for _, o := range r.req.Done {
		s.earlier[o.Step.ID] = o
	}
	return s
}

func (s *schedule) isStep(id string) bool {
	_, here := s.index[id]
	_, before := s.earlier[id]
	return here || before
}

// value returns the value of a step that has succeeded.
func (s *schedule) value(id string) (json.RawMessage, bool) {
	o, ok := s.earlier[id]
	if i, here := s.index[id]; here {
		o, ok = s.outcomes[i], true
	}
	return o.Value, ok && o.OK() && o.Value != nil
}

// settle finds the dependencies of each step and the outcomes known from the start.
func (s *schedule) settle() {
	problems := make(map[string]*plan.Error, len(s.work.Problems))
	for _, p := range s.work.Problems {
		if problems[p.Step] == nil {
			problems[p.Step] = &p.Error
		}
	}
	known := make(map[int]plan.Outcome)
	for i, step := range s.steps {
		if err := problems[step.ID]; err != nil {
			known[i] = s.failure(err)
			continue
		}
		if o, ok := s.earlier[step.ID]; ok {
			known[i] = o
			continue
		}
		for _, id := range step.Needs(s.isStep) {
			if j, here := s.index[id]; here {
				s.waiting[i]++
				s.children[j] = append(s.children[j], i)
			} else if o, before := s.earlier[id]; !before {
				known[i] = s.failure(&plan.Error{Reason: reason.MissingReference,
					Message: fmt.Sprintf("after names %q, which is not a step", id)})
			} else if !o.OK() {
				known[i] = s.passOn(o)
			}
		}
		if _, ok := known[i]; !ok && s.waiting[i] == 0 {
			s.enqueue(unit{i, whole})
		}
	}
	for i := range s.steps {
		if o, ok := known[i]; ok {
			s.finish(i, o)
		}
	}
}

// unit is what runs in one goroutine: a step, or one call of a loop.
type unit struct{ step, element int }

// whole is the element of a unit that is a whole step.
const whole = -1

// finished is a unit that has ended, with its outcome or the prepared calls of a loop.
type finished struct {
	unit
	outcome plan.Outcome
	loop    *loop
}

// run starts ready units and collects finished ones until every step has an outcome.
func (s *schedule) run(ctx context.Context) {
	parallel := s.opts.MaxParallel
	if s.work.Plan.Sequential {
		parallel = 1
	}
	results := make(chan finished)
	running := 0
	for {
		for len(s.ready) > 0 && running < parallel && ctx.Err() == nil {
			next := s.ready[0]
			s.ready = s.ready[1:]
			running++
			go s.runUnit(ctx, next, results)
		}
		if running == 0 {
			break
		}
		f := <-results
		running--
		switch {
		case f.loop != nil:
			s.unroll(f.step, f.loop)
		case f.element != whole:
			s.finishElement(f.unit, f.outcome)
		case ctx.Err() != nil:
			s.record(f.step, f.outcome) // steps that have not started fail below
		default:
			s.finish(f.step, f.outcome)
		}
	}
	err := &plan.Error{Reason: reason.Cycle, Message: "steps wait for each other"}
	if ctx.Err() != nil {
		err = ended(ctx)
	}
	for i := range s.steps {
		if l := s.loops[i]; l != nil && !s.settled[i] {
			s.record(i, l.cut(s, err))
		} else if !s.settled[i] {
			s.record(i, s.failure(err))
		}
	}
}

// ended returns the error of a step that has not started when ctx is done.
func ended(ctx context.Context) *plan.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &plan.Error{Reason: reason.Timeout, Message: "Query timed out before this step started"}
	}
	return &plan.Error{Reason: reason.Cancelled, Message: "Query was cancelled before this step started"}
}

// runUnit runs one unit and sends its outcome, also after a panic.
func (s *schedule) runUnit(ctx context.Context, u unit, results chan<- finished) {
	f := finished{unit: u}
	defer func() { results <- f }()
	step := s.steps[u.step]
	s.guard(step, &f.outcome, func() {
		switch {
		case u.element != whole:
			l := s.loops[u.step]
			e := &l.elements[u.element]
			f.outcome.Sent = e.arguments
			f.outcome = s.callOf(ctx, l.scope, &e.Item, toolCall{
				arguments: e.arguments, from: e.from, report: l.tracker.step(u.element, step.Tool)})
		case step.Each != "":
			f.outcome, f.loop = s.prepare(ctx, step)
		default:
			scope := step.Scope(s.isStep, s.value)
			arguments, outcome, ready := s.arguments(ctx, scope, step, nil)
			if f.outcome = outcome; !ready {
				return
			}
			f.outcome.Sent = arguments
			c := toolCall{arguments: arguments, report: s.tracker.step(u.step, step.Tool)}
			decisions, refused := s.allow(ctx, step, []json.RawMessage{arguments})
			if refused == nil {
				c.from, refused = decisions[0].From, decisions[0].Err
			}
			if f.outcome.Err = refused; refused == nil {
				f.outcome = s.callOf(ctx, scope, nil, c)
			}
		}
	})
}

// arguments returns the final arguments of a step or element. ready is false if there is nothing to call; then the
// outcome is that of the step or element.
func (s *schedule) arguments(
	ctx context.Context, scope *plan.Scope, step plan.Step, item *plan.Item,
) (arguments json.RawMessage, o plan.Outcome, ready bool) {
	wanted, err := scope.Wanted(ctx, item)
	switch {
	case err == nil && !wanted:
		return nil, plan.Outcome{Skipped: true}, false
	case err == nil && step.Computes():
		o.Started = s.elapsed()
		s.shape(ctx, scope, item, &o)
		o.Duration = s.elapsed() - o.Started
		return nil, o, false
	case err == nil:
		arguments, err = scope.Arguments(item)
	}
	if err == nil {
		var tool plan.Tool
		if tool, err = s.work.Lookup(step.Tool); err == nil {
			err = s.opts.Validator.Validate(tool.InputSchema, arguments)
		}
	}
	if err != nil && ctx.Err() != nil {
		err = ended(ctx)
	}
	return arguments, plan.Outcome{Err: err}, err == nil
}

// allow returns the decisions on the calls of a step, or an error if none may be made.
func (s *schedule) allow(ctx context.Context, step plan.Step, calls []json.RawMessage) ([]Decision, *plan.Error) {
	if !s.req.Calls.take(len(calls)) {
		return nil, &plan.Error{Reason: reason.TooLarge, Message: fmt.Sprintf("a query makes at most %d calls; nothing was called", MaxCalls)}
	}
	if s.work.Decide == nil {
		return make([]Decision, len(calls)), nil
	}
	tool, err := s.work.Lookup(step.Tool)
	if err != nil {
		return nil, err
	}
	return s.work.Decide(ctx, step, tool, calls)
}

// callOf calls the tool of a step or element, or takes over the early call, and derives the value from the result.
func (s *schedule) callOf(ctx context.Context, scope *plan.Scope, item *plan.Item, c toolCall) (o plan.Outcome) {
	step := scope.Step()
	if early := s.takeOver(step, c.arguments); early != nil {
		o = early.wait(ctx, c.report)
	} else {
		c.step = step
		o = s.callNow(ctx, c)
	}
	if item != nil {
		o.Index = item.Index
	}
	s.shape(ctx, scope, item, &o)
	return o
}

// shape sets the value of a successful step or element to what its Pick says.
func (s *schedule) shape(ctx context.Context, scope *plan.Scope, item *plan.Item, o *plan.Outcome) {
	step := scope.Step()
	if step.Pick == "" || !o.OK() {
		return
	}
	picked, err := scope.Pick(ctx, item, o.Value)
	if err == nil && !s.req.Results.take(len(picked)) {
		err = &plan.Error{Reason: reason.TooLarge, Message: "pick: the values of this query are too large in total"}
	}
	switch {
	case err == nil:
		o.Value = picked
	case step.Computes():
		o.Err = err
	default:
		o.Err = &plan.Error{Reason: err.Reason, Message: err.Message + "; the tool was called and has answered"}
	}
}

// callNow makes a call once there is a free slot.
func (s *schedule) callNow(ctx context.Context, c toolCall) plan.Outcome {
	var err *plan.Error
	if c.tool, err = s.work.Lookup(c.step.Tool); err != nil {
		return plan.Outcome{Sent: c.arguments, Err: err}
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return s.traced(ctx, c)
	case <-ctx.Done():
		return plan.Outcome{Sent: c.arguments, Err: StepError(context.Cause(ctx))}
	}
}

// finish records an outcome and passes it on to the dependent steps: success may make them ready; failing or being
// skipped applies to them, too.
func (s *schedule) finish(i int, o plan.Outcome) {
	if s.settled[i] {
		return
	}
	s.record(i, o)
	for _, child := range s.children[i] {
		if !o.OK() {
			s.finish(child, s.passOn(s.outcomes[i]))
		} else if s.waiting[child]--; s.waiting[child] == 0 && !s.settled[child] {
			s.enqueue(unit{child, whole})
		}
	}
}

// passOn returns the outcome of a step whose dependency failed or was skipped.
func (s *schedule) passOn(o plan.Outcome) plan.Outcome {
	if o.Skipped {
		return plan.Outcome{Skipped: true, Started: s.elapsed()}
	}
	return s.failure(&plan.Error{Reason: reason.DependencyFailed,
		Message: fmt.Sprintf("Step %s, which this step needs, failed", o.Step.ID)})
}

// enqueue adds units that are ready to run.
func (s *schedule) enqueue(units ...unit) {
	at := len(s.ready)
	if s.work.Plan.Sequential {
		at, _ = slices.BinarySearchFunc(s.ready, units[0], func(a, b unit) int { return a.step - b.step })
	}
	s.ready = slices.Insert(s.ready, at, units...)
}

func (s *schedule) record(i int, o plan.Outcome) {
	o.Step = s.steps[i]
	if o.Err != nil {
		o.Value, o.Err = nil, s.masked(o.Err)
	}
	s.outcomes[i], s.settled[i] = o, true
	if !o.Step.Computes() {
		s.tracker.finish(i)
	}
}

// masked returns an error without secrets: the text of a failed expression may repeat the values that it reads.
func (s *schedule) masked(err *plan.Error) *plan.Error {
	return &plan.Error{Reason: err.Reason, Message: s.opts.Mask.Text(err.Message)}
}

// failure returns the outcome of a step that fails without running.
func (s *schedule) failure(err *plan.Error) plan.Outcome {
	return plan.Outcome{Err: err, Started: s.elapsed()}
}
