package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

const readHint = object + `,"annotations":{"readOnlyHint":true}`

// decided is a request that one rule refuses: no other rule speaks against it.
type decided struct {
	rule, path, key string
	method, params  string
	mark            string // of the request at the server
	refusal         string // part of the answer
}

// decidedCalls are calls of a tool of the server a on each kind of surface.
func decidedCalls(rule, key, tool, refusal, stepRefusal string) []decided {
	mark := `"name":"` + tool + `"`
	row := func(path, params, refusal string) decided {
		return decided{rule, path, key, "tools/call", params, mark, refusal}
	}
	plan := `{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"a__` + tool + `","arguments":{}}]}}`
	run := `{"name":"run","arguments":{"tool":"a__` + tool + `"}}`
	full := `{"name":"a__` + tool + `","arguments":{}}`
	return []decided{
		row("/mcp", plan, stepRefusal), row("/mcp", run, refusal), row("/mcp", full, refusal),
		row("/profiles/part/mcp", plan, stepRefusal), row("/profiles/part/mcp", run, refusal),
		row("/profiles/open/mcp", full, refusal), row("/proxy/mcp", full, refusal),
		row("/servers/a/mcp", `{"name":"`+tool+`","arguments":{}}`, refusal),
	}
}

// TestEveryRuleDecides has requests that one rule each refuses, on each surface. Without that rule the request reaches
// the server, and every other row stays refused.
func TestEveryRuleDecides(t *testing.T) {
	rows := slices.Concat(
		decidedCalls(trust.RuleTools, "all", "secret", "Unknown tool", "unknown_tool"),
		decidedCalls(trust.RuleAccess, "some", "other", "Unknown tool", "unknown_tool"),
		decidedCalls(trust.RulePins, "all", "pinned", "quarantined", "quarantined"),
		decidedCalls("policy[0]", "all", "erase", `"reason":"forbidden"`, `"reason":"forbidden"`),
		[]decided{
			{"policy[1]", "/servers/a/mcp", "all", "resources/read", `{"uri":"x://1"}`, "", "No such thing."},
			{"policy[1]", "/proxy/mcp", "all", "resources/read", `{"uri":"a__x://1"}`, "", "No such thing."},
			{"policy[1]", "/servers/a/mcp", "all", "resources/subscribe", `{"uri":"x://1"}`, "", "No such thing."},
			{"policy[1]", "/servers/a/mcp", "all", "prompts/get", `{"name":"p"}`, "", "No such thing."},
			{"policy[1]", "/proxy/mcp", "all", "prompts/get", `{"name":"a__p"}`, "", "No such thing."},
			{"policy[1]", "/servers/a/mcp", "all", "completion/complete", `{"ref":{"type":"ref/prompt","name":"p"}}`, "", "No such thing."},
			{"policy[1]", "/servers/a/mcp", "all", "vendor/thing", `{"x":1}`, "", "No such thing."},
			{trust.RuleFlow, "/mcp", "all", "tools/call", `{"name":"process_query","arguments":{"query":"q","plan":{"steps":[` +
				`{"id":"r","tool":"a__read","arguments":{}},{"id":"s","tool":"b__post","arguments":{"x":"$r"}}]}}}`, `"name":"post"`, "needs_approval"},
			{trust.RuleWrite, "/mcp", "all", "tools/call", `{"name":"process_query","arguments":{"query":"q","plan":[` +
				`{"tool":"a__write","arguments":{}}]}}`, `"name":"write"`, "needs_approval"},
		})
	for _, without := range []string{"", trust.RuleTools, trust.RuleAccess, trust.RulePins, "policy[0]", "policy[1]", trust.RuleFlow, trust.RuleWrite} {
		t.Run("without "+without, func(t *testing.T) {
			t.Parallel()
			r, peers := decisive(t, without)
			for _, row := range rows {
				reached := func() (n int) {
					for _, p := range peers {
						for _, m := range p.received(row.method) {
							if strings.Contains(string(m.Params), row.mark) {
								n++
							}
						}
					}
					return n
				}
				before := reached()
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, row.method, row.params)
				_, got := r.raw("POST", row.path, body, r.session(row.path, row.key))
				refused := reached() == before
				if refused != (row.rule != without) || refused && !strings.Contains(got, row.refusal) {
					t.Errorf("%s: %s %s %s: got %s, reached the server: %v", row.rule, row.path, row.method, row.params, got, !refused)
				}
			}
		})
	}
}

// decisive starts an App with all rules but one.
func decisive(t *testing.T, without string) (*running, []*peer) {
	t.Helper()
	kept := func(rule string) bool { return rule != without }
	definition := func(name, def string) peerTool { return textTool(name, def, "done") }
	tools := []peerTool{
		definition("secret", readHint), definition("other", readHint), definition("erase", readHint),
		definition("read", readHint), definition("write", object+`,"annotations":{"readOnlyHint":false}`),
	}
	a, b := newPeer(append(tools, definition("pinned", readHint))...), newPeer(definition("post", readHint))
	a.OnMessage = func(ctx context.Context, m message, send func(string)) bool {
		switch m.Method {
		case "resources/read", "resources/subscribe", "prompts/get", "completion/complete", "vendor/thing":
			a.mu.Lock()
			a.seen = append(a.seen, m)
			a.mu.Unlock()
			send(m.Response(`{}`))
			return true
		}
		return a.handle(ctx, m, send)
	}
	urls := []string{a.serve(t).URL, b.serve(t).URL}
	r := start(t, func(o *app.Options) {
		of, to := server("a", urls[0]), server("b", urls[1])
		if kept(trust.RuleTools) {
			of.Tools.Deny = []string{"secret"}
		}
		if kept(trust.RuleFlow) {
			of.Data = "private"
		}
		o.Config.Servers = []downstream.ServerConfig{of, to}
		o.Config.Auth.APIKeys = keys("all", "some")
		if kept(trust.RuleAccess) {
			o.Config.Auth.APIKeys[1].Tools = auth.Filter{Deny: []string{"a__other"}}
		}
		o.Config.Tools.Pin = pins.Off
		if kept(trust.RulePins) {
			o.Config.Tools.Pin = pins.Enforce
		}
		o.Config.Execution.ConfirmWrites = downstream.ConfirmNever
		if kept(trust.RuleWrite) {
			o.Config.Execution.ConfirmWrites = downstream.ConfirmAlways
		}
		o.Config.Profiles = map[string]config.Profile{
			"part": {Servers: []string{"a"}}, "open": {Surface: config.SurfaceProxy},
		}
		for i, rule := range []trust.Rule{
			{When: `tool == "erase" and server == "a"`, Then: trust.Deny},
			{When: `method in ["resources/read", "resources/subscribe", "prompts/get", "completion/complete", "vendor/thing"]`,
				Then: trust.Deny, Reason: "No such thing."},
		} {
			if !kept(fmt.Sprintf("policy[%d]", i)) {
				rule.When = "false"
			}
			o.Config.Policy = append(o.Config.Policy, rule)
		}
	})
	list := func() {
		r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer("all"))
	}
	list()
	a.setTools(append(tools, definition("pinned", `"description":"Changed",`+readHint))...)
	list()
	return r, []*peer{a, b}
}

// A rule that asks shows the client a form, in each era and on each surface. Without a yes the call is not made.
func TestPolicyAsks(t *testing.T) {
	const elicitation = `{"elicitation":{}}`
	for _, row := range []struct{ name, caps, action, want string }{
		{"accepted", elicitation, "accept", ""},
		{"declined", elicitation, "decline", `{"code":-32600,"message":"the user declined","data":{"reason":"declined"}}`},
		{"dismissed", elicitation, "cancel", `{"code":-32600,"message":"the user dismissed the request","data":{"reason":"declined"}}`},
		{"cannot be asked", "{}", "", `{"code":-32600,"message":"Pay only with a yes; it needs approval, and this client cannot be asked","data":{"reason":"forbidden"}}`},
	} {
		for _, path := range []string{"/mcp", "/proxy/mcp", "/servers/peer/mcp", "/sse", "stdio"} {
			for era, dial := range map[string]func(r *running) *client{
				"2025-06-18": func(r *running) *client {
					switch path {
					case "/sse":
						return r.dialSSE(row.caps, nil)
					case "stdio":
						c, _ := r.dialStdio(row.caps)
						return c
					}
					return r.dialAt(path, row.caps, nil)
				},
				"2026-07-28": func(r *running) *client { return r.dialModern(path, row.caps) },
			} {
				if era == "2026-07-28" && !strings.HasSuffix(path, "/mcp") {
					continue
				}
				t.Run(row.name+path+era, func(t *testing.T) {
					t.Parallel()
					r, p := withPeer(t, scripted(t, "ok"), func(o *app.Options) {
						o.Config.Policy = []trust.Rule{
							{When: `tool == "pay" and arguments.amount == 0`, Then: trust.Deny, Reason: "Nothing to pay."},
							{When: `tool == "pay" and arguments.amount < 10 and profile in ["router", "proxy", "server:peer"]`, Then: trust.Allow},
							{When: `tool == "pay"`, Then: trust.Ask, Reason: "Pay only with a yes."},
						}
					}, textTool("pay", object, "paid"))
					c := dial(r)
					asked := make(chan string, 9)
					c.answer = func(m message) string {
						asked <- m.Raw
						return `{"action":"` + row.action + `","content":{}}`
					}
					name := "peer__pay"
					if strings.HasPrefix(path, "/servers") {
						name = "pay"
					}
					if got := c.call(name, `{"amount":1}`, ""); got.Error != nil || len(asked) != 0 {
						t.Errorf("allowed: got error %s and %d questions, want none", got.Error, len(asked))
					}
					const denied = `{"code":-32600,"message":"Nothing to pay.","data":{"reason":"forbidden"}}`
					if got := c.call(name, `{"amount":0}`, ""); string(got.Error) != denied || len(asked) != 0 {
						t.Errorf("denied: got error %s and %d questions, want %s", got.Error, len(asked), denied)
					}
					got := c.call(name, `{"amount":10,"to":"a\u202eb"}`, "")
					if string(got.Error) != row.want || len(p.calls()) != 1+strings.Count(row.action, "accept") {
						t.Errorf("got error %s and the calls %q, want %s", got.Error, p.calls(), row.want)
					}
					if len(asked) != len(row.action)/max(1, len(row.action)) {
						t.Fatalf("got %d questions", len(asked))
					}
					if row.action == "" {
						return
					}
					const form = `Allow this request?\nFrom: anonymous\nServer: peer\nTool: pay\nArguments: {\"amount\":10,\"to\":\"a\\u202eb\"}\nReason: Pay only with a yes.`
					if question := <-asked; !strings.Contains(question, "elicitation/create") || !strings.Contains(question, form) {
						t.Errorf("got the question %s, want %s in it", question, form)
					}
				})
			}
		}
	}
}

// New rules apply to new calls, and a rule that allows a call turns off the built-in questions.
func TestPolicyReload(t *testing.T) {
	m := scripted(t, "ok", `[{"tool":"wipe","arguments":{}}]`, `[{"tool":"wipe","arguments":{}}]`, `[{"tool":"wipe","arguments":{}}]`)
	r, _ := withPeer(t, m, nil, textTool("wipe", object+`,"annotations":{"destructiveHint":true}`, "wiped"))
	c := r.dial("{}", nil)
	for _, row := range []struct {
		policy []trust.Rule
		want   string
	}{
		{nil, `s1=peer/wipe{} needs_approval`},
		{[]trust.Rule{{When: `source == "model" and round == 1 and destructive and not reads`, Then: trust.Allow}}, `s1=peer/wipe{}`},
		{[]trust.Rule{{When: `source == "model"`, Then: trust.Deny, Reason: "No."}}, `s1=peer/wipe{} forbidden`},
	} {
		cfg := r.opts.Config
		cfg.Policy = row.policy
		if err := r.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		if got := brief(c.query(`{"query":"q"}`)); got != row.want {
			t.Errorf("%v: got %s, want %s", row.policy, got, row.want)
		}
	}
}
