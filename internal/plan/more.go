package plan

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// condition returns MoreIf as an expression.
func (p *Plan) condition() formula {
	return formula{member: "more", source: p.MoreIf, read: new(*expression.Expression)}
}

// Continues reports whether the planner wants another round, given the outcomes of all steps so far. It does not if
// MoreIf names a skipped step. If MoreIf cannot be computed or is neither true nor false, Continues returns true and
// the error: the planner can read the outcomes itself.
func (p *Plan) Continues(ctx context.Context, done []Outcome) (bool, *Error) {
	if p.MoreIf == "" {
		return p.More, nil
	}
	byID := make(map[string]Outcome, len(done))
	for _, o := range done {
		byID[o.Step.ID] = o
	}
	isStep := func(id string) bool { return byID[id].Step.ID != "" }
	condition := p.condition()
	if err := condition.check(isStep); err != nil {
		return true, err
	}
	if slices.ContainsFunc(condition.names(), func(id string) bool { return byID[id].Skipped }) {
		return false, nil
	}
	scope := Step{When: p.MoreIf}.Scope(isStep, func(id string) (json.RawMessage, bool) {
		o := byID[id]
		return o.Value, o.OK() && o.Value != nil
	})
	holds, err := scope.holds(ctx, "more", nil)
	return holds || err != nil, err
}
