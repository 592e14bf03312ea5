package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

// Speculation runs steps while their plan is still being written: those that only read and need nothing. When
// the plan is there, Execute takes over the calls that are in it; Stop ends the others.
type Speculation struct {
	x      *Executor
	r      Request
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}

	mu      sync.Mutex
	started map[string]*begun // by step id
	wg      sync.WaitGroup
}

type begun struct {
	step    plan.Step
	done    chan struct{}
	outcome plan.Outcome

	mu     sync.Mutex
	report progress.Func // nil until the plan is there
	kept   []reported    // until then, the newest
}

type reported struct {
	fraction float64
	message  string
}

const maxReported = 64 // reports of a step kept until its plan is there

// Speculate prepares to run steps of the query that r describes; its plan, problems and progress are not used.
func (x *Executor) Speculate(ctx context.Context, r Request) *Speculation {
	s := &Speculation{x: x, r: r, slots: make(chan struct{}, x.maxParallel), started: map[string]*begun{}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Start begins a step. It does not wait; when all places are taken the step is left to Execute.
func (s *Speculation) Start(step plan.Step) {
	select {
	case s.slots <- struct{}{}:
	default:
		return
	}
	c := &begun{step: step, done: make(chan struct{})}
	s.mu.Lock()
	s.started[step.ID] = c
	s.mu.Unlock()
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		defer close(c.done)
		defer safe.Recover(s.x.logger, "running a step early", func(err error) {
			c.outcome.Err = &plan.Error{Reason: plan.ReasonInternal, Message: err.Error()}
		})
		// A plan of its own, so that a panic is the step's failure here as it is in Execute.
		c.outcome = dataflow.Run(s.ctx, plan.Plan{Steps: []plan.Step{step}}, dataflow.Options{
			Elapsed: s.r.since,
			Log:     s.x.logger,
			Call: func(ctx context.Context, step plan.Step, arguments json.RawMessage, _ progress.Func) plan.Outcome {
				return s.x.step(ctx, &s.r, step, arguments, c.progress)
			},
		})[0]
	})
}

func (c *begun) progress(fraction float64, message string) {
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

// take returns the outcome of the very call, waiting for it; false if it was not started early.
func (s *Speculation) take(
	ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func,
) (plan.Outcome, bool) {
	if s == nil {
		return plan.Outcome{}, false
	}
	s.mu.Lock()
	c := s.started[step.ID]
	s.mu.Unlock()
	if c == nil || c.step.Tool != step.Tool || c.step.Server != step.Server || !bytes.Equal(c.step.Arguments, arguments) {
		return plan.Outcome{}, false
	}
	c.mu.Lock()
	c.report = report
	for _, r := range c.kept {
		report(r.fraction, r.message)
	}
	c.kept = nil
	c.mu.Unlock()
	select {
	case <-c.done:
		return c.outcome, true
	case <-ctx.Done():
		s.cancel()
		<-c.done
		return c.outcome, true
	}
}

// Stop ends the calls that no plan has taken over, and waits. Stop of nil does nothing.
func (s *Speculation) Stop() {
	if s != nil {
		s.cancel()
		s.wg.Wait()
	}
}
