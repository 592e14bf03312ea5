package dataflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

// calls writes the outcomes of the calls of each step.
func calls(outcomes []plan.Outcome) string {
	var all []string
	for _, o := range outcomes {
		text := o.Step.ID
		switch {
		case o.Skipped:
			text += " skipped"
		case o.Err != nil:
			text += "!" + o.Err.Reason
		default:
			text += "=" + string(o.Value)
		}
		var each []string
		for _, c := range o.Elements {
			switch {
			case c.Skipped:
				each = append(each, fmt.Sprint(c.Index, " skipped"))
			case c.Err != nil:
				each = append(each, fmt.Sprint(c.Index, "!", c.Err.Reason))
			default:
				each = append(each, fmt.Sprint(c.Index, " ", string(c.Sent)))
			}
		}
		if each != nil {
			text += " [" + strings.Join(each, ", ") + "]"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// uneven fails for odd numbers.
func uneven(ctx context.Context, s plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome {
	var a struct{ N int }
	if json.Unmarshal(arguments, &a); s.Tool == "uneven" && a.N%2 == 1 {
		return plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: reason.ToolError, Message: fmt.Sprint(a.N, " is odd")}}
	}
	return echo(ctx, s, arguments, report)
}

func TestLoops(t *testing.T) {
	const list = `{"id":"l","tool":"x","arguments":{"items":[{"n":1,"name":"a"},{"n":2,"name":"b"},{"n":4,"name":"c"}],"none":[],"odd":[{"n":1},{"n":3}]}}`
	tests := []struct{ name, steps, want string }{
		{"items", `{"id":"e","tool":"x","each":"$l.items","arguments":{"n":"$item.n","at":"$index","text":"${item.name} of ${l.items.0.n}"}}`,
			`e=[{"n":1,"at":0,"text":"a of 1"},{"n":2,"at":1,"text":"b of 1"},{"n":4,"at":2,"text":"c of 1"}] ` +
				`[0 {"n":1,"at":0,"text":"a of 1"}, 1 {"n":2,"at":1,"text":"b of 1"}, 2 {"n":4,"at":2,"text":"c of 1"}]`},
		{"a loop over a loop", `{"id":"e","tool":"x","each":"$l.items","pick":"value.n * 10","arguments":{"n":"$item.n"}},{"id":"f","tool":"x","each":"$e","arguments":{"v":"$item"}}`,
			`e=[10,20,40] [0 {"n":1}, 1 {"n":2}, 2 {"n":4}]; f=[{"v":10},{"v":20},{"v":40}] [0 {"v":10}, 1 {"v":20}, 2 {"v":40}]`},
		{"one fails", `{"id":"e","tool":"uneven","each":"$l.items","arguments":{"n":"$item.n"}},{"id":"f","tool":"x","arguments":{"all":"$e"}}`,
			`e=[null,{"n":2},{"n":4}] [0!tool_error, 1 {"n":2}, 2 {"n":4}]; f={"all":[null,{"n":2},{"n":4}]}`},
		{"all fail", `{"id":"e","tool":"uneven","each":"$l.odd","arguments":{"n":"$item.n"}},{"id":"f","tool":"x","arguments":{"all":"$e"}}`,
			`e!tool_error [0!tool_error, 1!tool_error]; f!dependency_failed`},
		{"no elements", `{"id":"e","tool":"fail","each":"$l.none"},{"id":"f","tool":"x","arguments":{"all":"$e"}}`, `e=[]; f={"all":[]}`},
		{"some are not wanted", `{"id":"e","tool":"x","each":"$l.items","when":"item.n > 1 and index < 2","arguments":{"n":"$item.n"}}`,
			`e=[null,{"n":2},null] [0 skipped, 1 {"n":2}, 2 skipped]`},
		{"the loop is not wanted", `{"id":"e","tool":"fail","each":"$l.items","when":"len(l.items) > 3"},{"id":"f","tool":"x","arguments":{"all":"$e"}}`, `e skipped; f skipped`},
		{"skipped", `{"id":"a","tool":"fail","when":"l.items[0].n > 1"},{"id":"b","tool":"x","after":["a"]},{"id":"c","tool":"x","arguments":{"v":"$b"}},{"id":"d","tool":"x","when":"l.items[0].n == 1"}`,
			`a skipped; b skipped; c skipped; d={}`},
		{"pick", `{"id":"a","tool":"x","arguments":{"v":[3,1,2]},"pick":"sort(value.v)"},{"id":"b","tool":"x","arguments":{"least":"$a.0"}}`, `a=[1,2,3]; b={"least":1}`},
		{"the expression needs the step", `{"id":"b","tool":"x","when":"a.v == 1"},{"id":"a","tool":"x","arguments":{"v":1}}`, `b={}; a={"v":1}`},
		{"an element hides a step with a path", `{"id":"item.n","tool":"x","arguments":{"v":99}},{"id":"e","tool":"x","each":"$l.odd","arguments":{"n":"$item.n"}}`,
			`item.n={"v":99}; e=[{"n":1},{"n":3}] [0 {"n":1}, 1 {"n":3}]`},
		{"an element hides a step", `{"id":"item","tool":"fail"},{"id":"e","tool":"x","each":"$l.odd","arguments":{"n":"$item.n"}}`,
			`item!tool_error; e=[{"n":1},{"n":3}] [0 {"n":1}, 1 {"n":3}]`},
		{"no list", `{"id":"e","tool":"x","each":"$l.items.0"}`, `e!invalid_arguments`},
		{"no such list", `{"id":"e","tool":"x","each":"$l.nothing"}`, `e!missing_reference`},
		{"no reference", `{"id":"e","tool":"x","each":"the items"}`, `e!missing_reference`},
		{"not a condition", `{"id":"a","tool":"x","when":"l.items"}`, `a!invalid_arguments`},
		{"condition fails", `{"id":"a","tool":"x","when":"l.nothing.deep > 1"}`, `a!invalid_arguments`},
		{"condition fails for an element", `{"id":"a","tool":"x","each":"$l.items","when":"item.n.deep > 1"}`, `a!invalid_arguments [0!invalid_arguments, 1!invalid_arguments, 2!invalid_arguments]`},
		{"pick fails", `{"id":"a","tool":"x","pick":"value.nothing.deep"},{"id":"b","tool":"x","after":["a"]}`, `a!invalid_arguments; b!dependency_failed`},
		{"missing in an element", `{"id":"a","tool":"x","each":"$l.items","arguments":{"v":"$item.size"}}`, `a!missing_reference [0!missing_reference, 1!missing_reference, 2!missing_reference]`},
		{"the list fails", `{"id":"b","tool":"fail"},{"id":"e","tool":"x","each":"$b"}`, `b!tool_error; e!dependency_failed`},
	}
	for _, test := range tests {
		for _, sequential := range []bool{false, true} {
			p := parse(t, `{"steps":[`+list+`,`+test.steps+`]}`)
			p.Sequential = sequential
			got := calls(dataflow.Run(t.Context(), p, dataflow.Options{Call: uneven}))
			if _, got, _ = strings.Cut(got, "; "); got != test.want {
				t.Errorf("%s (sequential %t):\ngot  %s\nwant %s", test.name, sequential, got, test.want)
			}
		}
	}
}

func TestLoopBounds(t *testing.T) {
	items := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
	for n, want := range map[int]bool{plan.MaxElements: true, plan.MaxElements + 1: false} {
		made := 0
		p := parse(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":`+items(n)+`}},{"id":"e","tool":"y","each":"$l.items"}]}`)
		out := dataflow.Run(t.Context(), p, dataflow.Options{MaxParallel: 1, Call: func(ctx context.Context, s plan.Step, a json.RawMessage, f progress.Func) plan.Outcome {
			if s.Tool == "y" {
				made++
			}
			return echo(ctx, s, a, f)
		}})[1]
		if out.OK() != want || want && made != n || !want && (made != 0 || out.Err.Reason != reason.TooLarge) {
			t.Errorf("%d elements: got %d calls and %v, want all calls or none", n, made, out.Err)
		}
	}
}

// TestLoopIsAllowedOnce holds that consent is asked once for a loop, with what each call sends, and before any call.
func TestLoopIsAllowedOnce(t *testing.T) {
	const steps = `{"steps":[{"id":"l","tool":"x","arguments":{"items":[1,2,3]}},{"id":"e","tool":"w","each":"$l.items","when":"item != 2","arguments":{"n":"$item"}}]}`
	for _, refused := range []*plan.Error{nil, {Reason: reason.Declined, Message: "no"}} {
		var mu sync.Mutex
		var asked []string
		out := dataflow.Run(t.Context(), parse(t, steps), dataflow.Options{
			Allow: func(_ context.Context, s plan.Step, calls []json.RawMessage) *plan.Error {
				if s.Tool == "w" {
					asked = append(asked, fmt.Sprintf("%s", calls))
					return refused
				}
				return nil
			},
			Call: func(ctx context.Context, s plan.Step, a json.RawMessage, f progress.Func) plan.Outcome {
				mu.Lock()
				defer mu.Unlock()
				if s.Tool == "w" && (asked == nil || refused != nil) {
					t.Errorf("got a call with %s, want none before a yes", a)
				}
				return echo(ctx, s, a, f)
			},
		})
		want := `l={"items":[1,2,3]}; e=[{"n":1},null,{"n":3}] [0 {"n":1}, 1 skipped, 2 {"n":3}]`
		if refused != nil {
			want = `l={"items":[1,2,3]}; e!declined [0!declined, 1 skipped, 2!declined]`
		}
		if got := calls(out); got != want || len(asked) != 1 || asked[0] != `[{"n":1} {"n":3}]` {
			t.Errorf("refused %v: got %s after asking %q, want %s after one question", refused, got, asked, want)
		}
	}
}

// TestRefusalIsTheLoops holds that a no is the failure of the loop, whatever else is wrong with some elements.
func TestRefusalIsTheLoops(t *testing.T) {
	no := &plan.Error{Reason: reason.Declined, Message: "no"}
	out := dataflow.Run(t.Context(), parse(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[{"n":1},{}]}},{"id":"e","tool":"w","each":"$l.items","arguments":{"n":"$item.n"}}]}`), dataflow.Options{
		Call: echo,
		Allow: func(_ context.Context, s plan.Step, _ []json.RawMessage) *plan.Error {
			if s.Tool == "w" {
				return no
			}
			return nil
		},
	})
	if got, want := calls(out[1:]), `e!declined [0!declined, 1!missing_reference]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLoopEndsWithItsQuery holds that conditions of many elements are not computed for a query that is over.
func TestLoopEndsWithItsQuery(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	items := "[" + strings.Repeat("0,", 999) + "0]"
	p := parse(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":`+items+`}},{"id":"e","tool":"x","each":"$l.items","when":"count(1..400000, true) > 0 and item == 0"}]}`)
	start := time.Now()
	out := dataflow.Run(ctx, p, dataflow.Options{Call: echo})[1]
	if took := time.Since(start); took > 30*time.Second || out.OK() || out.Err.Reason != reason.Timeout || out.Attempts > 0 {
		t.Errorf("got %+v and %d calls after %v, want the loop to fail soon", out.Err, out.Attempts, took)
	}
}

// TestPicksAreHeld holds that values which Pick makes count as results.
func TestPicksAreHeld(t *testing.T) {
	held := 0
	out := dataflow.Run(t.Context(), parse(t, `{"steps":[{"id":"a","tool":"x","pick":"repeat(\"x\", 1000)"},{"id":"b","tool":"x","after":["a"],"pick":"repeat(\"x\", 1000)"}]}`), dataflow.Options{
		Call: echo,
		Hold: func(n int) bool { held += n; return held < 1500 },
	})
	if !out[0].OK() || out[1].OK() || out[1].Err.Reason != reason.TooLarge {
		t.Errorf("got %+v and %+v, want the second value to be too large", out[0].Err, out[1].Err)
	}
}

// TestLoopTime measures loops in virtual time: elements start as soon as there is a free place.
func TestLoopTime(t *testing.T) {
	const n, parallel = 1000, 7
	synctest.Test(t, func(t *testing.T) {
		items := make([]string, n)
		total := time.Duration(0)
		for i := range items {
			d := time.Duration(1+i*7%13) * time.Millisecond
			total += d
			items[i] = fmt.Sprint(d.Milliseconds())
		}
		p := parse(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[`+strings.Join(items, ",")+`]}},{"id":"e","tool":"wait","each":"$l.items","arguments":{"ms":"$item"}}]}`)
		start := time.Now()
		out := dataflow.Run(t.Context(), p, dataflow.Options{MaxParallel: parallel, Call: func(ctx context.Context, s plan.Step, a json.RawMessage, f progress.Func) plan.Outcome {
			var wait struct{ MS int }
			if json.Unmarshal(a, &wait); s.Tool == "wait" {
				time.Sleep(time.Duration(wait.MS) * time.Millisecond)
			}
			return echo(ctx, s, a, f)
		}})
		ideal := total / parallel
		if took := time.Since(start); !out[1].OK() || float64(took) > 1.03*float64(ideal) {
			t.Errorf("got %v, want at most 3 %% more than %v", took, ideal)
		}
	})
}

// TestLoopIsCut holds that calls which were made are told when time is up.
func TestLoopIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
		defer cancel()
		p := parse(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[1,2,3,4]}},{"id":"e","tool":"wait","each":"$l.items"}]}`)
		out := dataflow.Run(ctx, p, dataflow.Options{MaxParallel: 1, Call: func(ctx context.Context, s plan.Step, a json.RawMessage, f progress.Func) plan.Outcome {
			if s.Tool == "wait" {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: reason.Timeout, Message: "late"}}
				}
			}
			return echo(ctx, s, a, f)
		}})
		if got, want := calls(out[1:]), `e=[{},{},null,null] [0 {}, 1 {}, 2!timeout, 3!timeout]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestLoopProgress(t *testing.T) {
	var got []float64
	p := parse(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[1,2,3,4]}},{"id":"e","tool":"x","each":"$l.items"}]}`)
	dataflow.Run(t.Context(), p, dataflow.Options{
		MaxParallel: 1,
		Progress:    func(f float64, _ string) { got = append(got, f) },
		Call: func(ctx context.Context, s plan.Step, a json.RawMessage, report progress.Func) plan.Outcome {
			report(0.5, "")
			return echo(ctx, s, a, report)
		},
	})
	want := []float64{0.25, 0.5625, 0.6875, 0.8125, 0.9375}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
