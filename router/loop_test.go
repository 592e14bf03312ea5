package router_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/router"
)

// loopPlan notes each element of a list, once there is one.
const loopPlan = `{"steps":[{"id":"l","tool":"echo","arguments":{"items":["a","b","c"]}},
	{"id":"n","tool":"note","each":"$l.items","when":"item != \"b\"","arguments":{"text":"$item"}},
	{"id":"no","tool":"wipe","when":"len(l.items) > 5","arguments":{}},{"id":"after","tool":"note","arguments":{},"after":["no"]}]}`

// TestLoops_Steps holds that the record has an entry for each call of a loop, and says what was skipped.
func TestLoops_Steps(t *testing.T) {
	k := newKit(t, nil)
	r := k.query(router.Query{Text: "q", Plan: json.RawMessage(loopPlan)})
	var got []string
	for _, s := range r.Content(false).Steps {
		index := "-"
		if s.Index != nil {
			index = fmt.Sprint(*s.Index)
		}
		got = append(got, fmt.Sprintf("%s %s %s success=%t skipped=%t", s.ID, index, s.Arguments, s.Success, s.Skipped))
	}
	want := []string{
		`l - {"items":["a","b","c"]} success=true skipped=false`,
		`n 0 {"text":"a"} success=true skipped=false`,
		`n 1 {"text":"$item"} success=false skipped=true`,
		`n 2 {"text":"c"} success=true skipped=false`,
		`no - {} success=false skipped=true`,
		`after - {} success=false skipped=true`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Answer.Degraded || len(r.Unmet) > 0 || r.Called() != 3 {
		t.Errorf("got degraded %t, unmet %v and %d calls, want a whole answer of 3 calls", r.Answer.Degraded, r.Unmet, r.Called())
	}
	if !strings.Contains(r.Answer.Text, "Skipped, because a condition of the plan was false: no (wipe), after (note).") {
		t.Errorf("got the answer %q, want it to say what was skipped", r.Answer.Text)
	}
}

// TestLoops_Consent holds that a loop is confirmed once, by a question that shows every call.
func TestLoops_Consent(t *testing.T) {
	for _, user := range []string{yes, no, nobody} {
		k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = always })
		a := &asked{}
		q := router.Query{Text: "q", Plan: json.RawMessage(loopPlan), Elicit: a.by(user)}
		r := k.query(q)
		calls := map[string]int{yes: 3, no: 1, nobody: 1}[user]
		if r.Called() != calls || r.NeedsApproval != (user == nobody) || (len(r.Unmet) > 0) != (user != yes) {
			t.Errorf("%s: got %d calls, needs approval %t and unmet %v, want %d calls", user, r.Called(), r.NeedsApproval, r.Unmet, calls)
		}
		const question = "Allow these 2 calls?\nServer: peer\nTool: note\nArguments: {\"text\":\"a\"}\nArguments: {\"text\":\"c\"}"
		if user != nobody && (len(a.questions) != 1 || a.questions[0] != question) {
			t.Errorf("%s: asked %q, want %q once", user, a.questions, question)
		}
		if user == nobody && !strings.Contains(r.Answer.Text, `- n: note of server peer with {"text":"a"} and 1 more of this loop`) {
			t.Errorf("got the answer %q, want it to name the loop", r.Answer.Text)
		}
	}
}

// TestLoops_FailInPart holds that failed elements are named, and that the answer is degraded.
func TestLoops_FailInPart(t *testing.T) {
	k := newKit(t, nil)
	r := k.query(router.Query{Text: "q", Plan: json.RawMessage(`{"steps":[{"id":"l","tool":"echo","arguments":{"items":[{"city":"Bonn"},{"city":"x"}]}},
		{"id":"h","tool":"hotel","each":"$l.items","arguments":{"city":"$item.city"}},{"id":"e","tool":"echo","arguments":{"hotels":"$h"}}]}`)})
	if !r.Answer.Degraded || len(r.Unmet) != 1 || r.Unmet[0].Tool != "hotel" {
		t.Errorf("got degraded %t and unmet %+v, want the failed element to be unmet", r.Answer.Degraded, r.Unmet)
	}
	if !strings.Contains(r.Answer.Text, "failed for 1 of 2 elements (1); the first time: arguments.city: ") {
		t.Errorf("got the answer %q, want it to name the failed element", r.Answer.Text)
	}
	if last := r.Outcomes[2]; !last.OK() || !strings.HasSuffix(string(last.Sent), `,null]}`) {
		t.Errorf("got %+v, want null for the failed element", last)
	}
}

// TestComputing holds that a step without a tool needs no consent, is in the record, and serves no part by itself.
func TestComputing(t *testing.T) {
	k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = always })
	a := &asked{}
	r := k.query(router.Query{Text: "q", Elicit: a.by(yes), Plan: json.RawMessage(`{"steps":[{"id":"l","tool":"echo","arguments":{"items":[3,4]}},
		{"id":"c","pick":"sum(l.items)"},{"id":"d","tool":"","each":"$l.items","when":"item > 3","pick":"item * 2"},{"id":"e","tool":"echo","arguments":{"c":"$c","d":"$d"}},
		{"id":"f","pick":"l.none.deep"},{"id":"g","pick":"f"},{"id":"s","when":"c > 9","pick":"1"}]}`)})
	const want = `l=echo{"items":[3,4]}; c={}; d={} skipped; d={}; e=echo{"c":7,"d":[8]}; f={} invalid_arguments; g={} dependency_failed; s={} skipped`
	if got := brief(r); got != want || len(a.questions) > 0 || r.Called() != 2 {
		t.Errorf("got %s after %q and %d calls, want %s after no question and 2 calls", got, a.questions, r.Called(), want)
	}
	if len(r.Unmet) != 1 || r.Unmet[0].Text != "l.none.deep" || r.Unmet[0].Tool != "" {
		t.Errorf("got unmet %+v, want the value that could not be computed", r.Unmet)
	}
	for _, part := range []string{"**step c**: 7", "Skipped, because a condition of the plan was false: s.", `Not done: "l.none.deep", because it failed: pick: cannot fetch deep from <nil>`} {
		if !strings.Contains(r.Answer.Text, part) {
			t.Errorf("got the answer %q, want %q in it", r.Answer.Text, part)
		}
	}
	if dry := k.query(router.Query{Text: "q", DryRun: true, Plan: json.RawMessage(`{"steps":[{"id":"c","pick":"1 + 1"}]}`)}); dry.Answer.Text != "Nothing was called. The plan:\n- c: computed without a tool, pick 1 + 1" {
		t.Errorf("got the plan %q, want it to name the computation", dry.Answer.Text)
	}
}

// TestLoops_Bounds holds that a query makes at most 10,000 calls, in whole loops.
func TestLoops_Bounds(t *testing.T) {
	k := newKit(t, nil)
	steps := `{"id":"l","tool":"echo","arguments":{"items":[` + strings.Repeat("0,", 999) + `0]}}`
	for i := range 11 {
		steps += fmt.Sprintf(`,{"id":"e%d","tool":"echo","each":"$l.items","arguments":{}}`, i)
	}
	r := k.query(router.Query{Text: "q", Plan: json.RawMessage(`{"sequential":true,"steps":[` + steps + `]}`)})
	if r.Called() != 9001 || len(r.Unmet) != 2 || !strings.Contains(r.Answer.Text, "at most 10000 calls; nothing was called") {
		t.Errorf("got %d calls and unmet %+v, want 9001 calls and two loops refused as a whole", r.Called(), r.Unmet)
	}
}
