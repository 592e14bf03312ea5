package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/planner"
)

// planWith returns the planner that the flags select: the rules or the configured model. model is nil for the rules.
func planWith(byModel bool, files []string) (with planFunc, m *model, err error) {
	if !byModel {
		return planByRules(), nil, nil
	}
	cfg, err := config.Load(files, config.Options{})
	if err != nil {
		return nil, nil, err
	}
	if !cfg.LLM.Plans() {
		return nil, nil, usageError{errors.New("--model needs a model; name one under llm.planner in the configuration")}
	}
	m = newModel(llm.New(cfg.LLM.Planner, llm.Options{}), cfg.Planner)
	return m.plan, m, nil
}

// model plans with a model as the router does: the model sees the tools that a search finds, may search for others,
// repairs its plan, and may ask for further rounds, which get results made up from the declared fields. Unlike the
// router it does not fall back to the rules: a question that the model does not plan is an error. A model belongs to
// one goroutine.
type model struct {
	planner *planner.Planner
	rounds  int
	tools   catalog   // of the last question
	usage   llm.Usage // of the last question
	first   *planner.Shown
	shown   *planner.Shown
}

func newModel(m llm.Model, config planner.Config) *model {
	config.MaxRounds = cmp.Or(max(config.MaxRounds, 0), planner.Default().MaxRounds)
	out := &model{rounds: config.MaxRounds}
	out.planner = planner.New(planner.Options{Config: config, Model: m, Ranker: out, Fallback: noFallback{}})
	return out
}

// plan implements planFunc.
func (m *model) plan(ctx context.Context, query string, tools catalog) (plan.Plan, error) {
	m.tools, m.usage, m.first, m.shown = tools, llm.Usage{}, nil, &planner.Shown{}
	if len(tools.List) == 0 {
		return plan.Plan{}, nil
	}
	req := planner.Request{Query: query, MaxRounds: m.rounds, Shown: m.shown, Tools: tools}
	m.first = m.planner.Show(ctx, req)
	whole := plan.Plan{Source: plan.SourceModel}
	for req.Round = 1; ; req.Round++ {
		r, err := m.planner.Plan(ctx, req)
		m.usage.Add(r.Usage)
		whole.Steps = append(whole.Steps, r.Plan.Steps...)
		if err != nil {
			return whole, fmt.Errorf("round %d: %w", req.Round, err)
		}
		req.Tokens = r.Tokens
		for _, s := range r.Plan.Steps {
			tool, _ := req.Tools.Lookup(s.Tool) // an unknown tool declares nothing
			req.Outcomes = append(req.Outcomes, plan.Outcome{Step: s, Sent: s.Arguments, Value: example(tool), Attempts: 1})
		}
		if more, _ := r.Plan.Continues(ctx, req.Outcomes); !more || len(r.Plan.Steps) == 0 || req.Round == m.rounds {
			return whole, nil
		}
	}
}

// example makes up a result with the declared fields.
func example(t plan.Tool) json.RawMessage {
	fields := map[string]any{}
	if read, err := schema.Read(t.OutputSchema); err == nil {
		for _, f := range read.Properties {
			fields[f.Name] = "(some " + f.Name + ")"
			switch kind := append(f.Types, "")[0]; kind {
			case "integer", "number":
				fields[f.Name] = 1
			case "boolean":
				fields[f.Name] = true
			case "array":
				fields[f.Name] = []any{}
			case "object":
				fields[f.Name] = map[string]any{}
			}
		}
	}
	raw, _ := json.Marshal(fields) // such values can be encoded
	return raw
}

// Rank implements planner.Ranker. tools may be a part of the catalog.
func (m *model) Rank(ctx context.Context, query string, tools planner.Tools, limit int) []plan.Tool {
	ranked := slices.DeleteFunc(m.tools.Ask(ctx, query, len(m.tools.List)), func(t plan.Tool) bool {
		return !tools.Has(t.Server, t.Tool)
	})
	return ranked[:min(len(ranked), limit)]
}

// effort has means over tasks of planning with a model.
type effort struct {
	Turns  float64 `json:"turns,omitempty"` // requests to the model
	Input  float64 `json:"input_tokens,omitempty"`
	Output float64 `json:"output_tokens,omitempty"`

	// shares of the tasks all of whose tools the model could see, with the parameters that they require: at first, and in
	// the end, with what it searched for
	First float64 `json:"visible@first,omitempty"`
	End   float64 `json:"visible@end,omitempty"`

	tasks, judged float64
}

// add adds the last question. tools are the expected tools.
func (e *effort) add(m *model, tools []string) {
	if m == nil {
		return
	}
	e.tasks++
	e.Turns += float64(m.usage.Calls)
	e.Input += float64(m.usage.InputTokens)
	e.Output += float64(m.usage.OutputTokens)
	if len(tools) == 0 {
		return
	}
	e.judged++
	e.First += number(showsAll(m.first, tools))
	e.End += number(showsAll(m.shown, tools))
}

func showsAll(s *planner.Shown, tools []string) bool {
	return s != nil && !slices.ContainsFunc(tools, func(name string) bool {
		_, visible := s.Visible(name)
		return !visible
	})
}

// mean turns the sums into means.
func (e *effort) mean() {
	for _, sum := range []*float64{&e.Turns, &e.Input, &e.Output} {
		*sum /= max(e.tasks, 1)
	}
	e.First, e.End = e.First/max(e.judged, 1), e.End/max(e.judged, 1)
}

// noFallback plans nothing.
type noFallback struct{}

// Plan implements planner.Fallback.
func (noFallback) Plan(context.Context, planner.Request) (plan.Plan, error) {
	return plan.Plan{}, errors.New("the model made no plan")
}
