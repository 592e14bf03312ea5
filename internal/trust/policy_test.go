package trust_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/trust"
)

func decide(t testing.TB, rules []trust.Rule, c trust.Call) trust.Decision {
	t.Helper()
	p, err := trust.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	r := trust.Rules{ConfirmWrites: trust.ConfirmAuto, Policy: p}
	first := r.Decide(&c)
	if again := r.Decide(&c); again != first {
		t.Errorf("decided %v and then %v", first, again)
	}
	return first
}

// TestConditions has one rule that denies.
func TestConditions(t *testing.T) {
	call := trust.Call{
		Caller: "alice", Profile: "server:hr", Server: "hr", Method: "tools/call", Tool: "set_salary",
		Arguments: json.RawMessage(`{"name":"Ann","amount":1200,"path":{"to":["a","b"]}}`),
		Source:    trust.SourceModel, Round: 2, Carries: []string{"crm", "mail"}, Destructive: true, Private: true,
	}
	for _, row := range []struct {
		when, reason string // empty = the condition does not hold
	}{
		{`caller == "alice" and profile == "server:hr" and server == "hr" and method == "tools/call"`, "no"},
		{`tool == "set_salary" && destructive && !reads && source == "model" && round == 2`, "no"},
		{`"crm" in carries && len(carries) == 2`, "no"},
		{`"hr" in carries`, ""},
		{`server in ["hr", "crm"] and arguments.amount > 1000`, "no"},
		{`server == "crm" and arguments.no.such > 1`, ""},
		{`arguments.amount > 1000 and server == "crm"`, ""},
		{`(server == "hr" or server == "crm") and arguments.path.to[1] == "b"`, "no"},
		{`not (server == "crm") and (tool startsWith "set_" and arguments.name matches "^A")`, "no"},
		{`arguments.none == nil`, "no"},
		{`let a = arguments.amount; a > 1 and server == "hr"`, "no"},
		{`tool == "é" or tool == "set_salary" and arguments.name == "Ann"`, "no"},
		{`"é" != tool and arguments.name == "Ann"`, "no"},
		{`server == "hr" and arguments.none.deeper == 1`, "policy[0] cannot be judged: cannot fetch deeper from <nil> at character 35"},
		{`arguments.amount startsWith "1"`, "policy[0] cannot be judged: a value is int, not string"},
		{`arguments.name`, "policy[0] cannot be judged: its value is string, not bool"},
		{`carries[7] == "x"`, "policy[0] cannot be judged: index out of range: 7 (array length is 2) at character 8"},
		{`count(1..1000, count(1..1000, count(1..1000, arguments.amount > 1) > 0) > 0) > 0`,
			"policy[0] cannot be judged: the expression does too much work on these values; ask the tool for less"},
	} {
		want := trust.Decision{Action: trust.Deny, Rule: "policy[0]", Reason: row.reason}
		if row.reason == "" {
			want = trust.Decision{Action: trust.Ask, Rule: trust.RuleWrite, Reason: "it may change something"}
		}
		if got := decide(t, []trust.Rule{{When: row.when, Then: trust.Deny, Reason: "no"}}, call); got != want {
			t.Errorf("%s: got %v, want %v", row.when, got, want)
		}
	}
}

// Arguments that the server may read differently cannot be judged.
func TestAmbiguousArguments(t *testing.T) {
	rules := []trust.Rule{{When: `server == "hr" and arguments.amount > 1000`, Then: trust.Deny, Reason: "no"}}
	for arguments, reason := range map[string]string{
		`{"amount":1001}`:                  "no",
		`{"amount":1000}`:                  "",
		``:                                 "policy[0] cannot be judged: invalid operation: <nil> > int at character 37",
		`[]`:                               "policy[0] cannot be judged: invalid operation: int(string) at character 30",
		`{"amount":1,"amount":2000}`:       "policy[0] cannot be judged: the arguments have a member twice or are not valid JSON",
		`{"amount":1,"Amount":2000}`:       "policy[0] cannot be judged: the arguments have a member twice or are not valid JSON",
		`{"amount":1,"x":[{"a":1,"A":2}]}`: "policy[0] cannot be judged: the arguments have a member twice or are not valid JSON",
		`{"x":{"user":1,"uſer":2}}`:        "policy[0] cannot be judged: the arguments have a member twice or are not valid JSON",
		`?`:                                "policy[0] cannot be judged: the arguments have a member twice or are not valid JSON",
	} {
		got := decide(t, rules, trust.Call{Server: "hr", Arguments: json.RawMessage(arguments)})
		if got.Reason != reason || (got.Action == trust.Deny) != (reason != "") {
			t.Errorf("%s: got %v, want %s", arguments, got, reason)
		}
		if got := decide(t, rules, trust.Call{Server: "crm", Arguments: json.RawMessage(arguments)}); got.Action != trust.Allow {
			t.Errorf("%s: got %v for another server, want that its arguments are not read", arguments, got)
		}
	}
}

// The first rule that holds decides, whether or not its condition reads the arguments.
func TestOrder(t *testing.T) {
	rules := []trust.Rule{
		{When: `server == "a" and arguments.x == 1`, Then: trust.Ask, Reason: "0"},
		{When: `server == "a" and tool == "t"`, Then: trust.Allow},
		{When: `server == "a"`, Then: trust.Deny, Reason: "2"},
		{When: `arguments.x == 1`, Then: trust.Deny, Reason: "3"},
		{When: `caller == "bob"`, Then: trust.Ask},
		{When: `true`, Then: trust.Deny},
	}
	for _, row := range []struct{ server, tool, arguments, caller, want string }{
		{"a", "t", `{"x":1}`, "", "ask policy[0] 0"},
		{"a", "t", `{"x":2}`, "", "allow policy[1] "},
		{"a", "u", `{"x":2}`, "", "deny policy[2] 2"},
		{"b", "t", `{"x":1}`, "bob", "deny policy[3] 3"},
		{"b", "t", `{}`, "bob", "ask policy[4] policy[4] asks for approval"},
		{"b", "t", `{}`, "eve", "deny policy[5] policy[5] denies it"},
	} {
		c := trust.Call{Server: row.server, Tool: row.tool, Caller: row.caller, Arguments: json.RawMessage(row.arguments)}
		d := decide(t, rules, c)
		if got := fmt.Sprintf("%s %s %s", d.Action, d.Rule, d.Reason); got != row.want {
			t.Errorf("%+v: got %q, want %q", row, got, row.want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, row := range []struct {
		rule trust.Rule
		want string
	}{
		{trust.Rule{When: `serve == "hr"`, Then: trust.Deny}, "policy[1].when: unknown name serve at character 1"},
		{trust.Rule{When: `server`, Then: trust.Deny}, "policy[1].when: expected bool, but got string"},
		{trust.Rule{When: `server == 1`, Then: trust.Deny}, "policy[1].when: invalid operation: == (mismatched types string and int) at character 8"},
		{trust.Rule{When: `server ==`, Then: trust.Deny}, "policy[1].when: unexpected token EOF at character 9"},
		{trust.Rule{When: ``, Then: trust.Deny}, "policy[1].when: the expression is empty"},
		{trust.Rule{When: `round > "1"`, Then: trust.Deny}, `policy[1].when: invalid operation: > (mismatched types int and string) at character 7`},
		{trust.Rule{When: `carries.x`, Then: trust.Deny}, "policy[1].when: "},
		{trust.Rule{When: `system("x")`, Then: trust.Deny}, "policy[1].when: unknown function system"},
		{trust.Rule{When: `$env != nil`, Then: trust.Deny}, "policy[1].when: $env cannot be used"},
		{trust.Rule{When: `true`, Then: "refuse"}, "policy[1].then: want allow, ask or deny"},
		{trust.Rule{When: `true`}, "policy[1].then: want allow, ask or deny"},
	} {
		_, err := trust.Compile([]trust.Rule{{When: "true", Then: trust.Allow}, row.rule})
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: got %v, want %s", row.rule, err, row.want)
		}
	}
}
