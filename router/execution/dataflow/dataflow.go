// Package dataflow runs the steps of a plan. It schedules and nothing else: what a step's call does is
// the caller's.
//
// A step starts the moment the last step that it needs has succeeded, the steps it refers to and those it
// names in After; there are no waves, and the order of a plan's steps means nothing but who goes first
// where slots are few. Steps of a sequential plan run one at a time, the first of the plan that can run before the
// others; the next starts when one has ended, whatever came of it. A step that needs a failed one fails without
// running, and so on down. Every step has exactly one outcome, and the others never suffer from what happens to it, a
// panic included.
//
// Run owns its goroutines, one per step that is running, and has waited for all of them when it returns.
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

// Options say how to run a plan. Only Call is required.
type Options struct {
	// Call runs a step, or an element of a step that loops, with its final arguments and fills Value, Text, Blocks, Err
	// and Attempts of the outcome; Started and Duration are kept if Duration is set. It returns soon after ctx is done. It
	// is called from many goroutines at once.
	Call func(ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome

	// Allow is asked before the calls of a step, with the arguments of each; an error is the outcome of all of them. It is
	// called from many goroutines at once; nil allows all.
	Allow func(ctx context.Context, step plan.Step, calls []json.RawMessage) *plan.Error

	// Hold counts the bytes of a value that Pick has made, and is false if there is no room for it; nil has room.
	Hold func(bytes int) bool

	MaxParallel int // calls running at a time, 0 = any number
	// steps that fail with this instead of running; the first per step counts
	Problems []plan.Problem
	// a last look at final arguments, nil = fine; called from many goroutines
	Validate func(plan.Step, json.RawMessage) *plan.Error
	// of earlier rounds: steps may need them, and one in the plan itself does not run again
	Done []plan.Outcome
	// the share of the plan that is done; calls are in order, never two at once
	Progress progress.Func
	Elapsed  func() time.Duration // since the query began; nil counts from the call of Run
	Log      *slog.Logger         // for panics; nil discards
}

// Run runs a plan and returns one outcome per step, in the plan's order. When ctx is done, running steps
// are awaited and the others fail as timeout, if its deadline has passed, or as cancelled.
// The text of a failed step is "Error: " and the message. Step ids are distinct, as plan.Parse sees to.
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

// A run is the state of one call of Run. All of it belongs to the goroutine of Run; the goroutines of
// steps only read outcomes that were there before they started.
type run struct {
	opts     Options
	steps    []plan.Step
	index    map[string]int // steps by id
	done     map[string]plan.Outcome
	outcomes []plan.Outcome
	settled  []bool  // the outcome is there
	waiting  []int   // needs that have not succeeded yet
	children [][]int // steps that need this one
	ready    []unit  // in the order they became so, or in the plan's order if that is sequential
	loops    []*loop // of steps that have been prepared as such
	bar      *bar

	sequential bool
}

func newRun(p plan.Plan, opts Options) *run {
	steps := p.Steps
	r := &run{
		opts: opts, steps: steps, sequential: p.Sequential,
		index: make(map[string]int, len(steps)), done: make(map[string]plan.Outcome, len(opts.Done)),
		outcomes: make([]plan.Outcome, len(steps)), settled: make([]bool, len(steps)),
		waiting: make([]int, len(steps)), children: make([][]int, len(steps)),
		loops: make([]*loop, len(steps)), bar: newBar(len(steps), opts.Progress),
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

// value returns what a step that has succeeded produced.
func (r *run) value(id string) (json.RawMessage, bool) {
	o, ok := r.done[id]
	if i, here := r.index[id]; here {
		o, ok = r.outcomes[i], true
	}
	return o.Value, ok && o.OK() && o.Value != nil
}

// settle finds what each step needs, and the outcomes that are known from the start.
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
					Message: fmt.Sprintf("after names %q, which is no step", id)})
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

// unit is what is started at once: a step, or one call of a step that loops.
type unit struct{ step, element int }

// whole is the element of a unit that is a step.
const whole = -1

// finished is a unit that has ended, with what came of it: an outcome, or the calls that a loop turned out to make.
type finished struct {
	unit
	outcome plan.Outcome
	loop    *loop
}

// loop starts what is ready and takes in what has finished, until every step has an outcome.
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
			r.record(f.step, f.outcome) // what has not started fails below, for the same reason as this one
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

// ended is the failure of a step that has not started when ctx is done.
func ended(ctx context.Context) *plan.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &plan.Error{Reason: reason.Timeout, Message: "Query timed out before this step started"}
	}
	return &plan.Error{Reason: reason.Cancelled, Message: "Query was cancelled before this step started"}
}

// finish records an outcome and passes it on to the steps that need it: success makes them ready; a failure, or that
// the step was skipped, is theirs as well.
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

// passOn is the outcome of a step that needs one which has not succeeded.
func (r *run) passOn(o plan.Outcome) plan.Outcome {
	if o.Skipped {
		return plan.Outcome{Skipped: true, Started: r.opts.Elapsed()}
	}
	return r.failure(dependencyFailed(o.Step.ID))
}

// enqueue marks units as ready to run.
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
	r.bar.finish(i)
}

// failure is the outcome of a step that has not run.
func (r *run) failure(err *plan.Error) plan.Outcome {
	return plan.Outcome{Err: err, Started: r.opts.Elapsed()}
}

func dependencyFailed(id string) *plan.Error {
	return &plan.Error{Reason: reason.DependencyFailed, Message: fmt.Sprintf("Step %s, which this step needs, failed",
		id)}
}
