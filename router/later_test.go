package router_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/router"
)

// Later rounds may look again and may retry what never reached its server. A write is not done twice, unless it differs.
func TestRepeats(t *testing.T) {
	step := func(id, tool, arguments string) string {
		return `{"id":"` + id + `","tool":"` + tool + `","arguments":` + arguments + `}`
	}
	more := func(s string) string { return `{"steps":[` + s + `],"more":true}` }
	for name, row := range map[string]struct {
		first, second, want string
	}{
		"a read again":               {step("a", "echo", `{"v":1}`), step("b", "echo", `{"v":1}`), `a=echo{"v":1}; b=echo{"v":1}`},
		"the plan again":             {step("a", "echo", `{"v":1}`), step("a", "echo", `{"v":1}`) + "," + step("b", "echo", `{"w":"$a.v"}`), `a=echo{"v":1}; b=echo{"w":1}`},
		"the same write again":       {step("a", "note", `{"v":1}`), step("b", "note", `{"v":1}`), `a=note{"v":1}`},
		"a write in other words":     {step("a", "note", `{"text":"Buy some milk"}`), step("b", "note", `{"text":"buy some milk!"}`), `a=note{"text":"Buy some milk"}; b=note{"text":"buy some milk!"} needs_approval`},
		"half of it differs":         {step("a", "note", `{"to":"ann","text":"x"}`), step("b", "note", `{"to":"ann","text":"y"}`), `a=note{"to":"ann","text":"x"}; b=note{"to":"ann","text":"y"} needs_approval`},
		"another write":              {step("a", "note", `{"id":4}`), step("b", "note", `{"id":47}`), `a=note{"id":4}; b=note{"id":47}`},
		"a write that failed before": {step("a", "note", `{"badly":true}`), step("b", "note", `{"badly":true,"x":1}`), `a=note{"badly":true} tool_error; b=note{"badly":true,"x":1}`},
	} {
		k := newKit(t, unconfirmed, more(row.first), `{"steps":[`+row.second+`]}`)
		if got := brief(k.query(router.Query{MaxRounds: 2})); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

// A call that began early and is not in the final plan is in the record all the same, and counts for nothing else.
func TestDroppedCallsAreRecorded(t *testing.T) {
	k := newKit(t, nil, `[]`)
	k.model.Reset()
	k.model.When(func(r llmtest.Request) bool {
		if !llmtest.Structured(r) {
			return false
		}
		if strings.Contains(r.Text, "cannot be used as it is") {
			for range 3000 { // until the early call was made
				if len(k.called()) > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		return true
	}, llmtest.Reply{Text: `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}},{"id":"b","tool":"nope","arguments":{}}]}`, Chunk: 50},
		llmtest.Reply{Text: `{"steps":[{"id":"a","tool":"get_x","arguments":{"v":2}}]}`})
	k.model.Answer(llmtest.Reply{Text: "All well."})
	r := k.query(router.Query{})
	if got, want := brief(r), `a=get_x{"v":2}; a-early-1=echo{"v":1}`; got != want || len(r.Plan.Steps) != 1 || r.Answer.Degraded || r.Called() != 2 {
		t.Errorf("got %s, %d planned and %d called, want %s, one and two", got, len(r.Plan.Steps), r.Called(), want)
	}
	if want := "echo was called as step a while the plan was being written"; !strings.Contains(strings.Join(r.Warnings, "\n"), want) {
		t.Errorf("got warnings %q, want %q", r.Warnings, want)
	}
}

// A query holds so many bytes of results and errors and no more.
func TestQueryBytes(t *testing.T) {
	k := newKit(t, func(o *router.Options, _ *downstream.Options) {
		o.Limits.QueryBytes, o.Execution.ConfirmWrites = 15_000, never
	})
	for plan, want := range map[string]string{
		`[{"tool":"long"},{"tool":"long","arguments":{"x":1}},{"tool":"echo"}]`:                     `s1=long{}; s2=long{"x":1} too_large; s3=echo{}`,
		`[{"tool":"breaks"},{"tool":"breaks","arguments":{"x":"` + strings.Repeat("y", 90) + `"}}]`: `s1=breaks{} tool_error; s2=breaks{"x":"` + strings.Repeat("y", 90) + `"} too_large`,
	} {
		r := k.query(router.Query{Plan: json.RawMessage(plan)})
		if got := brief(r); got != want || !strings.Contains(r.Outcomes[1].Err.Message, "limits.query_bytes") {
			t.Errorf("got %s, %+v, want %s", got, r.Outcomes[1].Err, want)
		}
	}
}
