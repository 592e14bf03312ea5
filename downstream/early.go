package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream/dataflow"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// Early runs steps while their plan is still being written: those that only read and need nothing. When
// the plan is there, Execute takes over the calls that are in it; Stop ends the others.
type Early struct {
	m      *Manager
	e      Execution
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}

	mu      sync.Mutex
	started map[string]*earlyCall // by step id
	wg      sync.WaitGroup
}

type earlyCall struct {
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

// Early prepares to run steps of the query that e describes; its plan, problems and progress are not used.
func (m *Manager) Early(ctx context.Context, e Execution) *Early {
	a := &Early{m: m, e: e, slots: make(chan struct{}, m.opts.Execution.MaxParallel), started: map[string]*earlyCall{}}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// Start begins a step. It does not wait; when all places are taken the step is left to Execute.
func (a *Early) Start(step plan.Step) {
	select {
	case a.slots <- struct{}{}:
	default:
		return
	}
	c := &earlyCall{step: step, done: make(chan struct{})}
	a.mu.Lock()
	a.started[step.ID] = c
	a.mu.Unlock()
	a.wg.Go(func() {
		defer func() { <-a.slots }()
		defer close(c.done)
		defer safe.Recover(a.m.opts.Logger, "running a step early", func(err error) {
			c.outcome.Err = &plan.Error{Reason: plan.ReasonInternal, Message: err.Error()}
		})
		// A plan of its own, so that a panic is the step's failure here as it is in Execute.
		c.outcome = dataflow.Run(a.ctx, plan.Plan{Steps: []plan.Step{step}}, dataflow.Options{
			Elapsed: a.e.since,
			Log:     a.m.opts.Logger,
			Call: func(ctx context.Context, step plan.Step, arguments json.RawMessage, _ progress.Func) plan.Outcome {
				return a.m.step(ctx, &a.e, step, arguments, c.progress)
			},
		})[0]
	})
}

func (c *earlyCall) progress(fraction float64, message string) {
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
func (a *Early) take(ctx context.Context, step plan.Step, arguments json.RawMessage, report progress.Func) (plan.Outcome, bool) {
	if a == nil {
		return plan.Outcome{}, false
	}
	a.mu.Lock()
	c := a.started[step.ID]
	a.mu.Unlock()
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
		a.cancel()
		<-c.done
		return c.outcome, true
	}
}

// Stop ends the calls that no plan has taken over, and waits. Stop of nil does nothing.
func (a *Early) Stop() {
	if a != nil {
		a.cancel()
		a.wg.Wait()
	}
}
