package rules

import (
	"encoding/json"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// step writes a call as a plan step. Calls that it refers to must have their ids already.
func (c *call) step(id string, ids map[*call]string) (plan.Step, error) {
	s := plan.Step{ID: id, Tool: c.frame.tool.Name, Server: c.frame.tool.Server, After: []string{}}
	args := map[string]any{}
	for _, q := range c.frame.shape.params {
		v, ok := c.filling.args[q.name]
		if !ok {
			continue
		}
		args[q.name] = resolve(v, ids, &s)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return s, fmt.Errorf("writing the arguments of %s: %w", s.Tool, err)
	}
	s.Arguments = raw
	return s, nil
}

// resolve replaces references by the notation of plans and notes the steps they depend on.
func resolve(v any, ids map[*call]string, s *plan.Step) any {
	switch v := v.(type) {
	case reference:
		id := ids[v.call]
		known := false
		for _, a := range s.After {
			known = known || a == id
		}
		if !known {
			s.After = append(s.After, id)
		}
		return "$" + id + "." + v.path
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = resolve(x, ids, s)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = resolve(x, ids, s)
		}
		return out
	}
	return v
}
