package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

func TestCheckLoops(t *testing.T) {
	tests := []struct{ name, step, want string }{
		{"fine", `{"tool":"calc","each":"$l.items","when":"item.n > 1 && l.total > index","pick":"{\"v\": value.x, \"of\": item, \"at\": index, \"l\": l}","arguments":{"n":"$item.n","q":"${item.q}"}}`, ``},
		{"null is nothing", `{"tool":"calc","each":null,"when":null,"pick":null}`, ``},
		{"the whole value", `{"tool":"calc","each":"$l"}`, ``},
		{"in braces", `{"tool":"calc","each":"${l.items}"}`, ``},
		{"a list by an expression", `{"tool":"calc","each":"map(filter($l.items, .n > 1), ({\"n\": .n, \"q\": \"x\"}))","arguments":{"n":"$item.n","q":"${item.q}"}}`, ``},
		{"an expression that begins with a reference", `{"tool":"calc","each":"$l.items | filter(.n > 1)"}`, ``},
		{"a slice", `{"tool":"calc","each":"$l.items[0:2]"}`, ``},
		{"a member of that name", `{"tool":"calc","each":"${l.items (old)}"}`, ``},
		{"literal elements", `{"tool":"calc","each":["a","b"]}`, ``},
		{"a text with a reference", `{"tool":"calc","each":"all ${l.items}"}`, `invalid_arguments: each: unexpected token Identifier("$") at character 5`},
		{"no such step", `{"tool":"calc","each":"$nope"}`, `missing_reference: each names "nope", which is not a step`},
		{"no such step in an expression", `{"tool":"calc","each":"map($nope.items, .x)"}`, `missing_reference: each names "nope", which is not a step`},
		{"broken list", `{"tool":"calc","each":"map($l.items, .n"}`, `invalid_arguments: each: unexpected token EOF at character 16`},
		{"broken list that begins with a reference", `{"tool":"calc","each":"$l.items | filter(.n"}`, `invalid_arguments: each: unexpected token EOF at character 20`},
		{"no element before there is one", `{"tool":"calc","each":"[item]"}`, `missing_reference: each names "item", which is not a step`},
		{"a variable of the list hides a step", `{"tool":"calc","each":"let l = [1]; l"}`, `invalid_arguments: each: the variable "l" hides a value of that name; rename it`},
		{"broken expression", `{"tool":"calc","when":"l.total >"}`, `invalid_arguments: when: unexpected token EOF at character 9`},
		{"unknown function", `{"tool":"calc","pick":"shell(value)"}`, `invalid_arguments: pick: unknown function shell`},
		{"unknown name", `{"tool":"calc","when":"nope.total > 1"}`, `missing_reference: when names "nope", which is not a step`},
		{"no value before the call", `{"tool":"calc","when":"value > 1"}`, `missing_reference: when names "value", which is not a step`},
		{"a variable hides a step", `{"tool":"calc","when":"l.total == 2 and (let l = 5; l > 1)"}`, `invalid_arguments: when: the variable "l" hides a value of that name; rename it`},
		{"a variable", `{"tool":"calc","when":"let n = l.total; n > 1"}`, ``},
		{"no item without a loop", `{"tool":"calc","pick":"item"}`, `missing_reference: pick names "item", which is not a step`},
		{"a value without a tool", `{"pick":"map(l.items, .n)"}`, ``},
		{"values without a tool", `{"tool":"","arguments":{},"each":"$l.items","when":"index > 1","pick":"item.n"}`, ``},
		{"no value of a call without a tool", `{"pick":"value"}`, `missing_reference: pick names "value", which is not a step`},
		{"arguments without a tool", `{"pick":"1","arguments":{"n":1}}`, `unknown_tool: step has arguments but names no tool`},
		{"neither a tool nor a value", `{"tool":"","each":"$l"}`, `unknown_tool: step names no tool; only a step that computes its value by pick needs none`},
		{"a value of itself", `{"id":"e","pick":"e"}`, `cycle: the step waits for itself`},
		{"itself", `{"id":"e","tool":"calc","each":"$e"}`, `cycle: the step waits for itself`},
		{"itself by the expression of the list", `{"id":"e","tool":"calc","each":"map(e, .x)"}`, `cycle: the step waits for itself`},
		{"itself by an expression", `{"id":"e","tool":"calc","when":"e == 1"}`, `cycle: the step waits for itself`},
		{"wrong argument in a loop", `{"tool":"calc","each":"$l","arguments":{"n":"x","q":"$item"}}`, `invalid_arguments: arguments.n: got string, want integer`},
		{"item is a text without a loop", `{"tool":"calc","arguments":{"n":"$item"}}`, `invalid_arguments: arguments.n: got string, want integer`},
	}
	for _, test := range tests {
		_, got := problemsOf(t, `{"steps":[{"id":"l","tool":"a.search"},`+test.step+`]}`)
		text := strings.Join(got, "\n")
		if _, text, _ = strings.Cut(text, " "); text != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, text, test.want)
		}
	}
}

// TestReplayLoops holds that a returned plan with loops is the plan.
func TestReplayLoops(t *testing.T) {
	const text = `{"steps":[{"id":"l","tool":"a"},{"id":"e","tool":"b","each":"filter($l.items, # > 0)","when":"item > 1","pick":"value.x","arguments":{"v":"$item"}}]}`
	p, err := plan.ParseJSON(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.ParseJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range again.Steps {
		if was := p.Steps[i]; s.Each != was.Each || s.When != was.When || s.Pick != was.Pick {
			t.Errorf("got %+v, want %+v", s, was)
		}
	}
	if needs := again.Steps[1].Needs(func(id string) bool { return id == "l" }); len(needs) != 1 || needs[0] != "l" {
		t.Errorf("got the needs %q, want l", needs)
	}
}

func TestWithoutRepeats_Loops(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	loop := plan.Step{ID: "e", Tool: "put", Arguments: raw(`{"n":"$item"}`), Each: "$l"}
	done := []plan.Outcome{
		{Step: plan.Step{ID: "l", Tool: "list", Arguments: raw(`{}`)}, Sent: raw(`{}`), Value: raw(`[1,9,2]`)},
		{Step: loop, Value: raw(`[{"id":"a"},{"id":"b"}]`), Elements: []plan.Outcome{
			{Step: loop, Sent: raw(`{"n":1}`), Value: raw(`{"id":"a"}`)}, {Step: loop, Index: 1, Skipped: true}, {Step: loop, Index: 2, Sent: raw(`{"n":2}`), Value: raw(`{"id":"b"}`)},
		}},
	}
	tests := []struct{ steps, want string }{
		{`{"id":"f","tool":"put","each":"$l","arguments":{"n":"$item"}},{"id":"g","tool":"x","each":"$f","arguments":{"v":"$f.0"}}`, `g each $e {"v":"$e.0"}`},
		{`{"id":"f","tool":"put","arguments":{"n":2}},{"id":"g","tool":"x","arguments":{"v":"$f.id"},"after":["f"]}`, `g {"v":"$e.1.id"}`},
		{`{"id":"f","tool":"put","each":"$l.more","arguments":{"n":"$item"}}`, `f each $l.more {"n":"$item"}`},
		{`{"id":"f","tool":"put","arguments":{"n":3}}`, `f {"n":3}`},
		{`{"id":"f","tool":"put","arguments":{"n":1}},{"id":"g","tool":"x","when":"f.id == 1"}`, `f {"n":1} g {}`},
		{`{"id":"f","tool":"put","arguments":{"n":1}},{"id":"g","tool":"x","each":"keys($f)"}`, `f {"n":1} g each keys($f) {}`},
		{`{"id":"f","tool":"put","arguments":{"n":1}}],"more":"f.id == 1","x":[`, `f {"n":1}`},
	}
	for _, test := range tests {
		p, err := plan.ParseJSON(raw(`{"steps":[` + test.steps + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		plan.WithoutRepeats(&p, done, func(plan.Step) bool { return false })
		var got []string
		for _, s := range p.Steps {
			if s.Each != "" {
				s.ID += " each " + s.Each
			}
			got = append(got, s.ID+" "+string(s.Arguments))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: got %s, want %s", test.steps, text, test.want)
		}
	}
}
