// Package dataflow runs the steps of a plan. It only schedules; the caller makes the calls.
//
// A step starts as soon as all steps that it refers to, or names in After, have succeeded. There are no waves. The
// order of steps matters only when parallel slots are scarce. Steps of a sequential plan run one at a time, in plan
// order among those that can run; the next starts when one has ended, whatever its outcome. A step that depends on a
// failed step fails without running. Every step has exactly one outcome, and no failure or panic affects independent
// steps.
//
// Run owns its goroutines, one per running step, and waits for all of them before it returns.
package dataflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Options configure Run. Only Call is required.
type Options struct {
	// Call runs a step, or one element of a loop, with its final arguments. It fills Value, Text, Blocks, Err and
	// Attempts of the outcome; Started and Duration are kept if Duration is set. It returns soon after ctx is done
	// and must be safe for concurrent use.
	Call func(ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome

	// Allow is asked before the calls of a step, with the arguments of each; an error becomes the outcome of all of
	// them. It must be safe for concurrent use; nil allows all.
	Allow func(ctx context.Context, step plan.Step, calls []json.RawMessage) *plan.Error

	// Hold reserves the bytes of a value made by Pick and reports whether they fit; nil has no limit.
	Hold func(bytes int) bool

	MaxParallel int // concurrent calls, 0 = no limit
	// Problems are steps that fail with this error instead of running; the first per step counts.
	Problems []plan.Problem
	// Validate checks final arguments; nil accepts all. It must be safe for concurrent use.
	Validate func(plan.Step, json.RawMessage) *plan.Error
	// Done are the outcomes of earlier rounds. Steps may depend on them; a step that is listed here does not run
	// again.
	Done []plan.Outcome
	// Progress receives the completed fraction of the plan. Calls are serialized and in order.
	Progress progress.Func
	Elapsed  func() time.Duration // since the query began; nil counts from the call of Run
	Log      *slog.Logger         // for panics; nil discards
}

// Run runs a plan and returns one outcome per step, in plan order. When ctx is done, it waits for running steps; the
// others fail as timeout if the deadline has passed, else as cancelled. The text of a failed step is "Error: " and
// the message. Step ids must be unique, as plan.Parse ensures.
func Run(ctx context.Context, p plan.Plan, opts Options) []plan.Outcome {
	if opts.Elapsed == nil {
		start := time.Now()
		opts.Elapsed = func() time.Duration { return time.Since(start) }
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	switch {
	case p.Sequential:
		opts.MaxParallel = 1
	case opts.MaxParallel <= 0:
		opts.MaxParallel = math.MaxInt
	}
	r := newRun(p, opts)
	r.settle()
	r.loop(ctx)
	return r.outcomes
}

// A run is the state of one call of Run. Only the goroutine of Run writes it. The goroutines of steps read only
// outcomes that were complete before they started.
type run struct {
	opts     Options
	steps    []plan.Step
	index    map[string]int // steps by id
	done     map[string]plan.Outcome
	outcomes []plan.Outcome
	settled  []bool  // the step has its outcome
	waiting  []int   // number of dependencies that have not succeeded yet
	children [][]int // steps that depend on this one
	ready    []unit  // in order of becoming ready; in plan order if sequential
	loops    []*loop // set once a step's loop is prepared
	tracker  *tracker

	sequential bool
}

func newRun(p plan.Plan, opts Options) *run {
	steps := p.Steps
	r := &run{
		opts: opts, steps: steps, sequential: p.Sequential,
		index: make(map[string]int, len(steps)), done: make(map[string]plan.Outcome, len(opts.Done)),
		outcomes: make([]plan.Outcome, len(steps)), settled: make([]bool, len(steps)),
		waiting: make([]int, len(steps)), children: make([][]int, len(steps)),
		loops: make([]*loop, len(steps)), tracker: newTracker(len(steps), opts.Progress),
	}
	for i, s := range steps {
		if _, ok := r.index[s.ID]; !ok {
			r.index[s.ID] = i
		}
	}
	for _, o := range opts.Done {
		r.done[o.Step.ID] = o
	}
	return r
}

func (r *run) isStep(id string) bool {
	_, here := r.index[id]
	_, before := r.done[id]
	return here || before
}

// value returns the value of a step that has succeeded.
func (r *run) value(id string) (json.RawMessage, bool) {
	o, ok := r.done[id]
	if i, here := r.index[id]; here {
		o, ok = r.outcomes[i], true
	}
	return o.Value, ok && o.OK() && o.Value != nil
}

// settle finds the dependencies of each step and the outcomes known from the start.
func (r *run) settle() {
	problems := make(map[string]*plan.Error, len(r.opts.Problems))
	for _, p := range r.opts.Problems {
		if problems[p.Step] == nil {
			problems[p.Step] = &p.Error
		}
	}
	known := make(map[int]plan.Outcome)
	for i, s := range r.steps {
		if err := problems[s.ID]; err != nil {
			known[i] = r.failure(err)
			continue
		}
		if o, ok := r.done[s.ID]; ok {
			known[i] = o
			continue
		}
		for _, id := range s.Needs(r.isStep) {
			if j, here := r.index[id]; here {
				r.waiting[i]++
				r.children[j] = append(r.children[j], i)
			} else if o, before := r.done[id]; !before {
				known[i] = r.failure(&plan.Error{Reason: reason.MissingReference,
					Message: fmt.Sprintf("after names %q, which is not a step", id)})
			} else if !o.OK() {
				known[i] = r.passOn(o)
			}
		}
		if _, ok := known[i]; !ok && r.waiting[i] == 0 {
			r.enqueue(unit{i, whole})
		}
	}
	for i := range r.steps {
		if o, ok := known[i]; ok {
			r.finish(i, o)
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

// loop starts ready units and collects finished ones until every step has an outcome.
func (r *run) loop(ctx context.Context) {
	results := make(chan finished)
	running := 0
	for {
		for len(r.ready) > 0 && running < r.opts.MaxParallel && ctx.Err() == nil {
			next := r.ready[0]
			r.ready = r.ready[1:]
			running++
			go r.run(ctx, next, results)
		}
		if running == 0 {
			break
		}
		f := <-results
		running--
		switch {
		case f.loop != nil:
			r.unroll(f.step, f.loop)
		case f.element != whole:
			r.finishElement(f.unit, f.outcome)
		case ctx.Err() != nil:
			r.record(f.step, f.outcome) // steps that have not started fail below
		default:
			r.finish(f.step, f.outcome)
		}
	}
	err := &plan.Error{Reason: reason.Cycle, Message: "steps wait for each other"}
	if ctx.Err() != nil {
		err = ended(ctx)
	}
	for i := range r.steps {
		if l := r.loops[i]; l != nil && !r.settled[i] {
			r.record(i, l.cut(r, err))
		} else if !r.settled[i] {
			r.record(i, r.failure(err))
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

// finish records an outcome and passes it on to the dependent steps: success may make them ready; failing or being
// skipped applies to them, too.
func (r *run) finish(i int, o plan.Outcome) {
	if r.settled[i] {
		return
	}
	r.record(i, o)
	for _, child := range r.children[i] {
		if !o.OK() {
			r.finish(child, r.passOn(r.outcomes[i]))
		} else if r.waiting[child]--; r.waiting[child] == 0 && !r.settled[child] {
			r.enqueue(unit{child, whole})
		}
	}
}

// passOn returns the outcome of a step whose dependency failed or was skipped.
func (r *run) passOn(o plan.Outcome) plan.Outcome {
	if o.Skipped {
		return plan.Outcome{Skipped: true, Started: r.opts.Elapsed()}
	}
	return r.failure(dependencyFailed(o.Step.ID))
}

// enqueue adds units that are ready to run.
func (r *run) enqueue(units ...unit) {
	at := len(r.ready)
	if r.sequential {
		at, _ = slices.BinarySearchFunc(r.ready, units[0], func(a, b unit) int { return a.step - b.step })
	}
	r.ready = slices.Insert(r.ready, at, units...)
}

func (r *run) record(i int, o plan.Outcome) {
	o.Step = r.steps[i]
	if o.Err != nil {
		o.Value, o.Text = nil, "Error: "+o.Err.Message
	}
	r.outcomes[i], r.settled[i] = o, true
	r.tracker.finish(i)
}

// failure returns the outcome of a step that fails without running.
func (r *run) failure(err *plan.Error) plan.Outcome {
	return plan.Outcome{Err: err, Started: r.opts.Elapsed()}
}

func dependencyFailed(id string) *plan.Error {
	return &plan.Error{Reason: reason.DependencyFailed, Message: fmt.Sprintf("Step %s, which this step needs, failed",
		id)}
}
