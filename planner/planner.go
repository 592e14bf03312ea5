// Package planner turns a question and a set of tools into a plan.
//
// With a model it shows the model a shortlist of the tools in compact form, reads the plan out of the answer, checks
// it, and shows the model the exact errors once. Without a model, or when it fails or writes nothing that can be read,
// the fallback plans, in the first round; later rounds then plan nothing more. A model that declines has the last word:
// then nothing is planned. Descriptions of tools, the conversation and earlier results reach the model only as marked
// data.
//
// A Planner allows concurrent use and keeps nothing between calls. It calls no downstream tool.
package planner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Ranker orders tools by how well they fit a question, best first, and returns at most limit of them. Tools that do not
// fit at all may be left out.
type Ranker interface {
	Rank(ctx context.Context, query string, tools Tools, limit int) []plan.Tool
}

// Fallback plans without a model.
type Fallback interface {
	Plan(ctx context.Context, req Request) (plan.Plan, error)
}

// Options are what a Planner is made of. Fallback is required.
type Options struct {
	Config    Config          // zero fields become the documented defaults
	Model     llm.Model       // nil for none
	Ranker    Ranker          // nil takes tools as they come
	Fallback  Fallback        // plans when there is no model or no plan of it
	Validator *plan.Validator // nil makes one; sharing it shares compiled schemas
	Logger    *slog.Logger    // nil discards
}

// Planner makes plans.
type Planner struct {
	cfg       Config
	model     llm.Model
	ranker    Ranker
	fallback  Fallback
	validator *plan.Validator
	log       *slog.Logger
}

// New returns a Planner.
func New(opts Options) *Planner {
	p := &Planner{
		cfg: opts.Config, model: opts.Model, ranker: opts.Ranker, fallback: opts.Fallback,
		validator: opts.Validator, log: opts.Logger,
	}
	if p.cfg.Shortlist <= 0 {
		p.cfg.Shortlist = Default().Shortlist
	}
	if p.cfg.MaxRounds <= 0 {
		p.cfg.MaxRounds = Default().MaxRounds
	}
	if p.validator == nil {
		p.validator = plan.NewValidator()
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p
}

// Request is what is planned for.
type Request struct {
	Query     string
	Context   []llm.Message  // the conversation so far, untrusted
	Tools     Tools          // all that may be used; nil for none
	Round     int            // 1 is the first; 0 counts as 1
	MaxRounds int            // of this query; 0 is the configured number
	Outcomes  []plan.Outcome // of earlier rounds
	Replan    bool           // some of the Outcomes failed or found nothing, and that is why there is another round
	Tokens    int            // used by earlier rounds, as the Result of the last one says
	CanAsk    bool           // the user can be asked for required arguments that are not known
	Model     llm.Model      // used instead of the configured one; nil for that

	// OnStep gets, while the model still writes, each step that may start at once: it only reads, needs no other step,
	// and its tool and arguments are in order. The final plan need not contain it. It is called from the goroutine that
	// called Plan, for each id, tool and arguments once. May be nil.
	OnStep func(step plan.Step)
}

// Result is a plan and what it cost.
type Result struct {
	Plan     plan.Plan
	Problems []plan.Problem // what is wrong with steps of the plan
	Usage    llm.Usage
	Tokens   int // used for the query so far; estimated where the endpoint does not count them
	Warnings []string
}

// Plan makes a plan, checked and with every tool named as Tools names it. Steps that are at fault stay in it and are in
// Problems: they have to fail with that, and the rest runs. A panic becomes an empty plan and is logged. The error is
// the context's, or that of the fallback.
func (p *Planner) Plan(ctx context.Context, req Request) (result Result, err error) {
	req.Round = max(req.Round, 1)
	defer func() {
		if cause := recover(); cause != nil {
			p.log.Error("Planning failed: panic", "panic", cause, "stack", string(debug.Stack()))
			result.Plan = plan.Plan{Source: plan.SourceRules, Rounds: req.Round, Steps: []plan.Step{}, Note: noPlan}
			result.Plan.Unmet = []plan.Unmet{{Text: req.Query, Reason: plan.UnmetFailed}}
			result.Problems, err = nil, nil
			result.Warnings = append(result.Warnings, noPlan)
		}
	}()
	if req.MaxRounds <= 0 {
		req.MaxRounds = p.cfg.MaxRounds
	}
	if req.Tools == nil {
		req.Tools = List(nil)
	}
	model := p.model
	if req.Model != nil {
		model = req.Model
	}
	if model != nil && len(req.Tools.First(1)) > 0 {
		if result, err = p.ask(ctx, model, req); err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return result, fmt.Errorf("planning: %w", context.Cause(ctx))
		}
		if refusal := declined(err); refusal != nil { // and no other planner takes its place
			p.log.Warn("The model declined to plan", "error", err)
			result.Plan = plan.Plan{Source: plan.SourceModel, Rounds: req.Round, Steps: []plan.Step{}}
			result.Plan.Note = "The model declined: " + short.Line(refusal.Message, maxRefusal)
			result.Plan.Unmet = []plan.Unmet{{Text: req.Query, Reason: plan.UnmetFailed}}
			return result, nil
		}
		result.Warnings = append(result.Warnings, p.explain(err, req.Round))
		if req.Round > 1 { // the fallback knows nothing of earlier rounds and would plan them again
			result.Plan = plan.Plan{Source: plan.SourceModel, Rounds: req.Round, Steps: []plan.Step{}}
			return result, nil
		}
	}
	made, err := p.fallback.Plan(ctx, req)
	if err != nil {
		return result, fmt.Errorf("planning without a model: %w", err)
	}
	if made.Source == "" {
		made.Source = plan.SourceRules
	}
	if made.Steps == nil {
		made.Steps = []plan.Step{}
	}
	made.Rounds = req.Round
	made.More = made.More && req.Round < req.MaxRounds
	result.Problems = plan.Check(&made, p.validator, req.Tools.Lookup, req.Outcomes)
	result.Plan = made
	return result, nil
}

// declined returns how the model, or a filter of its endpoint, has declined to plan; nil if it has not.
func declined(err error) *llm.Error {
	refusal := new(llm.Error)
	if errors.As(err, &refusal) && refusal.Declined() {
		return refusal
	}
	return nil
}

// maxRefusal bounds, in bytes, what a model says when it declines.
const maxRefusal = 500

// noPlan is what the user is told after a panic.
const noPlan = "The question could not be planned because of an internal error. Try other words."

// explain logs why the model made no plan, and says it in a warning.
func (p *Planner) explain(err error, round int) string {
	consequence := "planned without the model"
	if round > 1 {
		consequence = "no further steps were planned"
	}
	if errors.Is(err, errUnreadable) {
		p.log.Error("LLM returned invalid JSON for planning", "error", err)
		return consequence + ": its answer holds no plan that can be read"
	}
	p.log.Error("Planning failed: " + err.Error())
	return fmt.Sprintf("%s: %v", consequence, err)
}

// errUnreadable is for answers of a model that hold no plan.
var errUnreadable = errors.New("no plan in the model's answer")

// errTokens is why a model is not asked again.
var errTokens = fmt.Errorf("planning this query has used its %d tokens", maxTokens)

// errShare is why a model is given up that uses up the time that executing the plan will need.
var errShare = errors.New("the model took more than half of the query's time")

// share bounds planning with a model to half of the time that is left, so that a model which hangs leaves the fallback
// and the tools enough.
func share(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Until(deadline)/2, errShare)
}
