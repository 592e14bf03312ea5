package rules

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/planner/plan"
	"github.com/agenticnexus/agenticnexus/planner/search"
)

// output is a field of a tool's result.
type output struct {
	path  string
	stems []string
	kind  string
}

func readOutputs(t plan.Tool) []output {
	if len(t.OutputSchema) == 0 || len(t.OutputSchema) > maxSchemaBytes {
		return nil
	}
	var out []output
	for _, p := range readShape(json.RawMessage(t.OutputSchema)).params {
		o := output{path: p.name, kind: p.kind}
		for _, w := range search.Words(p.name) {
			o.stems = append(o.stems, search.Stem(w))
		}
		out = append(out, o)
	}
	return out
}
