package eval

import (
	"context"
	"errors"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// WithModel returns a Plan that asks a model as the router does: it is shown the tools that the search finds, may
// search for others, and repairs its plan. Unlike the router it does not fall back to the rules: what the model cannot
// plan is an error, so that the figures are the model's own.
func WithModel(model llm.Model, config planner.Config) Plan {
	p := planner.New(planner.Options{Config: config, Model: model, Ranker: ranking{}, Fallback: noFallback{}})
	return func(ctx context.Context, query string, catalog rules.Catalog) (plan.Plan, error) {
		tools, ok := catalog.(planner.Tools)
		if !ok || len(tools.Servers()) == 0 {
			return plan.Plan{}, nil
		}
		r, err := p.Plan(ctx, planner.Request{Query: query, Tools: tools, MaxRounds: 1})
		return r.Plan, err
	}
}

// errNoPlan is for questions that the model did not plan.
var errNoPlan = errors.New("the model made no plan")

// noFallback plans nothing.
type noFallback struct{}

// Plan implements planner.Fallback.
func (noFallback) Plan(context.Context, planner.Request) (plan.Plan, error) {
	return plan.Plan{}, errNoPlan
}
