package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// Model plans with a model as the router does: the model sees the tools that a search finds, may search for others,
// repairs its plan, and may ask for further rounds, which get results made up from the declared fields. Unlike the
// router it does not fall back to the rules: a question that the model does not plan is an error. A Model belongs to
// one goroutine.
type Model struct {
	planner *planner.Planner
	rounds  int
	usage   llm.Usage // of the last question
	first   *planner.Shown
	shown   *planner.Shown
}

// NewModel returns a Model.
func NewModel(model llm.Model, config planner.Config) *Model {
	config.MaxRounds = cmp.Or(max(config.MaxRounds, 0), planner.Default().MaxRounds)
	p := planner.New(planner.Options{Config: config, Model: model, Ranker: ranking{}, Fallback: noFallback{}})
	return &Model{planner: p, rounds: config.MaxRounds}
}

// Plan implements Plan.
func (m *Model) Plan(ctx context.Context, query string, catalog rules.Catalog) (plan.Plan, error) {
	m.usage, m.shown = llm.Usage{}, &planner.Shown{}
	req := planner.Request{Query: query, MaxRounds: m.rounds, Shown: m.shown}
	var ok bool
	if req.Tools, ok = catalog.(planner.Tools); !ok || len(req.Tools.Servers()) == 0 {
		return plan.Plan{}, nil
	}
	m.first = m.planner.Show(ctx, req)
	whole := plan.Plan{Source: plan.SourceModel}
	for req.Round = 1; ; req.Round++ {
		r, err := m.planner.Plan(ctx, req)
		m.usage.Add(r.Usage)
		whole.Steps = append(whole.Steps, r.Plan.Steps...)
		if err != nil {
			return whole, fmt.Errorf("round %d: %w", req.Round, err)
		}
		if !r.Plan.More || len(r.Plan.Steps) == 0 {
			return whole, nil
		}
		req.Tokens = r.Tokens
		for _, s := range r.Plan.Steps {
			tool, _ := req.Tools.Lookup(s.Tool) // an unknown tool declares nothing
			req.Outcomes = append(req.Outcomes, plan.Outcome{Step: s, Sent: s.Arguments, Value: example(tool), Attempts: 1})
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
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// Effort has means over tasks of planning with a model.
type Effort struct {
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
func (e *Effort) add(m *Model, tools []string) {
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
	e.First += share(m.first, tools)
	e.End += share(m.shown, tools)
}

// share is 1 if all tools were shown.
func share(s *planner.Shown, tools []string) float64 {
	for _, name := range tools {
		if s == nil {
			return 0
		}
		if _, visible := s.Visible(name); !visible {
			return 0
		}
	}
	return 1
}

// mean turns the sums into means.
func (e *Effort) mean() {
	for _, sum := range []*float64{&e.Turns, &e.Input, &e.Output} {
		*sum /= max(e.tasks, 1)
	}
	e.First, e.End = e.First/max(e.judged, 1), e.End/max(e.judged, 1)
}

// errNoPlan is for questions that the model did not plan.
var errNoPlan = errors.New("the model made no plan")

// noFallback plans nothing.
type noFallback struct{}

// Plan implements planner.Fallback.
func (noFallback) Plan(context.Context, planner.Request) (plan.Plan, error) {
	return plan.Plan{}, errNoPlan
}
