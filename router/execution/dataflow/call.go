package dataflow

import (
	"context"
	"encoding/json"
	"runtime/debug"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// run runs one unit and sends its outcome, also after a panic.
func (r *run) run(ctx context.Context, u unit, results chan<- finished) {
	step := r.steps[u.step]
	started := r.opts.Elapsed()
	f := finished{unit: u}
	var sent json.RawMessage
	done := false
	defer func() {
		if cause := recover(); cause != nil {
			r.opts.Log.Error("Step panicked", "step", step.ID, "tool", step.Tool, "panic", cause, "stack", string(debug.Stack()))
		}
		if !done { // the caller's code panicked or ended the goroutine
			f.outcome = plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: reason.Internal,
				Message: "internal error while running this step"}}
		}
		if f.outcome.Sent == nil {
			f.outcome.Sent = sent
		}
		if f.outcome.Duration == 0 {
			f.outcome.Started, f.outcome.Duration = started, r.opts.Elapsed()-started
		}
		results <- f
	}()
	switch {
	case u.element != whole:
		l := r.loops[u.step]
		sent = l.elements[u.element].arguments
		f.outcome = r.call(ctx, l.scope, &l.elements[u.element].Item, sent, l.tracker.step(u.element, step.Tool))
	case step.Each != "":
		f.outcome, f.loop = r.prepare(ctx, step)
	default:
		scope := step.Scope(r.isStep, r.value)
		arguments, outcome, ready := r.arguments(ctx, scope, step, nil)
		if f.outcome = outcome; !ready {
			break
		}
		sent = arguments
		if f.outcome = r.allow(ctx, step, []json.RawMessage{arguments}); f.outcome.Err == nil {
			f.outcome = r.call(ctx, scope, nil, arguments, r.tracker.step(u.step, step.Tool))
		}
	}
	done = true
}

// arguments returns the final arguments of a step or element. ready is false if there is nothing to call; the outcome
// then says whether it was skipped or failed.
func (r *run) arguments(
	ctx context.Context, scope *plan.Scope, step plan.Step, item *plan.Item,
) (arguments json.RawMessage, o plan.Outcome, ready bool) {
	wanted, err := scope.Wanted(ctx, item)
	if err == nil && !wanted {
		return nil, plan.Outcome{Skipped: true}, false
	}
	if err == nil {
		arguments, err = scope.Arguments(item)
	}
	if err == nil && r.opts.Validate != nil {
		err = r.opts.Validate(step, arguments)
	}
	if err != nil && ctx.Err() != nil {
		err = ended(ctx)
	}
	return arguments, plan.Outcome{Err: err}, err == nil
}

// allow asks whether the calls of a step may be made. A refusal is the outcome's error.
func (r *run) allow(ctx context.Context, step plan.Step, calls []json.RawMessage) plan.Outcome {
	if r.opts.Allow == nil {
		return plan.Outcome{}
	}
	return plan.Outcome{Err: r.opts.Allow(ctx, step, calls)}
}

// call calls the tool and derives the step's value from the result.
func (r *run) call(ctx context.Context, scope *plan.Scope, item *plan.Item, arguments json.RawMessage,
	report progress.Func) plan.Outcome {
	o := r.opts.Call(ctx, scope.Step(), arguments, report)
	if item != nil {
		o.Index = item.Index
	}
	if !o.OK() {
		return o
	}
	picked, err := scope.Pick(ctx, item, o.Value)
	switch {
	case err != nil:
		o.Err = err
	case scope.Step().Pick == "":
	case r.opts.Hold != nil && !r.opts.Hold(len(picked)):
		o.Err = &plan.Error{
			Reason:  reason.TooLarge,
			Message: "pick: the values of this query are too large in total; the tool was called and has answered",
		}
	default:
		o.Value, o.Text = picked, ""
	}
	return o
}
