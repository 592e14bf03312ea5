package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
)

// The client's model plans and answers where none is named, the setting allows it and the client offers sampling; rules
// and digest stand in for it.
func TestSampling(t *testing.T) {
	const sampling = `{"sampling":{}}`
	text := func(s string) string {
		return `{"role":"assistant","model":"client-1","stopReason":"endTurn","content":{"type":"text","text":` + quote(s) + `}}`
	}
	plan := text(`{"steps":[{"id":"s1","tool":"calculate","arguments":{"expression":"2500 * 0.15"}}]}`)
	for _, row := range []struct {
		name, caps       string
		use              bool
		replies          []string // a JSON-RPC error where one is empty
		source, answer   string
		degraded         bool
		planned, written int // requests for planning and answering
	}{
		{name: "sampled", caps: sampling, use: true, replies: []string{plan, text("It is 375.")}, source: "model", answer: "It is 375.", planned: 1, written: 1},
		{name: "a list of blocks", caps: sampling, use: true, replies: []string{plan, `{"role":"assistant","model":"m","content":[{"type":"text","text":"It is "},{"type":"image"},{"type":"text","text":"375."}]}`},
			source: "model", answer: "It is 375.", planned: 1, written: 1},
		{name: "not allowed", caps: sampling, source: "rules", answer: "375"},
		{name: "not offered", caps: "{}", use: true, source: "rules", answer: "375"},
	} {
		inEras(t, row.name, func(t *testing.T, dial func(r *running, caps string) *client) {
			r := start(t, func(o *app.Options) {
				o.Demo = true
				if row.use {
					o.Config.LLM = &config.LLM{UseClient: true}
				}
			})
			c := dial(r, row.caps)
			asked := make(chan message, 9)
			c.answer = func(m message) string {
				asked <- m
				if n := len(asked); n <= len(row.replies) {
					return row.replies[n-1]
				}
				return ""
			}
			a := c.query(`{"query":"what is 15% of $2500?"}`)
			if a.Plan.Source != row.source || !strings.Contains(a.Answer, row.answer) || a.Degraded != row.degraded {
				t.Errorf("got a plan by %s, %q and degraded %v, want %s, %q in it and %v; warnings %q", a.Plan.Source, a.Answer, a.Degraded, row.source, row.answer, row.degraded, a.Warnings)
			}
			if a.Usage.Planner.Calls != row.planned || a.Usage.Synthesizer.Calls != row.written || len(asked) != row.planned+row.written {
				t.Errorf("got %d questions, usage %+v, want %d for the plan and %d for the answer", len(asked), a.Usage, row.planned, row.written)
			}
			if row.name != "sampled" {
				return
			}
			if a.Usage.Planner.Model != "client-1" {
				t.Errorf("model: got %q, want what the client calls it", a.Usage.Planner.Model)
			}
			var params struct {
				SystemPrompt string
				MaxTokens    int
				Messages     []struct {
					Role    string
					Content struct{ Type, Text string }
				}
			}
			first := <-asked
			if err := json.Unmarshal(first.Params, &params); err != nil || first.Method != "sampling/createMessage" || params.MaxTokens == 0 || len(params.Messages) != 1 ||
				params.Messages[0].Content.Type != "text" || !strings.Contains(params.Messages[0].Content.Text, "15% of $2500") || !strings.Contains(params.SystemPrompt, "plan") {
				t.Errorf("got %s, want sampling/createMessage with the prompt", first.Raw)
			}
		})
	}
}
