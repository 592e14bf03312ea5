package app_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// A planner that fails is replaced by rules, a synthesizer that fails by the digest; no tool runs twice.
func TestModelFailures(t *testing.T) {
	const plan = `[{"tool":"calculate","arguments":{"expression":"2500 * 0.15"}}]`
	for _, row := range []struct {
		name            string
		planning        []llmtest.Reply
		answering       []llmtest.Reply
		source, log     string
		calls           int // of the planner
		degraded        bool
		answer, warning string
	}{
		{name: "all is well", planning: []llmtest.Reply{{Text: plan}}, answering: []llmtest.Reply{{Text: "It is 375."}}, source: "model", calls: 1, answer: "It is 375."},
		{name: "repaired", planning: []llmtest.Reply{{Text: "I would calculate."}, {Text: plan}}, answering: []llmtest.Reply{{Text: "It is 375."}}, source: "model", calls: 2, answer: "It is 375."},
		{name: "no JSON, twice", planning: []llmtest.Reply{{Text: "I would calculate."}, {Text: "Surely."}}, answering: []llmtest.Reply{{Text: "fine"}},
			source: "rules", log: "LLM returned invalid JSON for planning", calls: 2, answer: "fine", warning: "without the model"},
		{name: "planner cut off", planning: []llmtest.Reply{{Text: plan, Fault: llmtest.End}}, answering: []llmtest.Reply{{Text: "fine"}}, source: "rules", log: "Planning failed: ", answer: "fine", warning: "without the model"},
		{name: "synthesizer cut off", planning: []llmtest.Reply{{Text: plan}}, answering: []llmtest.Reply{{Text: "It is surely far more than this", Fault: llmtest.End}},
			source: "model", calls: 1, degraded: true, answer: "375", log: "Synthesis failed: ", warning: "digest"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.New(t)
			m.When(llmtest.Structured, row.planning...)
			m.Answer(row.answering...)
			r := start(t, func(o *app.Options) { model(o, m); o.Demo = true })
			a := r.dial("", nil).query(`{"query":"what is 15% of $2500?"}`)
			if a.Plan.Source != row.source || a.Degraded != row.degraded || !strings.Contains(a.Answer, row.answer) {
				t.Errorf("got a plan by %s, degraded %v and %q, want %s, %v and %q in it", a.Plan.Source, a.Degraded, a.Answer, row.source, row.degraded, row.answer)
			}
			if strings.Contains(a.Answer, "far more") {
				t.Errorf("answer: got %q, want nothing of a cut stream", a.Answer)
			}
			if row.source == "model" && brief(a) != `s1=calculator/calculate{"expression":"2500 * 0.15"}` {
				t.Errorf("steps: got %s, want one call of calculate", brief(a))
			}
			if row.log != "" {
				r.logs.want(t, row.log)
			}
			if row.calls > 0 && a.Usage.Planner.Calls != row.calls {
				t.Errorf("calls of the planner: got %d, want %d", a.Usage.Planner.Calls, row.calls)
			}
			if warnings := strings.Join(a.Warnings, "\n"); row.warning == "" != (warnings == "") || !strings.Contains(warnings, row.warning) {
				t.Errorf("warnings: got %q, want %q in them", warnings, row.warning)
			}
		})
	}
}
