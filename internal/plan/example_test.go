package plan_test

import (
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Parse finds the plan in what a model answers. A reference such as $find.rows.0.email makes a step wait for another.
func ExampleParse() {
	p, err := plan.Parse("<think>Two steps.</think>\n```json\n" +
		`[{"id": "find", "tool": "query_hr", "arguments": {"name": "Ada"}},` +
		`{"tool": "send_email", "arguments": {"to": "$find.rows.0.email"}}]` + "\n```")
	if err != nil {
		fmt.Println(err)
		return
	}
	isStep := func(id string) bool { return p.Step(id) != nil }
	for _, s := range p.Steps {
		fmt.Println(s.ID, s.Tool, string(s.Arguments), "needs", plan.References(s.Arguments, isStep))
	}
	// Output:
	// find query_hr {"name":"Ada"} needs []
	// s2 send_email {"to":"$find.rows.0.email"} needs [find]
}
