package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// flowKit is a kit with the private servers hr and payroll and the public servers search and mail.
type flowKit struct {
	*kit
	mu    sync.Mutex
	calls []string // server, tool and arguments
}

func newFlowKit(t *testing.T, change func(*router.Options, *downstream.Options), plans ...string) *flowKit {
	f := &flowKit{}
	f.kit = newKit(t, func(o *router.Options, d *downstream.Options) {
		o.Limits.QueryChars = 1000
		for _, s := range []struct{ name, data, tools string }{
			{"hr", "private", `{"name":"get_employee",` + anything + readOnly + `},{"name":"refuse",` + anything + readOnly + `}`},
			{"payroll", "private", `{"name":"get_tax",` + anything + readOnly + `},{"name":"add_bonus",` + anything + `}`},
			{"search", "", `{"name":"web_search","inputSchema":{"type":"object","properties":{"q":{}}}` + readOnly + `},{"name":"now",` + anything + readOnly + `}`},
			{"mail", "public", `{"name":"send_email",` + anything + `}`},
		} {
			server := &mcptest.Server{OnLine: f.answer(s.name)}
			server.SetTools("[" + s.tools + "]")
			d.Servers = append(d.Servers, downstream.ServerConfig{Name: s.name, Type: downstream.TransportStdio, Data: s.data})
			d.Access.Embedded[s.name] = func(context.Context) (io.ReadWriteCloser, error) { return dial(server), nil }
		}
		if change != nil {
			change(o, d)
		}
	}, plans...)
	return f
}

const employee = `{"name":"Ada","salary":98765,"team":[{"name":"Bob"},{"name":"Cy"}],"admin":true}`

// answer records the calls of a server. Private servers return an employee, the others their arguments.
func (f *flowKit) answer(name string) func(mcptest.Message, func(string)) bool {
	return func(m mcptest.Message, write func(string)) bool {
		if m.Method != "tools/call" {
			return false
		}
		call := m.Call()
		f.mu.Lock()
		f.calls = append(f.calls, name+"."+call.Name+string(call.Arguments))
		f.mu.Unlock()
		result := string(call.Arguments)
		if name == "hr" || name == "payroll" {
			result = employee
		}
		if call.Name == "refuse" {
			write(m.Response(`{"isError":true,"content":[{"type":"text","text":"98765 is too much"}]}`) + "\n")
			return true
		}
		write(m.Response(`{"content":[],"structuredContent":`+result+`}`) + "\n")
		return true
	}
}

// sent returns the calls of the public servers so far, in order of their texts.
func (f *flowKit) sent() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	public := slices.DeleteFunc(slices.Clone(f.calls), func(c string) bool {
		return strings.HasPrefix(c, "hr.") || strings.HasPrefix(c, "payroll.")
	})
	slices.Sort(public)
	return strings.Join(public, " ")
}

// The ways by which a value of hr may reach another server. Each needs consent, under every setting, whoever plans.
func TestFlows_Ways(t *testing.T) {
	const hr = `{"id":"h","tool":"get_employee"}`
	for _, row := range []struct {
		name, steps string
		sent        string // after a yes
	}{
		{"argument", hr + `,{"id":"x","tool":"web_search","arguments":{"q":"$h.salary"}}`, `search.web_search{"q":98765}`},
		{"nested argument", hr + `,{"id":"x","tool":"web_search","arguments":{"a":[{"b":"$h.name"}]}}`, `search.web_search{"a":[{"b":"Ada"}]}`},
		{"text", hr + `,{"id":"x","tool":"web_search","arguments":{"q":"who is ${h.name}?"}}`, `search.web_search{"q":"who is Ada?"}`},
		{"each", hr + `,{"id":"x","tool":"web_search","each":"$h.team","arguments":{"q":"$item.name"}}`, `search.web_search{"q":"Bob"} search.web_search{"q":"Cy"}`},
		{"each by an expression", hr + `,{"id":"x","tool":"web_search","each":"map(h.team, .name)","arguments":{"q":"$item"}}`, `search.web_search{"q":"Bob"} search.web_search{"q":"Cy"}`},
		{"number of elements by an expression", hr + `,{"id":"x","tool":"web_search","each":"1..len($h.team)","arguments":{"q":"a"}}`, `search.web_search{"q":"a"} search.web_search{"q":"a"}`},
		{"number of elements", hr + `,{"id":"x","tool":"web_search","each":"$h.team","arguments":{"q":"a"}}`, `search.web_search{"q":"a"} search.web_search{"q":"a"}`},
		{"when", hr + `,{"id":"x","tool":"web_search","when":"h.salary > 90000","arguments":{"q":"rich"}}`, `search.web_search{"q":"rich"}`},
		{"pick", hr + `,{"id":"x","tool":"web_search","pick":"{s: h.salary, v: value}","arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"through a step of the same server", hr + `,{"id":"g","tool":"get_employee","arguments":{"of":"$h.name"}},{"id":"x","tool":"web_search","arguments":{"q":"$g.name"}}`, `search.web_search{"q":"Ada"}`},
		{"through a step of another server", hr + `,{"id":"g","tool":"get_tax","when":"h.admin","pick":"true"},{"id":"x","tool":"web_search","arguments":{"q":"$g"}}`, `search.web_search{"q":true}`},
		{"through a computed step", hr + `,{"id":"c","pick":"h.salary > 90000"},{"id":"x","tool":"web_search","arguments":{"q":"$c"}}`, `search.web_search{"q":true}`},
		{"through computed steps", hr + `,{"id":"c","each":"$h.team","pick":"item.name"},{"id":"d","pick":"c[0]"},{"id":"x","tool":"web_search","arguments":{"q":"$d"}}`, `search.web_search{"q":"Bob"}`},
		{"through the success of a computed step", hr + `,{"id":"c","pick":"h.admin ? 1 : h.none.none"},{"id":"x","tool":"web_search","after":["c"],"arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"through a condition", hr + `,{"id":"g","tool":"echo","when":"h.admin","arguments":{}},{"id":"x","tool":"web_search","after":["g"],"arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"through the success of a step", hr + `,{"id":"g","tool":"echo","pick":"h.admin ? 1 : h.none.none","arguments":{}},{"id":"x","tool":"web_search","after":["g"],"arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"through the success of a pick", `{"id":"h","tool":"get_employee","pick":"value.admin ? 1 : value.none.none"},{"id":"x","tool":"web_search","after":["h"],"arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"a write", hr + `,{"id":"x","tool":"send_email","arguments":{"text":"$h.salary"}}`, `mail.send_email{"text":98765}`},
	} {
		for _, by := range []string{"", byRules, "given"} {
			for _, setting := range []string{auto, never} {
				for _, user := range []string{yes, no, nobody} {
					name := fmt.Sprintf("%s, by %q, %s, %s", row.name, by, setting, user)
					steps := `{"steps":[` + row.steps + `]}`
					var q router.Query
					plans := []string{by + steps, `[]`}
					switch by {
					case "given":
						q.Plan, plans = json.RawMessage(steps), nil
					case byRules:
						plans = plans[:1]
					}
					k := newFlowKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = setting }, plans...)
					a := &asked{}
					q.Elicit = a.by(user)
					r := k.query(q)
					want, reason := "", "declined"
					if user == nobody {
						reason = "needs_approval"
					}
					if user == yes {
						want, reason = row.sent, ""
					}
					if got := k.sent(); got != want {
						t.Errorf("%s: public servers got %s, want %s; %s", name, got, want, brief(r))
					}
					if reason != "" && !strings.Contains(brief(r), reason) || r.NeedsApproval != (user == nobody) {
						t.Errorf("%s: got %s and needs_approval %v, want the reason %s", name, brief(r), r.NeedsApproval, reason)
					}
					if user != nobody && (len(a.questions) == 0 || !strings.Contains(a.questions[len(a.questions)-1], " goes to ")) {
						t.Errorf("%s: got the questions %q, want one that names the flow", name, a.questions)
					}
				}
			}
		}
	}
}

// What needs no consent, although private data is near, and what a model sends after it has seen private results.
func TestFlows_Rounds(t *testing.T) {
	const hr = `{"steps":[{"id":"h","tool":"get_employee"}],"more":true}`
	x := func(arguments string) string {
		return `{"steps":[{"id":"x","tool":"web_search","arguments":` + arguments + `}]}`
	}
	for _, row := range []struct {
		name, question string
		plans          []string
		asks           int
		sent           string // where nobody can be asked
	}{
		{"private to private", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"get_tax","arguments":{"n":"$h.salary"}}]}`}, 0, ""},
		{"public to public", "", []string{`{"steps":[{"id":"h","tool":"now"},{"id":"x","tool":"web_search","arguments":{"n":"$h"}}]}`}, 0, `search.now{} search.web_search{"n":{}}`},
		{"after", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","after":["h"],"arguments":{"q":"a"}}]}`}, 0, `search.web_search{"q":"a"}`},
		{"a bare array", "", []string{`[{"tool":"get_employee"},{"tool":"web_search","arguments":{"q":"a"}}]`}, 0, `search.web_search{"q":"a"}`},
		{"a bare array that refers", "", []string{`[{"tool":"get_employee"},{"tool":"web_search","arguments":{"q":"$s1.name"}}]`}, 1, ""},
		{"a model that saw results", "", []string{hr, `{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"98765"}}]}`}, 1, ""},
		{"a model that computes what it saw", "", []string{hr, `{"steps":[{"id":"c","pick":"98765"},{"id":"x","tool":"web_search","arguments":{"q":"$c"}}]}`}, 1, ""},
		{"computed from public results", "", []string{`{"steps":[{"id":"h","tool":"now"},{"id":"c","pick":"h"},{"id":"x","tool":"web_search","arguments":{"q":"$c"}}]}`}, 0, `search.now{} search.web_search{"q":{}}`},
		{"no argument at all", "", []string{hr, `{"steps":[{"id":"x","tool":"now"}]}`}, 1, ""},
		{"part of a word", "Adaptors?", []string{hr, x(`{"q":"Ada"}`)}, 1, ""},
		{"other case", "Who is Ada?", []string{hr, x(`{"q":"ada"}`)}, 1, ""},
		{"further argument", "Who is Ada?", []string{hr, x(`{"q":"Ada","r":"Ada"}`)}, 1, ""},
		{"undeclared argument", "Who is Ada?", []string{hr, x(`{"r":"Ada"}`)}, 1, ""},
		{"list", "Who is Ada?", []string{hr, x(`{"q":["Ada"]}`)}, 1, ""},
		{"empty text", "Who is Ada?", []string{hr, x(`{"q":""}`)}, 1, ""},
		{"condition", "Who is Ada?", []string{hr, x(`{"q":"Ada"},"when":"1 > 0"`)}, 1, ""},
		{"what the question says", "Who is Ada, and the weather in Oslo?", []string{hr, x(`{"q":"weather in Oslo"}`)}, 0, `search.web_search{"q":"weather in Oslo"}`},
		{"a number in the question", "What is 4711?", []string{hr, x(`{"q":4711}`)}, 0, `search.web_search{"q":4711}`},
		{"two texts of the question", "Who is Ada, and the weather in Oslo?", []string{hr, `{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"Oslo"}},{"id":"y","tool":"web_search","arguments":{"q":"Ada"},"after":["x"]}]}`}, 1,
			`search.web_search{"q":"Oslo"}`},
		{"an error's text", "", []string{`{"steps":[{"id":"h","tool":"refuse"}],"more":true}`, `{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"b"}}]}`}, 1, ""},
		{"three rounds", "", []string{hr, `{"steps":[{"id":"n","tool":"get_tax"}],"more":true}`, `{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"b"}}]}`}, 1, ""},
		{"results of a public server", "", []string{`{"steps":[{"id":"h","tool":"now"}],"more":true}`, `{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"b"}}]}`}, 0, `search.now{} search.web_search{"q":"b"}`},
		{"equal flows", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","arguments":{"q":"$h.name"}},` +
			`{"id":"y","tool":"web_search","arguments":{"q":"$h.salary"},"after":["x"]}]}`}, 1, ""},
		{"a flow in two rounds", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","arguments":{"q":"$h.name"}}],"more":true}`, x(`{"q":"Bob"}`)}, 2, ""},
		{"a write in two rounds", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"send_email","arguments":{"to":"$h.name"}}],"more":true}`,
			`{"steps":[{"id":"y","tool":"send_email","arguments":{"to":"Bob"}}]}`}, 2, ""},
		{"two tools", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","arguments":{"q":"$h.name"}},` +
			`{"id":"y","tool":"now","arguments":{"q":"$h.salary"},"after":["x"]}]}`}, 2, ""},
		{"two sources", "", []string{`{"steps":[{"id":"h","tool":"get_employee"},{"id":"p","tool":"get_tax"},` +
			`{"id":"x","tool":"web_search","arguments":{"a":"$h.name","b":"$p.name"}}]}`}, 1, ""},
	} {
		for _, user := range []string{yes, no, nobody} {
			k := newFlowKit(t, nil, append(slices.Clone(row.plans), `[]`)...)
			q, a := router.Query{Text: row.question, MaxRounds: 3}, &asked{}
			q.Elicit = a.by(user)
			r := k.query(q)
			if user == nobody && (k.sent() != row.sent || r.NeedsApproval != (row.asks > 0)) {
				t.Errorf("%s: public servers got %q and needs_approval is %v, want %q; %s", row.name, k.sent(), r.NeedsApproval, row.sent, brief(r))
			}
			// A no is an answer for all steps with that flow, and no later round asks again.
			if user == no && (len(a.questions) != min(row.asks, 1) || k.sent() != row.sent || r.NeedsApproval) {
				t.Errorf("%s: after a no: got the questions %q, public servers got %q, want one at most and %q; %s", row.name, a.questions, k.sent(), row.sent, brief(r))
			}
			if user == yes && (len(a.questions) != row.asks || strings.Contains(brief(r), "approval")) {
				t.Errorf("%s: got the questions %q and %s, want %d", row.name, a.questions, brief(r), row.asks)
			}
		}
	}
}

// The form names source, destination, tool and arguments, and lists what else the answer applies to.
func TestFlows_Form(t *testing.T) {
	k := newFlowKit(t, nil, `{"steps":[{"id":"h","tool":"get_employee"},{"id":"p","tool":"get_tax"},`+
		`{"id":"x","tool":"web_search","arguments":{"a":"$h.salary","b":"$p.name"}},`+
		`{"id":"y","tool":"web_search","arguments":{"a":"$item.name","b":"$p.name"},"each":"$h.team","after":["x"]}]}`, `[]`)
	a := &asked{}
	r := k.query(router.Query{Elicit: a.elicit})
	want := "Allow this call?\nData of hr and payroll goes to search.\nServer: search\nTool: web_search\n" +
		`Arguments: {"a":98765,"b":"Ada"}` + "\nThe answer also applies to:\n" +
		`Arguments: {"a":"$item.name","b":"$p.name"}` + "\n  for each of $h.team"
	if len(a.questions) != 1 || a.questions[0] != want {
		t.Errorf("got the questions %q, want %q", a.questions, want)
	}
	if got, want := k.sent(), `search.web_search{"a":"Bob","b":"Ada"} search.web_search{"a":"Cy","b":"Ada"} search.web_search{"a":98765,"b":"Ada"}`; got != want {
		t.Errorf("got %s, want %s; %s", got, want, brief(r))
	}
}

// A step that may not run without consent does not start while the plan is being written.
func TestFlows_EarlyStart(t *testing.T) {
	k := newFlowKit(t, nil, `{"steps":[{"id":"h","tool":"get_employee"}],"more":true}`,
		`{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"98765"}}]}`, `[]`)
	r := k.query(router.Query{})
	if k.sent() != "" || len(r.Dropped) > 0 || !r.NeedsApproval {
		t.Errorf("public servers got %q, dropped %d calls, needs_approval %v; want nothing sent", k.sent(), len(r.Dropped), r.NeedsApproval)
	}
}

// A returned plan approves its flows if it is given back whole, in time, by the same caller.
func TestFlows_Approval(t *testing.T) {
	const flow = `{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","arguments":{"q":"$h.salary"}},{"id":"m","tool":"send_email","arguments":{"text":"$h.name"},"after":["x"]}]}`
	const sent = `mail.send_email{"text":"Ada"} search.web_search{"q":98765}`
	type change = func(q *router.Query, text string) string
	text := func(from, to string) change {
		return func(_ *router.Query, plan string) string {
			if !strings.Contains(plan, from) {
				panic(plan + " has no " + from)
			}
			return strings.Replace(plan, from, to, 1)
		}
	}
	for _, row := range []struct {
		name, setting string
		change        change
		sent          string
	}{
		{"whole", auto, nil, sent},
		{"whole, under never", never, nil, sent},
		{"whole, under always", always, nil, `search.web_search{"q":98765}`},
		{"other notation", auto, func(_ *router.Query, plan string) string {
			return `{"plan": ` + strings.ReplaceAll(plan, `","`, `" , "`) + `}`
		}, sent},
		{"other argument", auto, text(`$h.salary`, `$h`), ""},
		{"other destination of the same data", auto, text(`"web_search"`, `"now"`), ""},
		{"further step", auto, text(`"steps":[`, `"steps":[{"tool":"web_search","arguments":{"q":"$h"}},`), ""},
		{"condition", auto, text(`"id":"x",`, `"id":"x","when":"h.admin",`), ""},
		{"order", auto, text(`"after":["x"]`, `"after":[]`), ""},
		{"seal of nothing", auto, text(`"approval":"`, `"approval":"A`), ""},
		{"without approval", auto, text(`"approval"`, `"x"`), ""},
		{"other caller", auto, func(q *router.Query, plan string) string { q.Origin.Caller = "bob"; return plan }, ""},
		{"later key of the name", auto, func(q *router.Query, plan string) string { q.Origin.Login = "another"; return plan }, ""},
		{"other profile", auto, func(q *router.Query, plan string) string { q.Origin.Profile = "support"; return plan }, ""},
		{"just in time", auto, func(_ *router.Query, plan string) string { time.Sleep(time.Hour - time.Second); return plan }, sent},
		{"after an hour", auto, func(_ *router.Query, plan string) string { time.Sleep(time.Hour); return plan }, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newFlowKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = row.setting })
			q := router.Query{Plan: json.RawMessage(flow)}
			q.Origin.Caller, q.Origin.Profile = "ada", "router"
			r := k.query(q)
			if k.sent() != "" || !r.NeedsApproval {
				t.Fatalf("%s: public servers got %q before any approval", row.name, k.sent())
			}
			plan, err := json.Marshal(r.Content(false).Plan)
			if err != nil {
				t.Fatal(err)
			}
			q.Plan = plan
			if row.change != nil {
				q.Plan = json.RawMessage(row.change(&q, string(plan)))
			}
			again := k.query(q)
			if got := k.sent(); got != row.sent || again.NeedsApproval != (row.sent != sent) {
				t.Errorf("%s: public servers got %q and needs_approval is %v, want %q; %s", row.name, got, again.NeedsApproval, row.sent, brief(again))
			}
		})
	}
}

// What a model wrote into a later step, and what was put into a returned plan for a write that was made, still carries
// its source when the plan is given back without a valid approval.
func TestFlows_GivenBack(t *testing.T) {
	for _, row := range []struct {
		name  string
		plans []string
	}{
		{"later round", []string{`{"steps":[{"id":"h","tool":"get_employee"}],"more":true}`, `{"steps":[{"id":"x","tool":"web_search","arguments":{"q":"98765"}}]}`}},
		{"made write", []string{`{"steps":[{"id":"w","tool":"add_bonus"},{"id":"x","tool":"web_search","arguments":{"q":"$w.salary"}}]}`, `[]`}},
	} {
		k := newFlowKit(t, nil, row.plans...)
		r := k.query(router.Query{MaxRounds: 2})
		given, err := json.Marshal(r.Content(false).Plan)
		if err != nil || !strings.Contains(string(given), "98765") {
			t.Fatalf("%s: got the plan %s", row.name, given)
		}
		bare := strings.Replace(string(given), `"approval"`, `"x"`, 1)
		if again := k.query(router.Query{Plan: json.RawMessage(bare)}); k.sent() != "" || !again.NeedsApproval {
			t.Errorf("%s: without approval: public servers got %q; %s", row.name, k.sent(), brief(again))
		}
		if again := k.query(router.Query{Plan: given}); !strings.Contains(k.sent(), "98765") || again.NeedsApproval {
			t.Errorf("%s: with approval: public servers got %q; %s", row.name, k.sent(), brief(again))
		}
	}
}

// The planner is told which servers are private and which calls would need approval, unless all are allowed.
func TestFlows_Prompt(t *testing.T) {
	for _, approved := range []bool{false, true} {
		k := newFlowKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = always }, `[]`)
		k.query(router.Query{Text: "get_employee and send_email to Ada", Approved: approved})
		prompt := string(k.model.Requests()[0].Body)
		private := strings.Contains(prompt, "[server hr] [private]")
		writes := strings.Contains(prompt, "send_email(arguments unknown) [needs approval]")
		if private == approved || writes == approved {
			t.Errorf("approved %v: got the prompt %s", approved, prompt)
		}
	}
}

// Rules of the policy decide on steps, too: before the calls of a step, for each of them, and instead of the built-in
// rules.
func TestFlows_Policy(t *testing.T) {
	const flow = `{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","each":"$h.team","arguments":{"q":"$item.name"}}]}`
	const both = `search.web_search{"q":"Bob"} search.web_search{"q":"Cy"}`
	for _, row := range []struct {
		name, when, then string
		user             string
		asks             int
		sent, outcomes   string
	}{
		{"allows a flow", `server == "search" && "hr" in carries`, "allow", nobody, 0, both, ""},
		{"denies", `"hr" in carries`, "deny", yes, 0, "", "forbidden"},
		{"denies one call", `"hr" in carries && arguments.q == "Cy"`, "deny", yes, 1, `search.web_search{"q":"Bob"}`, "forbidden"},
		{"asks", `tool == "web_search" && source == "given" && round == 1 && profile == "router" && reads`, "ask", yes, 1, both, ""},
		{"asks in vain", `tool == "web_search"`, "ask", no, 1, "", "declined"},
		{"asks nobody", `tool == "web_search"`, "ask", nobody, 0, "", "needs_approval"},
	} {
		policy, err := trust.Compile([]trust.Rule{{When: row.when, Then: trust.Action(row.then), Reason: "because of x"}})
		if err != nil {
			t.Fatal(err)
		}
		k := newFlowKit(t, nil)
		k.servers.SetPolicy(policy)
		q, a := router.Query{Plan: json.RawMessage(flow)}, &asked{}
		q.Elicit = a.by(row.user)
		r := k.query(q)
		if got := k.sent(); got != row.sent || len(a.questions) != row.asks || !strings.Contains(brief(r), row.outcomes) {
			t.Errorf("%s: got %q after the questions %q, want %q after %d; %s", row.name, got, a.questions, row.sent, row.asks, brief(r))
		}
		if row.then == "ask" && row.asks > 0 && !strings.Contains(a.questions[0], "\nReason: because of x\n") {
			t.Errorf("%s: got the question %q, want the reason in it", row.name, a.questions[0])
		}
	}
}

// The note on what waits for approval names the steps that are approved with it, too.
func TestApprovalNote(t *testing.T) {
	k := newFlowKit(t, nil, `{"steps":[{"id":"h","tool":"get_employee"},{"id":"x","tool":"web_search","arguments":{"q":"$h.name"}},`+
		`{"id":"y","tool":"send_email","arguments":{"text":"$x"}}]}`, `[]`)
	got := k.query(router.Query{}).Answer.Text
	for _, want := range []string{"- x: web_search of server search with ", "- y, after those: send_email of server mail with "} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
