package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// filterable lists the names in an expression of --filter. plan and expect are true if the case has one.
var filterable = []string{"id", "query", "tags", "servers", "plan", "expect"}

// Filter returns the cases for which an expression is true. The bounds are those of expressions in plans.
func Filter(ctx context.Context, all []Case, text string) ([]Case, error) {
	e, err := expression.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--filter %s: %w", text, err)
	}
	for _, name := range e.Names() {
		if !slices.Contains(filterable, name) {
			return nil, fmt.Errorf("--filter %s: a case has no %s; it has %s", text, name, strings.Join(filterable, ", "))
		}
	}
	var kept []Case
	for _, c := range all {
		value, err := e.Eval(ctx, map[string]any{
			"id": c.ID, "query": c.Query, "tags": list(c.Tags), "servers": list(c.Servers),
			"plan": c.Plan != nil, "expect": c.Expect != nil,
		})
		if err != nil {
			return nil, fmt.Errorf("--filter %s: case %s: %w", text, shown(c.ID), err)
		}
		holds, ok := value.(bool)
		if !ok {
			return nil, fmt.Errorf("--filter %s: case %s: got %v, want true or false", text, shown(c.ID), shown(fmt.Sprint(value)))
		}
		if holds {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

func list(texts []string) []any {
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = text
	}
	return values
}
