// Package planner turns a question and a set of tools into a plan.
//
// [Planner.Plan] shows the model the tools that a question may need, within a budget of tokens, lets it search for
// others, reads the plan from its response, checks it, and shows the model the errors once. Without a model, or if it
// fails or writes no readable plan, the [Fallback] plans the first round; later rounds then have no steps. If the model
// declines, nothing is planned. The model gets descriptions of tools, the conversation and earlier results only as
// marked data.
//
// In [ModeTools] the model calls the tools natively instead of writing a plan. Its calls of one turn are the plan of
// one round, and are checked, shown and run like any other plan.
//
// A Planner is safe for concurrent use. Between calls it keeps only the time until which [ModeAuto] uses
// native tools. It calls no downstream tool.
package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Ranker returns the tools that fit a question best, best first, at most limit of them. It may leave out tools that
// do not fit.
type Ranker interface {
	Rank(ctx context.Context, query string, tools Tools, limit int) []plan.Tool
}

// Fallback plans without a model.
type Fallback interface {
	Plan(ctx context.Context, req Request) (plan.Plan, error)
}

// Options configure a Planner. Ranker and Fallback are required.
type Options struct {
	Config    Config          // zero fields become the documented defaults
	Model     llm.Model       // nil for none
	Ranker    Ranker          // chooses the tools to show
	Fallback  Fallback        // plans without a model and when the model fails
	Validator *plan.Validator // nil makes one; sharing it shares compiled schemas
	Logger    *slog.Logger    // nil discards
	Mask      *redact.Masker  // of earlier results in prompts; nil knows no secrets

	Now func() time.Time // the time and zone that the model is told; nil is time.Now

	// Learned returns the type of a tool's earlier results and the argument names that it accepted. The model sees them
	// if the tool does not declare its own. Plans are not checked against them. May be nil.
	Learned func(t *plan.Tool) (result string, arguments []string)
}

// Config bounds planning.
type Config struct {
	ToolTokens int    `yaml:"tool_tokens"` // of the tools in a prompt, at bytesPerToken each
	MaxRounds  int    `yaml:"max_rounds"`  // planning rounds of one query
	Mode       string `yaml:"mode"`        // plan, tools or auto

	// Learn learns the result types of tools without an outputSchema, and the tools that answer questions.
	Learn bool `yaml:"learn"`
}

// Default returns the documented defaults.
func Default() Config { return Config{ToolTokens: 6000, MaxRounds: 3, Mode: ModePlan, Learn: true} }

// bytesPerToken is the number of bytes of a prompt that count as a token: the approximate average of large models'
// tokenizers for English and JSON.
const bytesPerToken = 4

// Planner makes plans.
type Planner struct {
	cfg       Config
	model     llm.Model
	ranker    Ranker
	fallback  Fallback
	validator *plan.Validator
	log       *slog.Logger
	mask      *redact.Masker
	now       func() time.Time
	learned   func(t *plan.Tool) (result string, arguments []string) // may be nil

	nativeUntil atomic.Int64 // in ModeAuto, when to ask for a plan again; nanoseconds since 1970
}

// New returns a Planner.
func New(opts Options) *Planner {
	p := &Planner{
		cfg: opts.Config, model: opts.Model, ranker: opts.Ranker, fallback: opts.Fallback,
		validator: opts.Validator, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		mask: opts.Mask, now: opts.Now, learned: opts.Learned,
	}
	p.cfg.ToolTokens = cmp.Or(max(p.cfg.ToolTokens, 0), Default().ToolTokens)
	p.cfg.Mode = cmp.Or(p.cfg.Mode, Default().Mode)
	p.cfg.MaxRounds = cmp.Or(max(p.cfg.MaxRounds, 0), Default().MaxRounds)
	if p.validator == nil {
		p.validator = plan.NewValidator()
	}
	if p.now == nil {
		p.now = time.Now
	}
	return p
}

// Request is a request for a plan.
type Request struct {
	Query     string
	Context   []llm.Message  // the conversation so far, untrusted
	Tools     Tools          // the allowed tools
	Round     int            // 1 is the first; 0 counts as 1
	MaxRounds int            // of this query; 0 is the configured number
	Outcomes  []plan.Outcome // of earlier rounds
	Replan    bool           // the round is for Outcomes that failed or found nothing
	Lacks     string         // what Outcomes lack, as the writer of the answer says, untrusted; empty = not asked
	Tokens    int            // Result.Tokens of the last round
	CanAsk    bool           // the user can be asked for unknown required arguments
	Approved  bool           // the user allows every call, so that equal writes are no problem
	Model     llm.Model      // nil = the configured model
	Shown     *Shown         // what the model has seen in this query; nil = forget it after this round

	// NeedsApproval reports whether a model's call of the tool, planned before or after it was shown results of tools,
	// needs the user's approval, whatever its arguments. nil = none does.
	NeedsApproval func(t plan.Tool, afterResults bool) bool

	// OnStep gets each step that may start at once while the model writes: it is valid, only reads and needs no other
	// step. The final plan may not contain it. OnStep is called by the goroutine that called Plan, once for each id,
	// tool and arguments. May be nil.
	OnStep func(step plan.Step)
}

// Result is a plan and its cost.
type Result struct {
	Plan     plan.Plan
	Problems []plan.Problem // of steps of the plan
	Usage    llm.Usage
	Tokens   int // used for the query so far; estimated if the endpoint does not count them
	Warnings []string
}

// Plan makes and checks a plan with the names of Tools. Faulty steps stay in the plan and are listed in Problems: they
// must fail with these problems, and the other steps run. After a panic, which is logged, the plan is empty. The error
// is from the context or the fallback.
func (p *Planner) Plan(ctx context.Context, req Request) (result Result, err error) {
	req.Round = max(req.Round, 1)
	defer func() {
		if cause := recover(); cause != nil {
			p.log.ErrorContext(ctx, "Planning failed: panic", "panic", cause, "stack", string(debug.Stack()))
			result.Plan = plan.Plan{Source: plan.SourceRules, Rounds: req.Round, Steps: []plan.Step{}, Note: noPlan}
			result.Plan.Unmet = []plan.Unmet{{Text: req.Query, Reason: plan.UnmetFailed}}
			result.Problems, err = nil, nil
			result.Warnings = append(result.Warnings, noPlan)
		}
	}()
	req.MaxRounds = cmp.Or(max(req.MaxRounds, 0), p.cfg.MaxRounds)
	model := p.model
	if req.Model != nil {
		model = req.Model
	}
	if req.Shown == nil {
		req.Shown = &Shown{}
	}
	var unplanned error
	if model != nil && hasAny(req.Tools) {
		if result, err = p.askInMode(ctx, model, req); err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return result, fmt.Errorf("planning: %w", context.Cause(ctx))
		}
		if refusal := declined(err); refusal != nil { // the fallback must not override a refusal
			p.log.WarnContext(ctx, "The model declined to plan", "error", err)
			result.Plan = plan.Plan{Source: plan.SourceModel, Rounds: req.Round, Steps: []plan.Step{}}
			result.Plan.Note = "The model declined: " + texts.Line(refusal.Message, maxRefusal)
			result.Plan.Unmet = []plan.Unmet{{Text: req.Query, Reason: plan.UnmetFailed}}
			return result, nil
		}
		unplanned = err
		result.Warnings = append(result.Warnings, p.logFailure(ctx, err, req.Round))
		if req.Round > 1 { // the fallback would repeat the earlier rounds
			result.Plan = plan.Plan{Source: plan.SourceModel, Rounds: req.Round, Steps: []plan.Step{}}
			return result, nil
		}
	}
	made, err := p.fallback.Plan(ctx, req)
	if err != nil {
		return result, fmt.Errorf("planning without a model: %w", err)
	}
	if unplanned != nil {
		blame(unplanned, &made)
	}
	made.Source = cmp.Or(made.Source, plan.SourceRules)
	if made.Steps == nil {
		made.Steps = []plan.Step{}
	}
	made.Rounds = req.Round
	made.More = made.More && req.Round < req.MaxRounds
	result.Problems = plan.Check(&made, p.validator, req.Tools.Lookup, req.Outcomes)
	result.Plan = made
	return result, nil
}

// blame says in a fallback's plan that the model made none, if the fallback did not understand a part of the question.
// This replaces the fallback's note, which would say that no tool fits; the unmet parts name the nearest tools.
func blame(unplanned error, made *plan.Plan) {
	blamed := false
	for i := range made.Unmet {
		switch part := &made.Unmet[i]; {
		case part.Reason == plan.UnmetUnclear && part.Tool == "":
			part.Reason, blamed = plan.UnmetFailed, true
		case part.Reason == plan.UnmetNoTool:
			blamed = true
		}
	}
	if !blamed {
		return
	}
	made.Note = "The planning model did not answer."
	if errors.Is(unplanned, errUnreadable) {
		made.Note = "The planning model wrote no plan that can be read."
	}
}

// askInMode asks the model for a plan. In ModeAuto, a model that wrote none may call tools instead, within the same
// half of the time.
func (p *Planner) askInMode(ctx context.Context, model llm.Model, req Request) (Result, error) {
	ctx, stop := halfOfTime(ctx)
	defer stop()
	result, err := p.ask(ctx, model, req)
	again := p.cfg.Mode == ModeAuto && req.Model == nil && req.Round == 1 && !req.Shown.native
	if !again || !errors.Is(err, errUnreadable) || ctx.Err() != nil {
		return result, err
	}
	p.log.Warn("The model writes no readable plan; trying native tool calls", "error", err)
	*req.Shown = Shown{native: true}
	req.Tokens = result.Tokens
	next, failed := p.ask(ctx, model, req)
	next.Usage.Add(result.Usage)
	if failed == nil && len(next.Plan.Steps) > 0 {
		if req.Shown.called {
			p.nativeUntil.Store(p.now().Add(preferTools).UnixNano())
		}
		return next, nil
	}
	if declined(failed) != nil {
		err = failed
	}
	*req.Shown = Shown{}
	return Result{Usage: next.Usage, Tokens: next.Tokens}, err
}

func hasAny(tools Tools) bool {
	for range tools.All() {
		return true
	}
	return false
}

// declined returns the refusal of the model or of its endpoint's filter, or nil.
func declined(err error) *llm.Error {
	refusal := new(llm.Error)
	if errors.As(err, &refusal) && refusal.Declined() {
		return refusal
	}
	return nil
}

// maxRefusal bounds the text of a refusal in bytes.
const maxRefusal = 500

// noPlan is the message to the user after a panic.
const noPlan = "The question could not be planned because of an internal error. Try other words."

// logFailure logs why the model made no plan, and returns it as a warning.
func (p *Planner) logFailure(ctx context.Context, err error, round int) string {
	consequence := "planned without the model"
	if round > 1 {
		consequence = "no further steps were planned"
	}
	if errors.Is(err, errUnreadable) {
		p.log.ErrorContext(ctx, "LLM returned invalid JSON for planning", "error", err)
		return consequence + ": its answer holds no plan that can be read"
	}
	p.log.ErrorContext(ctx, "Planning failed: "+err.Error())
	return fmt.Sprintf("%s: %v", consequence, err)
}

// errUnreadable means that a response has no readable plan.
var errUnreadable = errors.New("no plan in the model's answer")

// errTokens means that the tokens of a query are used up.
var errTokens = fmt.Errorf("planning this query has used its %d tokens", maxTokens)

// errHalfOfTime is the cause of a timeout that keeps time for execution.
var errHalfOfTime = errors.New("the model took more than half of the query's time")

// halfOfTime limits planning with a model to half of the remaining time: the rest is for the fallback and the tools.
func halfOfTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Until(deadline)/2, errHalfOfTime)
}
