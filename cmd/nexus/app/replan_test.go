package app_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

const readOnly = `,"annotations":{"readOnlyHint":true}`

// An endpoint that is not there is tried by the planner and left alone by the synthesizer and by the next query.
func TestUnreachableModel(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *app.Options) {
		model(o, &llmtest.Server{BaseURL: "http://127.0.0.1:1/v1"}) // a port that nobody gets by chance
		o.Demo = true
	})
	c := r.dial("", nil)
	for _, planner := range []int{3, 0} {
		a := c.query(`{"query":"what is 15% of $2500?"}`)
		if a.Plan.Source != "rules" || !a.Degraded || !strings.Contains(a.Answer, "375") {
			t.Errorf("got a plan by %s, degraded %v and %q, want rules, true and the digest", a.Plan.Source, a.Degraded, a.Answer)
		}
		if a.Usage.Planner.Calls != planner || a.Usage.Synthesizer.Calls != 0 {
			t.Errorf("got %d requests of the planner and %d of the synthesizer, want %d and none", a.Usage.Planner.Calls, a.Usage.Synthesizer.Calls, planner)
		}
	}
}
