package app_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
)

// What a model planned to destroy is confirmed as confirm_writes says and as far as the client can be asked.
func TestConfirmation(t *testing.T) {
	const elicitation = `{"elicitation":{}}`
	for _, row := range []struct {
		name, mode, caps, action string
		runs, asks, approval     bool
	}{
		{"auto, can be asked, accepts", downstream.ConfirmAuto, elicitation, "accept", true, true, false},
		{"auto, cannot be asked", downstream.ConfirmAuto, "{}", "", false, false, true},
		{"always, can be asked, declines", downstream.ConfirmAlways, elicitation, "decline", false, true, false},
		{"never", downstream.ConfirmNever, elicitation, "decline", true, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			dials := maps.Clone(transports)
			dials["2026-07-28"] = func(_ *testing.T, r *running, caps string) *client { return r.dialModern("/mcp", caps) }
			for transport, dial := range dials {
				t.Run(transport, func(t *testing.T) {
					m := scripted(t, "ok", `[{"tool":"wipe","arguments":{"disk":"c"}},{"tool":"echo","arguments":{}}]`)
					r, p := withPeer(t, m, func(o *app.Options) { o.Config.Execution.ConfirmWrites = row.mode },
						textTool("wipe", object+`,"annotations":{"destructiveHint":true}`, "wiped"), echoTool("echo"))
					c := dial(t, r, row.caps)
					asked := make(chan message, 1)
					c.answer = func(m message) string {
						asked <- m
						return `{"action":"` + row.action + `","content":{}}`
					}
					reply := c.call("process_query", `{"query":"q"}`, `{"progressToken":1}`)
					a := c.answerOf(reply)
					wiped := slices.ContainsFunc(p.calls(), func(params string) bool { return strings.Contains(params, "wipe") })
					if wiped != row.runs || a.NeedsApproval != row.approval {
						t.Errorf("got wiped %v and needs_approval %v, want %v and %v", wiped, a.NeedsApproval, row.runs, row.approval)
					}
					switch {
					case row.approval:
						if got, want := brief(a), `s1=peer/wipe{"disk":"c"} needs_approval; s2=peer/echo{}`; got != want || len(a.Plan.Steps) != 2 || len(p.calls()) != 1 {
							t.Errorf("got %s, %d planned and %d calls, want %s and that only echo was called", got, len(a.Plan.Steps), len(p.calls()), want)
						}
					case !row.runs:
						if got, want := brief(a), `s1=peer/wipe{"disk":"c"} declined; s2=peer/echo{}`; got != want || !strings.Contains(a.Answer, "wipe") {
							t.Errorf("steps: got %s and the answer %q, want %s", got, a.Answer, want)
						}
					}
					if got := len(asked); got > 0 != row.asks {
						t.Fatalf("questions: got %d, want them: %v", got, row.asks)
					}
					if !row.asks {
						return
					}
					question := <-asked
					var params struct {
						Message string
						Schema  struct{ Type string } `json:"requestedSchema"`
					}
					if err := json.Unmarshal(question.Params, &params); err != nil || question.Method != "elicitation/create" || params.Schema.Type != "object" ||
						!strings.Contains(params.Message, "wipe") || !strings.Contains(params.Message, `"disk":"c"`) {
						t.Errorf("question: got %s, want elicitation/create with the tool and its arguments", question.Raw)
					}
				})
			}
		})
	}
}

// What a server asks in the course of a step goes to the client whose query caused it.
func TestRequestsOfServers(t *testing.T) {
	ask := peerTool{"ask", object, func(c *peerCall) (string, string) {
		m := c.ask("sampling/createMessage", `{"messages":[],"maxTokens":9007199254740993}`)
		return `{"content":[],"structuredContent":{"said":` + string(m.Result) + `}}`, ""
	}}
	m := scripted(t, "ok", `[{"tool":"ask","arguments":{}}]`)
	r, _ := withPeer(t, m, nil, ask)
	for transport, dial := range transports {
		t.Run(transport, func(t *testing.T) {
			c := dial(t, r, `{"sampling":{}}`)
			var got message
			c.answer = func(m message) string { got = m; return `{"role":"assistant","x":1.50}` }
			for tool, arguments := range map[string]string{"process_query": `{"query":"q","detail":"full"}`, "run": `{"tool":"ask"}`} {
				result := c.result(c.call(tool, arguments, ""))
				if !strings.Contains(string(result.StructuredContent), `{"said":{"role":"assistant","x":1.50}}`) {
					t.Errorf("%s: got %s, want the client's answer in it", tool, result.StructuredContent)
				}
				if string(got.Params) != `{"messages":[],"maxTokens":9007199254740993}` || got.Method != "sampling/createMessage" {
					t.Errorf("%s: the client was asked %s, want what the server asked", tool, got.Raw)
				}
			}
		})
	}
}
