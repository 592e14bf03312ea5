package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

// Speculation runs steps while their plan is still being written: only reads without dependencies. Once the plan is
// complete, Execute takes over the calls that it contains and cancels the others. Stop cancels the rest. These calls
// and those of Execute share one concurrency limit.
type Speculation struct {
	x      *Executor
	r      Request
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{} // one per running call

	mu      sync.Mutex
	started []*early
	wg      sync.WaitGroup
}

// early is a call started before its plan was complete.
type early struct {
	step    plan.Step
	cancel  context.CancelFunc
	done    chan struct{}
	outcome plan.Outcome // once done
	dropped bool         // not in the plan, or to run later there; guarded by Speculation.mu
	taken   bool         // taken over by a step of the plan; guarded by Speculation.mu

	mu     sync.Mutex
	report progress.Func // nil until the call is taken over
	kept   []reported    // the newest reports until then
}

type reported struct {
	fraction float64
	message  string
}

const maxReported = 64 // reports kept per call until it is taken over

// Speculate prepares to run steps of the query of r. It ignores r's plan, problems and progress.
func (x *Executor) Speculate(ctx context.Context, r Request) *Speculation {
	s := &Speculation{x: x, r: r, slots: make(chan struct{}, x.maxParallel)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Start starts a simple step whose tool only reads. Other steps, such as loops, are left to Execute. It never waits:
// if no slot is free, the step is left to Execute, too.
func (s *Speculation) Start(step plan.Step) {
	if !plain(step) {
		return
	}
	if tool, unknown := s.r.Catalog.Lookup(step.Tool, s.r.Origin.Visible); unknown != nil || !tool.Reads() {
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return
	}
	c := &early{step: step, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.r.Span.Within(s.ctx))
	c.cancel = cancel
	s.mu.Lock()
	s.started = append(s.started, c)
	s.mu.Unlock()
	s.wg.Go(func() {
		defer cancel()
		defer func() { <-s.slots }()
		defer close(c.done)
		defer safe.Recover(s.x.logger, "running a step speculatively", func(err error) {
			c.outcome.Err = &plan.Error{Reason: reason.Internal, Message: err.Error()}
		})
		// Run in a plan of its own, so that a panic fails the step as it does in Execute.
		c.outcome = dataflow.Run(ctx, plan.Plan{Steps: []plan.Step{step}}, dataflow.Options{
			Elapsed: s.r.since,
			Log:     s.x.logger,
			Call: func(ctx context.Context, step plan.Step, arguments json.RawMessage, _ progress.Func) plan.Outcome {
				return s.x.step(ctx, &s.r, step, arguments, c.progress)
			},
		})[0]
	})
}

// plain reports whether a step only calls its tool, once, and waits for no other step.
func plain(step plan.Step) bool {
	return step.Each == "" && step.When == "" && step.Pick == "" && len(step.After) == 0
}

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

// drop cancels the calls that are not in the complete plan, and those that wait for other steps there: what they have
// read may have changed by then. A nil Speculation does nothing.
func (s *Speculation) drop(p plan.Plan) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.started {
		i := slices.IndexFunc(p.Steps, func(step plan.Step) bool { return c.is(step, step.Arguments) })
		if i < 0 || !plain(p.Steps[i]) || i > 0 && p.Sequential {
			c.dropped = true
			c.cancel()
		}
	}
}

// take waits for the outcome of this call; ok is false if it was not started early.
func (s *Speculation) take(
	ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func,
) (plan.Outcome, bool) {
	if s == nil {
		return plan.Outcome{}, false
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.started, func(c *early) bool { return !c.dropped && c.is(step, arguments) })
	if i < 0 {
		s.mu.Unlock()
		return plan.Outcome{}, false
	}
	c := s.started[i]
	c.taken = true
	s.mu.Unlock()
	c.mu.Lock()
	c.report = report
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
	return c.outcome, true
}

// slot waits for a free slot and returns the function that frees it. A nil Speculation has no limit.
func (s *Speculation) slot(ctx context.Context) (release func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Stop cancels the calls that no plan has taken over and waits for them. A nil Speculation does nothing.
func (s *Speculation) Stop() {
	if s != nil {
		s.cancel()
		s.wg.Wait()
	}
}

// Dropped returns the outcomes of calls that no plan has taken over, in start order. It must follow Stop.
func (s *Speculation) Dropped() (out []plan.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.started {
		if !c.taken && c.outcome.Attempts > 0 {
			out = append(out, c.outcome)
		}
	}
	return out
}
