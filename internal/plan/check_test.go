package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// catalog has search at two servers, calc at one, and a tool whose own name looks like another's.
func catalog(name string) (plan.Tool, *plan.Error) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"q":{"type":"string","maxLength":10},"n":{"type":"integer","minimum":0},
		"list":{"type":"array","items":{"type":"integer"},"maxItems":2,"uniqueItems":true,"contains":{"const":1}},
		"one":{"enum":[{"a":1},{"a":2}]},"any":{"anyOf":[{"type":"object","required":["x"]},{"type":"object","properties":{"y":{"type":"integer"}},"required":["y"]}]},
		"both":{"oneOf":[{"properties":{"x":{"const":1}}},{"properties":{"x":{"const":2}}}]},
		"cond":{"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["a"]},"else":{"required":["b"]}},
		"not":{"not":{"properties":{"x":{"type":"string"}}}},
		"all":{"allOf":[{"required":["x"]},{"properties":{"x":{"type":"integer"}}}]},
		"open":{"anyOf":[{"properties":{"x":{"const":1},"z":{}}},{}],"unevaluatedProperties":false}
		},"additionalProperties":false}`)
	tools := map[string]plan.Tool{
		"calc":     {Name: "calc", Server: "math", Tool: "calc", InputSchema: schema},
		"a.search": {Name: "a.search", Server: "a", Tool: "search"},
		"b.search": {Name: "b.search", Server: "b", Tool: "search"},
		"b.calc":   {Name: "b.calc", Server: "other", Tool: "b.calc"},
	}
	tools["math.calc"] = tools["calc"]
	if tool, ok := tools[name]; ok {
		return tool, nil
	}
	if name == "search" {
		return plan.Tool{}, &plan.Error{Reason: reason.AmbiguousTool, Message: "search is ambiguous: a.search or b.search"}
	}
	return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + name}
}

func problemsOf(t *testing.T, text string, done ...plan.Outcome) (plan.Plan, []string) {
	t.Helper()
	p, err := plan.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	var got []string
	for _, problem := range plan.Check(&p, plan.NewValidator(), catalog, done) {
		if strings.Contains(problem.Error.Message, "\n") || problem.Error.Message == "" {
			t.Errorf("got message %q, want one line", problem.Error.Message)
		}
		got = append(got, fmt.Sprintf("%s %s: %s", problem.Step, problem.Error.Reason, problem.Error.Message))
	}
	return p, got
}

// TestContinues holds what a condition of "more" may name, and what it says after the round.
func TestContinues(t *testing.T) {
	failure := &plan.Error{Reason: reason.ToolError, Message: "no"}
	before := plan.Outcome{Step: plan.Step{ID: "b", Tool: "calc", Arguments: json.RawMessage(`{}`)}, Value: json.RawMessage(`{"n":2}`)}
	for _, row := range []struct {
		more, problem, failed string
		want                  bool
	}{
		{more: `true`, want: true},
		{more: `false`},
		{more: `"l.total > 3"`, want: true},
		{more: `"$l.total > 4"`},
		{more: `"l.total > b.n"`, want: true},
		{more: `"s.total > 1"`},
		{more: `"l.total"`, failed: "more: the value is neither true nor false", want: true},
		{more: `"l.nothing.deep"`, failed: "more: cannot fetch deep from <nil> at character 11", want: true},
		{more: `"f.total > 1"`, failed: `more: step "f" has no value`, want: true},
		{more: `"l.total >"`, problem: " invalid_arguments: more: unexpected token EOF at character 9", failed: "more: unexpected token EOF at character 9", want: true},
		{more: `"nope.n > 1"`, problem: ` missing_reference: more names "nope", which is not a step`, failed: `more names "nope", which is not a step`, want: true},
		{more: `"value.n > 1"`, problem: ` missing_reference: more names "value", which is not a step`, failed: `more names "value", which is not a step`, want: true},
		{more: `"let l = 1; l > 1"`, problem: ` invalid_arguments: more: the variable "l" hides a value of that name; rename it`, failed: `more: the variable "l" hides a value of that name; rename it`, want: true},
	} {
		p, problems := problemsOf(t, `{"steps":[{"id":"l","tool":"a.search"},{"id":"s","tool":"a.search"},{"id":"f","tool":"a.search"}],"more":`+row.more+`}`, before)
		if got := strings.Join(problems, "\n"); got != row.problem {
			t.Errorf("%s: got the problem %q, want %q", row.more, got, row.problem)
		}
		got, err := p.Continues(t.Context(), []plan.Outcome{before, {Step: p.Steps[0], Value: json.RawMessage(`{"total":4}`)}, {Step: p.Steps[1], Skipped: true}, {Step: p.Steps[2], Err: failure}})
		if text := fmt.Sprint(err); got != row.want || (err != nil || row.failed != "") && text != row.failed {
			t.Errorf("%s: got %t and the error %q, want %t and %q", row.more, got, text, row.want, row.failed)
		}
	}
	// A value may be computed again, another one under its id may not.
	sum := plan.Outcome{Step: plan.Step{ID: "c", Pick: "1", Arguments: json.RawMessage(`{}`)}, Value: json.RawMessage(`1`)}
	for pick, want := range map[string]int{"1": 0, "2": 1} {
		if _, problems := problemsOf(t, `{"steps":[{"id":"c","pick":"`+pick+`"},{"id":"d","pick":"c"}]}`, sum); len(problems) != want {
			t.Errorf("got the problems %q of %s, want %d", problems, pick, want)
		}
	}
	// An id that a condition names is not replaced: either call may be meant.
	other := plan.Outcome{Step: plan.Step{ID: "l", Tool: "calc", Arguments: json.RawMessage(`{"n":1,"q":"x"}`)}}
	if p, problems := problemsOf(t, `{"steps":[{"id":"l","tool":"a.search"}],"more":"l.total > 1"}`, other); p.Steps[0].ID != "l" || len(problems) != 1 {
		t.Errorf("got the id %s and the problems %q, want l and one", p.Steps[0].ID, problems)
	}
}

// Arguments that could not be read are reported once; those of a step that is at fault otherwise are checked, too.
func TestCheckArgumentsOnce(t *testing.T) {
	for _, row := range []struct {
		invalid string
		want    []string
	}{
		{reason.InvalidArguments, []string{reason.InvalidArguments}},
		{reason.DuplicateID, []string{reason.DuplicateID, reason.InvalidArguments}},
	} {
		p := plan.Plan{Steps: []plan.Step{{ID: "a", Tool: "calc", Arguments: json.RawMessage(`{"nope":1}`), Invalid: &plan.Error{Reason: row.invalid, Message: "m"}}}}
		var got []string
		for _, problem := range plan.Check(&p, plan.NewValidator(), catalog, nil) {
			got = append(got, problem.Error.Reason)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got the problems %q, want %q", row.invalid, got, row.want)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"fine", `{"steps":[{"id":"x","tool":"calc","arguments":{"q":"a"}},{"id":"y","tool":"a.search","arguments":{"q":"$x"},"after":["x"]}]}`, nil},
		{"money is no reference", `[{"tool":"calc","arguments":{"q":"$2500"}}]`, nil},
		{"unknown tool", `[{"tool":"nope"},{"tool":"calc"}]`, []string{`s1 unknown_tool: Unknown tool: nope`}},
		{"ambiguous tool", `[{"tool":"search"}]`, []string{`s1 ambiguous_tool: search is ambiguous: a.search or b.search`}},
		{"no tool", `[{"tool":""},{"tool":"calc"}]`, []string{`s1 unknown_tool: step names no tool; only a step that computes its value by pick needs none`}},
		{"arguments that are no object", `[{"tool":"calc","arguments":7}]`, []string{`s1 invalid_arguments: arguments: got number, want object`}},
		{"a cycle, and arguments that do not fit", `[{"tool":"calc","arguments":{"n":"x"},"after":["s1"]}]`, []string{`s1 cycle: the step waits for itself`, `s1 invalid_arguments: arguments.n: got string, want integer`}},
		{"unknown after", `[{"tool":"calc","after":["s9","s2"]},{"tool":"calc"}]`, []string{`s1 missing_reference: after names "s9", which is not a step`}},
		{"itself", `[{"tool":"calc","after":["s1"]}]`, []string{`s1 cycle: the step waits for itself`}},
		{"itself by reference", `[{"tool":"calc","arguments":{"q":"${s1.x}"}}]`, []string{`s1 cycle: the step waits for itself`}},
		{"cycle and what hangs on it", `{"steps":[{"id":"a","tool":"calc","arguments":{"q":"$c"}},{"id":"b","tool":"calc","after":["a"]},{"id":"c","tool":"calc","arguments":{"q":"x ${b}"}},{"id":"d","tool":"calc","after":["c"]},{"id":"e","tool":"calc"}]}`, []string{
			`a cycle: steps wait for each other: "a", "b", "c"`, `b cycle: steps wait for each other: "a", "b", "c"`, `c cycle: steps wait for each other: "a", "b", "c"`,
		}},
		{"two cycles", `{"steps":[{"id":"a","tool":"calc","after":["b"]},{"id":"b","tool":"calc","after":["a","c"]},{"id":"c","tool":"calc","after":["d"]},{"id":"d","tool":"calc","after":["c"]}]}`, []string{
			`a cycle: steps wait for each other: "a", "b"`, `b cycle: steps wait for each other: "a", "b"`, `c cycle: steps wait for each other: "c", "d"`, `d cycle: steps wait for each other: "c", "d"`,
		}},
		{"repeated id", `{"steps":[{"id":"a","tool":"calc"},{"id":"a","tool":"calc"}]}`, []string{`s2 duplicate_id: step 2: id "a" is used by an earlier step`}},
		{"refused arguments", `[{"tool":"calc","arguments":{"n":"5"}}]`, []string{`s1 invalid_arguments: arguments.n: got string, want integer`}},
		{"refused twice over", `[{"tool":"calc","arguments":{"n":"5"},"after":["x"]}]`, []string{`s1 missing_reference: after names "x", which is not a step`, `s1 invalid_arguments: arguments.n: got string, want integer`}},
		{"arguments of another kind", `[{"tool":"calc","arguments":[]}]`, []string{`s1 invalid_arguments: arguments: got array, want object`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := problemsOf(t, tt.text)
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// What a reference will bring is not known, so nothing is refused because of it; all else is.
func TestCheckWithReferences(t *testing.T) {
	tests := []struct{ name, arguments, want string }{
		{"integer", `{"n":"$s2"}`, ``},
		{"text", `{"q":"a long text with ${s2.x} in it"}`, ``},
		{"other argument", `{"n":"$s2","q":1}`, `arguments.q: got number, want string`},
		{"unknown name", `{"zz":"$s2"}`, `arguments: unknown property "zz"`},
		{"list", `{"list":["$s2",1]}`, ``},
		{"list contains", `{"list":["$s2"]}`, ``},
		{"list of the same reference", `{"list":["$s2","$s2"]}`, ``},
		{"list too long", `{"list":["$s2","$s2",1]}`, `arguments.list: maxItems: got 3, want 2`},
		{"list with a wrong element", `{"list":["$s2","x"]}`, `arguments.list[1]: got string, want integer`},
		{"enum of objects", `{"one":{"a":"$s2"}}`, ``},
		{"enum of objects, known", `{"one":{"a":3}}`, `arguments.one: got {"a":3}, want one of {"a":1}, {"a":2}`},
		{"alternatives that it may decide", `{"any":{"y":"$s2"}}`, ``},
		{"alternatives that it cannot help", `{"any":{"z":"$s2"}}`, `arguments.any: missing property "x"`},
		{"whole value of alternatives", `{"any":"$s2"}`, ``},
		{"exactly one that it may decide", `{"both":{"x":"$s2"}}`, ``},
		{"exactly one", `{"both":{"z":"$s2"}}`, ``},
		{"condition", `{"cond":{"k":"$s2","a":1}}`, ``},
		{"condition, known", `{"cond":{"k":"c","a":1}}`, `arguments.cond: missing property "b"`},
		{"negation", `{"not":{"x":"$s2"}}`, ``},
		{"all", `{"all":{"y":"$s2"}}`, `arguments.all: missing property "x"`},
		{"all, decided", `{"all":{"x":"$s2"}}`, ``},
		{"unevaluated", `{"open":{"x":"$s2","z":1}}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := problemsOf(t, `[{"tool":"calc","arguments":`+tt.arguments+`},{"tool":"a.search"}]`)
			want := ""
			if tt.want != "" {
				want = "s1 invalid_arguments: " + tt.want
			}
			if strings.Join(got, "\n") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestCheckNamesTools(t *testing.T) {
	p, got := problemsOf(t, `{"steps":[
		{"tool":"math.calc"},{"tool":"search","server":"a"},{"tool":"b.search","server":"b"},
		{"tool":"calc","server":"math"},{"tool":"b.calc","server":"other"},{"tool":"calc","server":"b"},{"tool":"search","server":"c"}]}`)
	if want := "s6 unknown_tool: server \"b\" has no tool \"calc\"\ns7 unknown_tool: Unknown tool: c.search"; strings.Join(got, "\n") != want {
		t.Errorf("got problems %q, want %q", got, want)
	}
	want := "s1=math/calc{} s2=a/a.search{} s3=b/b.search{} s4=math/calc{} s5=other/b.calc{} s6=b/calc{} s7=c/search{}"
	if brief(p) != want {
		t.Errorf("got %s, want %s", brief(p), want)
	}
	before := brief(p)
	plan.Check(&p, plan.NewValidator(), catalog, nil)
	if brief(p) != before {
		t.Errorf("a second check: got %s, want %s", brief(p), before)
	}
}

func TestCheckLaterRound(t *testing.T) {
	done := []plan.Outcome{{Step: plan.Step{ID: "s1", Tool: "calc", Server: "math", Arguments: json.RawMessage(`{"n": 1}`)}, Value: json.RawMessage(`{"x":1}`)}}
	_, got := problemsOf(t, `{"steps":[{"id":"s2","tool":"calc","arguments":{"n":"$s1.x"},"after":["s1"]},{"id":"s1","tool":"calc","arguments":{"n":1}}]}`, done...)
	if len(got) != 0 {
		t.Errorf("got %q, want no problems", got)
	}
	p, got := problemsOf(t, `{"steps":[{"id":"s1","tool":"calc","arguments":{"n":"$s1.x"}},{"id":"s2","tool":"calc","after":["s1"],"arguments":{"n":3}}]}`, done...)
	if want := `s1 cycle: the step waits for itself
s1 duplicate_id: id "s1" is used by a step that has run with another tool or other arguments`; strings.Join(got, "\n") != want {
		t.Errorf("an id that may mean either step: got %q for %s, want %s", got, brief(p), want)
	}
}

// A model that counts from s1 again means new steps, unless they make the call that has run.
func TestCheckLaterRound_Renumbers(t *testing.T) {
	done := []plan.Outcome{
		{Step: plan.Step{ID: "s1", Tool: "calc", Server: "math", Arguments: json.RawMessage(`{"n":1}`)}, Value: json.RawMessage(`{"x":1}`)},
		{Step: plan.Step{ID: "s2", Tool: "calc", Server: "math", Arguments: json.RawMessage(`{"n":2}`)}, Value: json.RawMessage(`{"x":2}`)},
	}
	for text, want := range map[string]string{
		`{"steps":[{"id":"s1","tool":"calc","arguments":{"n":"$s1.x"}},{"id":"s2","tool":"math.calc","arguments":{"n":4}}]}`:     `s3=math/calc{"n":"$s1.x"} s4=math/calc{"n":4}`,
		`{"steps":[{"id":"s1","tool":"calc","arguments":{"n":1}},{"id":"s3","tool":"calc","arguments":{"n":"$s1.x"}}]}`:          `s1=math/calc{"n":1} s3=math/calc{"n":"$s1.x"}`,
		`{"steps":[{"id":"s3","tool":"calc","arguments":{"n":3}},{"id":"s1","tool":"calc","after":["s1"],"arguments":{"n":5}}]}`: `s3=math/calc{"n":3} s4=math/calc{"n":5}<s1`,
	} {
		p, got := problemsOf(t, text, done...)
		if len(got) != 0 || brief(p) != want {
			t.Errorf("%s: got %s with problems %q, want %s", text, brief(p), got, want)
		}
	}
}

// A thousand steps in one ring.
func TestCheckLargeCycle(t *testing.T) {
	var steps []string
	for i := range plan.MaxSteps {
		steps = append(steps, fmt.Sprintf(`{"id":"x%d","tool":"calc","after":["x%d"]}`, i, (i+1)%plan.MaxSteps))
	}
	_, got := problemsOf(t, "["+strings.Join(steps, ",")+"]")
	if len(got) != plan.MaxSteps || !strings.HasSuffix(got[0], "990 more") {
		t.Errorf("got %d problems, first %.200q, want %d with a bounded message", len(got), got, plan.MaxSteps)
	}
}
