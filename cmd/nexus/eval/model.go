package eval

import (
	"context"
	"errors"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// WithModel returns a Plan that asks a model, shown the shortlist of the tools that rank finds. Unlike a
// router it does not fall back to the rules: what the model cannot plan is an error, so that the figures
// are the model's own. A question that no tool shares a word with gets an empty plan.
func WithModel(model llm.Model, config planner.Config) Plan {
	if config.Shortlist <= 0 {
		config.Shortlist = planner.Default().Shortlist
	}
	p := planner.New(planner.Options{Config: config, Model: model, Fallback: noFallback{}})
	return func(ctx context.Context, query string, catalog rules.Catalog) (plan.Plan, error) {
		tools := catalog.Ask(ctx, query, config.Shortlist)
		if len(tools) == 0 {
			return plan.Plan{}, nil
		}
		r, err := p.Plan(ctx, planner.Request{Query: query, Tools: planner.List(tools), MaxRounds: 1})
		return r.Plan, err
	}
}

// errNoPlan is for questions that the model did not plan.
var errNoPlan = errors.New("the model made no plan")

// noFallback plans nothing.
type noFallback struct{}

func (noFallback) Plan(context.Context, planner.Request) (plan.Plan, error) {
	return plan.Plan{}, errNoPlan
}
