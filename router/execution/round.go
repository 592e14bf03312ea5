package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Round is one round of a query. Its calls share one concurrency limit.
//
// Early calls are reads without dependencies that Start begins while the plan is still being written. Execute takes
// over those that the complete plan contains and cancels the others.
type Round struct {
	opts   Options
	req    Request
	ctx    context.Context // of early calls
	cancel context.CancelFunc
	slots  chan struct{} // one per running call
	early  []*early
	wg     sync.WaitGroup
}

// early is a call that is started before its plan is complete. It is shared by its own goroutine and those of
// Execute.
type early struct {
	step    plan.Step
	cancel  context.CancelFunc
	done    chan struct{}
	outcome plan.Outcome // once done
	dropped bool         // not in the plan, or the plan makes it wait; set before the plan runs

	mu     sync.Mutex
	taken  bool         // by a step of the plan
	report ProgressFunc // nil until the call is taken over
	kept   []reported   // the newest reports until then
}

type reported struct {
	fraction float64
	message  string
}

const maxReported = 64 // reports kept per call until it is taken over

// Begin begins a round. Stop must follow.
func (x *Executor) Begin(ctx context.Context, req Request) *Round {
	r := &Round{opts: x.opts, req: req, slots: make(chan struct{}, x.opts.MaxParallel)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// Start starts a simple step whose tool only reads and whose call needs no consent. Other steps, such as loops, are
// left to Execute. It never waits: if no slot is free, the step is left to Execute, too.
func (r *Round) Start(step plan.Step, tool plan.Tool, from downstream.Provenance) {
	if !simple(step) || !tool.Reads() {
		return
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return
	}
	c := &early{step: step, done: make(chan struct{}), outcome: plan.Outcome{Sent: step.Arguments}}
	ctx, cancel := context.WithCancel(r.req.Span.Within(r.ctx))
	c.cancel = cancel
	r.early = append(r.early, c)
	r.wg.Go(func() {
		defer func() {
			cancel()
			<-r.slots
			close(c.done)
		}()
		r.guard(step, &c.outcome, func() {
			c.outcome = r.traced(ctx, toolCall{step, tool, step.Arguments, from, c.progress})
		})
	})
}

// simple reports whether a step only calls its tool, once, and waits for no other step.
func simple(step plan.Step) bool {
	return step.Each == "" && step.When == "" && step.Pick == "" && len(step.After) == 0
}

// guard runs f, which sets an outcome, and adds the times that the outcome lacks. If f panics or ends its goroutine,
// the step fails.
func (r *Round) guard(step plan.Step, o *plan.Outcome, f func()) {
	started := r.elapsed()
	returned := false
	defer func() {
		if cause := recover(); cause != nil {
			r.opts.Logger.Error("Step panicked", "step", step.ID, "tool", step.Tool, "panic", cause, "stack",
				string(debug.Stack()))
		}
		if !returned {
			*o = plan.Outcome{Attempts: 1, Sent: o.Sent, Err: &plan.Error{Reason: reason.Internal,
				Message: "internal error while running this step"}}
		}
		if o.Duration == 0 {
			o.Started, o.Duration = started, r.elapsed()-started
		}
	}()
	f()
	returned = true
}

// elapsed returns the time since the query began.
func (r *Round) elapsed() time.Duration { return time.Since(r.req.Began) }

func (c *early) progress(fraction float64, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report != nil {
		c.report(fraction, message)
		return
	}
	if len(c.kept) == maxReported {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.kept = append(c.kept, reported{fraction, message})
}

// is reports whether a step makes exactly this call.
func (c *early) is(step plan.Step, arguments json.RawMessage) bool {
	return c.step.ID == step.ID && c.step.Tool == step.Tool && c.step.Server == step.Server &&
		bytes.Equal(c.step.Arguments, arguments)
}

// drop cancels the early calls that are not in the complete plan, and those that wait for other steps there: what they
// have read may have changed by then.
func (r *Round) drop(p plan.Plan) {
	for _, c := range r.early {
		i := slices.IndexFunc(p.Steps, func(step plan.Step) bool { return c.is(step, step.Arguments) })
		if i < 0 || !simple(p.Steps[i]) || i > 0 && p.Sequential {
			c.dropped = true
			c.cancel()
		}
	}
}

// takeOver returns the early call that a step of the plan makes, or nil.
func (r *Round) takeOver(step plan.Step, arguments json.RawMessage) *early {
	i := slices.IndexFunc(r.early, func(c *early) bool { return !c.dropped && c.is(step, arguments) })
	if i < 0 {
		return nil
	}
	return r.early[i]
}

// wait reports the progress of an early call from now on, and returns its outcome.
func (c *early) wait(ctx context.Context, report ProgressFunc) plan.Outcome {
	c.mu.Lock()
	c.taken, c.report = true, report
	for _, r := range c.kept {
		report(r.fraction, r.message)
	}
	c.kept = nil
	c.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.cancel()
		<-c.done
	}
	return c.outcome
}

// Stop cancels the early calls that no plan has taken over and waits for them. It returns the outcomes of those that
// were made, in start order.
func (r *Round) Stop() (dropped []plan.Outcome) {
	r.cancel()
	r.wg.Wait()
	for _, c := range r.early {
		if !c.taken && c.outcome.Attempts > 0 {
			dropped = append(dropped, c.outcome)
		}
	}
	return dropped
}
