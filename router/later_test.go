package router_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/execution"
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
		"another write, half alike":  {step("a", "note", `{"to":"ann","text":"x"}`), step("b", "note", `{"to":"ann","text":"y"}`), `a=note{"to":"ann","text":"x"}; b=note{"to":"ann","text":"y"}`},
		"another write":              {step("a", "note", `{"id":4}`), step("b", "note", `{"id":47}`), `a=note{"id":4}; b=note{"id":47}`},
		"a write that failed before": {step("a", "note", `{"badly":true}`), step("b", "note", `{"badly":true,"x":1}`), `a=note{"badly":true} tool_error; b=note{"badly":true,"x":1}`},
	} {
		k := newKit(t, unconfirmed, more(row.first), `{"steps":[`+row.second+`]}`)
		if got := brief(k.query(router.Query{MaxRounds: 2})); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

// In a round for what failed, a write that is nearly one of an earlier round is not made; nor is any that is nearly one
// whose outcome is unknown.
func TestRepeats_InOtherWords(t *testing.T) {
	const failing = `,{"id":"f","tool":"fails","arguments":{}}`
	for name, row := range map[string]struct {
		first, second, want string
		fault               *downstream.Failure // of the first write
	}{
		"a replan": {`{"steps":[{"id":"a","tool":"note","arguments":{"text":"Buy some milk"}}` + failing + `]}`,
			`{"steps":[{"id":"b","tool":"note","arguments":{"text":"buy some milk!"}}]}`,
			`a=note{"text":"Buy some milk"}; f=fails{} tool_error; b=note{"text":"buy some milk!"} needs_approval`, nil},
		"half of it differs": {`{"steps":[{"id":"a","tool":"note","arguments":{"to":"ann","text":"x"}}` + failing + `]}`,
			`{"steps":[{"id":"b","tool":"note","arguments":{"to":"ann","text":"y"}}]}`,
			`a=note{"to":"ann","text":"x"}; f=fails{} tool_error; b=note{"to":"ann","text":"y"} needs_approval`, nil},
		"an unknown outcome": {`{"steps":[{"id":"a","tool":"note","arguments":{"text":"Buy some milk"}}],"more":true}`,
			`{"steps":[{"id":"b","tool":"note","arguments":{"text":"buy some milk!"}}]}`,
			`a=note{"text":"Buy some milk"} outcome_unknown; b=note{"text":"buy some milk!"} needs_approval`,
			&downstream.Failure{Server: "peer", Reason: reason.OutcomeUnknown, MaybeDelivered: true}},
	} {
		k := newKit(t, func(o *router.Options, d *downstream.Options) {
			unconfirmed(o, d)
			if row.fault != nil {
				o.Calls = failsOnce("note", row.fault)
			}
		}, row.first, row.second)
		if got := brief(k.query(router.Query{MaxRounds: 2})); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

// failsOnce lets the first call of a tool fail after one attempt.
func failsOnce(tool string, failure *downstream.Failure) func(execution.ToolCaller) execution.ToolCaller {
	return func(next execution.ToolCaller) execution.ToolCaller {
		return &failing{ToolCaller: next, tool: tool, failure: failure}
	}
}

type failing struct {
	execution.ToolCaller
	tool    string
	failure *downstream.Failure
	once    atomic.Bool
}

func (f *failing) Call(ctx context.Context, r *downstream.Request) (link.Reply, error) {
	if r.Tool == f.tool && f.once.CompareAndSwap(false, true) {
		*r.Attempts++
		return link.Reply{}, f.failure
	}
	return f.ToolCaller.Call(ctx, r)
}

// A write that never reached its server may be made in a later round, once; one that may have been done may not.
func TestRepeats_AfterAFailure(t *testing.T) {
	const loop = `"tool":"note","each":"$l.l","arguments":{"v":"$item"}` // is no repeat of the step, but makes its call
	for reason, want := range map[string]string{
		reason.Unavailable:    `a=note{"v":1} unavailable; b=note{"v":1}; c=note{"v":1} needs_approval`,
		reason.OutcomeUnknown: `a=note{"v":1} outcome_unknown; b=note{"v":1} needs_approval; c=note{"v":"$item"} dependency_failed`,
	} {
		k := newKit(t, func(o *router.Options, d *downstream.Options) {
			unconfirmed(o, d)
			o.Calls = failsOnce("note", &downstream.Failure{Server: "peer", Reason: reason})
		}, `{"steps":[{"id":"l","tool":"echo","arguments":{"l":[1]}},{"id":"a","tool":"note","arguments":{"v":1}}],"more":true}`,
			`{"steps":[{"id":"b",`+loop+`},{"id":"c",`+loop+`,"after":["b"]}]}`)
		got, _ := strings.CutPrefix(brief(k.query(router.Query{MaxRounds: 2})), `l=echo{"l":[1]}; `)
		if got != want {
			t.Errorf("%s: got %s, want %s", reason, got, want)
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
	got := strings.TrimSuffix(brief(r), " cancelled") // the early call may be under way when its plan is dropped
	if want := `a=get_x{"v":2}; a-early-1=echo{"v":1}`; got != want || len(r.Plan.Steps) != 1 || r.Answer.Degraded || r.Called() != 2 {
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
