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

	"github.com/agenticnexus/agenticnexus/downstream"
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
			{"hr", "private", `{"name":"get_employee",` + anything + readOnly + `}`},
			{"payroll", "private", `{"name":"get_tax",` + anything + readOnly + `},{"name":"add_bonus",` + anything + `}`},
			{"search", "", `{"name":"web_search",` + anything + readOnly + `},{"name":"now",` + anything + readOnly + `}`},
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
		{"number of elements", hr + `,{"id":"x","tool":"web_search","each":"$h.team","arguments":{"q":"a"}}`, `search.web_search{"q":"a"} search.web_search{"q":"a"}`},
		{"when", hr + `,{"id":"x","tool":"web_search","when":"h.salary > 90000","arguments":{"q":"rich"}}`, `search.web_search{"q":"rich"}`},
		{"pick", hr + `,{"id":"x","tool":"web_search","pick":"{s: h.salary, v: value}","arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"through a step of the same server", hr + `,{"id":"g","tool":"get_employee","arguments":{"of":"$h.name"}},{"id":"x","tool":"web_search","arguments":{"q":"$g.name"}}`, `search.web_search{"q":"Ada"}`},
		{"through a step of another server", hr + `,{"id":"g","tool":"get_tax","when":"h.admin","pick":"true"},{"id":"x","tool":"web_search","arguments":{"q":"$g"}}`, `search.web_search{"q":true}`},
		{"through a condition", hr + `,{"id":"g","tool":"echo","when":"h.admin","arguments":{}},{"id":"x","tool":"web_search","after":["g"],"arguments":{"q":"a"}}`, `search.web_search{"q":"a"}`},
		{"a write", hr + `,{"id":"x","tool":"send_email","arguments":{"text":"$h.salary"}}`, `mail.send_email{"text":98765}`},
	} {
		for _, by := range []string{"", byRules, "given"} {
			for _, setting := range []string{auto, never} {
				for _, user := range []string{yes, no, nobody} {
					name := fmt.Sprintf("%s, by %q, %s, %s", row.name, by, setting, user)
					steps := `{"steps":[` + row.steps + `]}`
					var q router.Query
					plans := []string{by + steps, `[]`}
					if by == "given" {
						q.Plan, plans = json.RawMessage(steps), nil
					} else if by == byRules {
						plans = plans[:1]
					}
					k := newFlowKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = setting }, plans...)
					a := &asked{}
					switch user {
					case no:
						a.err = router.ErrDeclined
						fallthrough
					case yes:
						q.Elicit = a.elicit
					}
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
