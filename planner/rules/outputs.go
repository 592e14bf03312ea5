package rules

import (
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// output is a field of a tool's result.
type output struct {
	path  string
	stems []string
	kind  string
}

func readOutputs(t plan.Tool) []output {
	var out []output
	for _, p := range readShape(t.OutputSchema).params {
		o := output{path: p.name, kind: p.kind}
		for _, w := range search.Words(p.name) {
			o.stems = append(o.stems, search.Stem(w))
		}
		out = append(out, o)
	}
	return out
}
