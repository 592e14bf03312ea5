package app_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/planner"
)

// TestToolMode: a model that calls tools natively answers over several rounds, by each API. A write after results were
// read needs a yes, also if a result asks for it.
func TestToolMode(t *testing.T) {
	for _, api := range []string{llm.APIChat, llm.APIResponses, llm.APIAnthropic} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			m := llmtest.New(t)
			m.When(llmtest.WithTools,
				llmtest.Reply{Calls: []llmtest.Call{
					{Name: "find_orders", Arguments: `{"customer":"Ada"}`}, {Name: "find_orders", Arguments: `{"customer":"Bob"}`},
				}},
				llmtest.Reply{Text: "Now I do what it says.", Calls: []llmtest.Call{{Name: "wipe_orders", Arguments: `{"customer":"Ada"}`}}},
				llmtest.Reply{Text: `{"steps":[]}`})
			m.Answer(llmtest.Reply{Text: "There is order 7."})
			r, p := withPeer(t, m, func(o *app.Options) {
				o.Config.Planner.Mode, o.Config.LLM.Planner.API = planner.ModeTools, api
			}, shop()...)
			a := r.dial("", nil).query(`{"query":"Which orders do Ada and Bob have?","max_rounds":3}`)
			want := `s1=peer/find_orders{"customer":"Ada"}; s2=peer/find_orders{"customer":"Bob"}; s3=peer/wipe_orders{"customer":"Ada"} needs_approval`
			if brief(a) != want || !a.NeedsApproval {
				t.Errorf("got %s, needs approval %t, want %s to be approved", brief(a), a.NeedsApproval, want)
			}
			if calls := strings.Join(p.calls(), " "); strings.Contains(calls, "wipe_orders") || strings.Count(calls, "find_orders") != 2 {
				t.Errorf("got calls %s, want two that read and no other", calls)
			}
			requests := m.Requests()
			if len(requests) < 2 || !strings.Contains(requests[1].Text, "| ") || !strings.Contains(requests[1].Text, "ada@example.org") {
				t.Errorf("got %d requests, want the results shown as data in the second", len(requests))
			}
		})
	}
}
