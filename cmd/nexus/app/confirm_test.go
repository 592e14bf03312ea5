package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
)

// What a model planned to destroy is confirmed as confirm_writes says and as far as the client can be asked.
func TestConfirmation(t *testing.T) {
	const elicitation = `{"elicitation":{}}`
	for _, row := range []struct {
		name, mode, caps, action string
		asks                     bool
		want                     string
	}{
		{"accepted", downstream.ConfirmAuto, elicitation, "accept", true, `s1=peer/wipe{"disk":"c"}; s2=peer/echo{}`},
		{"declined", downstream.ConfirmAlways, elicitation, "decline", true, `s1=peer/wipe{"disk":"c"} declined; s2=peer/echo{}`},
		{"cannot be asked", downstream.ConfirmAuto, "{}", "", false, `s1=peer/wipe{"disk":"c"} needs_approval; s2=peer/echo{}`},
		{"never", downstream.ConfirmNever, elicitation, "decline", false, `s1=peer/wipe{"disk":"c"}; s2=peer/echo{}`},
	} {
		inEras(t, row.name, func(t *testing.T, dial func(r *running, caps string) *client) {
			m := scripted(t, "ok", `[{"tool":"wipe","arguments":{"disk":"c"}},{"tool":"echo","arguments":{}}]`)
			r, p := withPeer(t, m, func(o *app.Options) { o.Config.Execution.ConfirmWrites = row.mode },
				textTool("wipe", object+`,"annotations":{"destructiveHint":true}`, "wiped"), echoTool("echo"))
			c := dial(r, row.caps)
			asked := make(chan message, 1)
			c.answer = func(m message) string {
				asked <- m
				return `{"action":"` + row.action + `","content":{}}`
			}
			a := c.query(`{"query":"q"}`)
			if got := brief(a); got != row.want || a.NeedsApproval != strings.Contains(row.want, "needs_approval") || len(p.calls()) != 2-strings.Count(row.want, "} ") {
				t.Errorf("got %s, needs_approval %v and the calls %q, want %s", got, a.NeedsApproval, p.calls(), row.want)
			}
			if got := len(asked); got > 0 != row.asks {
				t.Fatalf("questions: got %d, want them: %v", got, row.asks)
			}
			if row.asks {
				if got := (<-asked).Raw; !strings.Contains(got, "elicitation/create") || !strings.Contains(got, "wipe") || !strings.Contains(got, `\"disk\":\"c\"`) {
					t.Errorf("question: got %s, want elicitation/create with the tool and its arguments", got)
				}
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

// A returned plan that sends private data approves that, also after a restart, if the same caller gives it back.
func TestApproval(t *testing.T) {
	hr, web := newPeer(echoTool("get_employee")), newPeer(echoTool("web_search"))
	private, state := server("hr", hr.serve(t).URL), t.TempDir()
	private.Data = "private"
	public := server("search", web.serve(t).URL)
	options := func(o *app.Options) {
		o.Config.State = state
		o.Config.Auth.APIKeys = keys("ada", "bob")
		o.Config.Execution.ConfirmWrites = downstream.ConfirmNever
		o.Config.Servers = append(o.Config.Servers, private, public)
	}
	r := start(t, options)
	a := r.dial("{}", bearer("ada")).query(`{"query":"q","plan":[{"tool":"get_employee","arguments":{"pay":98765}},{"tool":"web_search","arguments":{"q":"$s1.pay"}}]}`)
	plan, err := json.Marshal(a.Plan)
	if err != nil || !a.NeedsApproval || len(web.calls()) > 0 || !strings.Contains(a.Answer, "Data of hr goes to search") {
		t.Fatalf("got needs_approval %v, the calls %q and the answer %q; %v", a.NeedsApproval, web.calls(), a.Answer, err)
	}
	for i, row := range []struct {
		key    string
		called bool
	}{{"bob", false}, {"ada", true}} {
		r.stop(5 * time.Second)
		r = start(t, options)
		a := r.dial("{}", bearer(row.key)).query(`{"query":"q","plan":` + string(plan) + `}`)
		if called := len(web.calls()) > 0; called != row.called || a.NeedsApproval == row.called {
			t.Errorf("%d, by %s: got the calls %q and needs_approval %v, want a call: %v", i, row.key, web.calls(), a.NeedsApproval, row.called)
		}
	}
}
