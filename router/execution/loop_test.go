package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/execution"
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
func uneven(ctx context.Context, tool string, arguments json.RawMessage, report execution.ProgressFunc) (string, error) {
	var a struct{ N int }
	if _ = json.Unmarshal(arguments, &a); tool == "uneven" && a.N%2 == 1 {
		return "", fmt.Errorf("%d is odd", a.N)
	}
	return echo(ctx, tool, arguments, report)
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
			`e=[{"n":2}] [0 skipped, 1 {"n":2}, 2 skipped]`},
		{"the loop is not wanted", `{"id":"e","tool":"fail","each":"$l.items","when":"len(l.items) > 3"},{"id":"f","tool":"x","arguments":{"all":"$e"}}`, `e skipped; f skipped`},
		{"skipped", `{"id":"a","tool":"fail","when":"l.items[0].n > 1"},{"id":"b","tool":"x","after":["a"]},{"id":"c","tool":"x","arguments":{"v":"$b"}},{"id":"d","tool":"x","when":"l.items[0].n == 1"}`,
			`a skipped; b skipped; c skipped; d={}`},
		{"pick", `{"id":"a","tool":"x","arguments":{"v":[3,1,2]},"pick":"sort(value.v)"},{"id":"b","tool":"x","arguments":{"least":"$a.0"}}`, `a=[1,2,3]; b={"least":1}`},
		{"the expression needs the step", `{"id":"b","tool":"x","when":"a.v == 1"},{"id":"a","tool":"x","arguments":{"v":1}}`, `b={}; a={"v":1}`},
		{"an element hides a step with a path", `{"id":"item.n","tool":"x","arguments":{"v":99}},{"id":"e","tool":"x","each":"$l.odd","arguments":{"n":"$item.n"}}`,
			`item.n={"v":99}; e=[{"n":1},{"n":3}] [0 {"n":1}, 1 {"n":3}]`},
		{"an element hides a step", `{"id":"item","tool":"fail"},{"id":"e","tool":"x","each":"$l.odd","arguments":{"n":"$item.n"}}`,
			`item!tool_error; e=[{"n":1},{"n":3}] [0 {"n":1}, 1 {"n":3}]`},
		{"a value without a call", `{"id":"c","pick":"sum(l.items, .n)"},{"id":"d","tool":"","arguments":{},"pick":"c * 2"},{"id":"x","tool":"x","arguments":{"v":"$d"}}`, `c=7; d=14; x={"v":14}`},
		{"values without calls", `{"id":"c","each":"$l.items","when":"item.n != 2","pick":"{name: item.name, at: index}"},{"id":"x","tool":"x","arguments":{"v":"$c.1.at"}}`,
			`c=[{"at":0,"name":"a"},{"at":2,"name":"c"}] [0 , 1 skipped, 2 ]; x={"v":2}`},
		{"a value that is not wanted", `{"id":"c","when":"len(l.items) > 5","pick":"1"},{"id":"x","tool":"x","after":["c"]}`, `c skipped; x skipped`},
		{"a value that cannot be computed", `{"id":"c","pick":"l.nothing.deep"},{"id":"d","pick":"c"}`, `c!invalid_arguments; d!dependency_failed`},
		{"some values that cannot be computed", `{"id":"c","each":"[1, 0]","pick":"8 % item"}`, `c=[0,null] [0 , 1!invalid_arguments]`},
		{"a value of what fails", `{"id":"b","tool":"fail"},{"id":"c","pick":"b.x"}`, `b!tool_error; c!dependency_failed`},
		{"no list", `{"id":"e","tool":"x","each":"$l.items.0"}`, `e!invalid_arguments`},
		{"no such list", `{"id":"e","tool":"x","each":"$l.nothing"}`, `e!missing_reference`},
		{"a list by an expression", `{"id":"e","tool":"x","each":"map(filter($l.items, .n > 1), .name)","arguments":{"n":"$item","at":"$index"}}`,
			`e=[{"n":"b","at":0},{"n":"c","at":1}] [0 {"n":"b","at":0}, 1 {"n":"c","at":1}]`},
		{"a list of lists", `{"id":"e","tool":"x","each":"flatten([l.odd, map(l.items, [.n])])","arguments":{"v":"$item"}}`,
			`e=[{"v":{"n":1}},{"v":{"n":3}},{"v":1},{"v":2},{"v":4}] [0 {"v":{"n":1}}, 1 {"v":{"n":3}}, 2 {"v":1}, 3 {"v":2}, 4 {"v":4}]`},
		{"a list without a step", `{"id":"e","tool":"x","each":[1,2],"arguments":{"v":"$item"}}`, `e=[{"v":1},{"v":2}] [0 {"v":1}, 1 {"v":2}]`},
		{"the list needs the step", `{"id":"e","tool":"x","each":"keys(b)","arguments":{"v":"$item"}},{"id":"b","tool":"x","arguments":{"k":1}}`, `e=[{"v":"k"}] [0 {"v":"k"}]; b={"k":1}`},
		{"a list that is none", `{"id":"e","tool":"x","each":"l.items[0]"}`, `e!invalid_arguments`},
		{"a list that cannot be computed", `{"id":"e","tool":"x","each":"map(l.nothing, .x)"}`, `e!invalid_arguments`},
		{"a list that takes too long", `{"id":"e","tool":"x","each":"map(1..1000000, l.items)"}`, `e!invalid_arguments`},
		{"a list that is too long", `{"id":"e","tool":"x","each":"1..1001"}`, `e!too_large`},
		{"a list of a step that fails", `{"id":"b","tool":"fail"},{"id":"e","tool":"x","each":"map(b, .x)"}`, `b!tool_error; e!dependency_failed`},
		{"a list of a step that is skipped", `{"id":"b","tool":"x","when":"false"},{"id":"e","tool":"x","each":"map(b, .x)"}`, `b skipped; e skipped`},
		{"what is skipped leaves the list of the next loop", `{"id":"e","tool":"x","each":"$l.items","when":"item.n != 2","arguments":{"n":"$item.n"}},{"id":"f","tool":"x","each":"$e","arguments":{"v":"$item.n"}}`,
			`e=[{"n":1},{"n":4}] [0 {"n":1}, 1 skipped, 2 {"n":4}]; f=[{"v":1},{"v":4}] [0 {"v":1}, 1 {"v":4}]`},
		{"all skipped", `{"id":"e","tool":"x","each":"$l.items","when":"item.n > 9"},{"id":"f","tool":"x","each":"$e"}`, `e=[] [0 skipped, 1 skipped, 2 skipped]; f=[]`},
		{"large numbers of a reference", `{"id":"b","tool":"x","arguments":{"n":[9007199254740993,1.10]}},{"id":"e","tool":"x","each":"$b.n","arguments":{"v":"$item"}}`,
			`b={"n":[9007199254740993,1.10]}; e=[{"v":9007199254740993},{"v":1.10}] [0 {"v":9007199254740993}, 1 {"v":1.10}]`},
		{"no expression", `{"id":"e","tool":"x","each":"the items"}`, `e!invalid_arguments`},
		{"not a condition", `{"id":"a","tool":"x","when":"l.items"}`, `a!invalid_arguments`},
		{"condition fails", `{"id":"a","tool":"x","when":"l.nothing.deep > 1"}`, `a!invalid_arguments`},
		{"condition fails for an element", `{"id":"a","tool":"x","each":"$l.items","when":"item.n.deep > 1"}`, `a!invalid_arguments [0!invalid_arguments, 1!invalid_arguments, 2!invalid_arguments]`},
		{"pick fails", `{"id":"a","tool":"x","pick":"value.nothing.deep"},{"id":"b","tool":"x","after":["a"]}`, `a!invalid_arguments; b!dependency_failed`},
		{"missing in an element", `{"id":"a","tool":"x","each":"$l.items","arguments":{"v":"$item.size"}}`, `a!missing_reference [0!missing_reference, 1!missing_reference, 2!missing_reference]`},
		{"the list fails", `{"id":"b","tool":"fail"},{"id":"e","tool":"x","each":"$b"}`, `b!tool_error; e!dependency_failed`},
	}
	for _, test := range tests {
		for _, sequential := range []bool{false, true} {
			p := planOf(t, `{"steps":[`+list+`,`+test.steps+`]}`)
			p.Sequential = sequential
			got := calls(serve(uneven).run(t.Context(), p, runs{}))
			if _, got, _ = strings.Cut(got, "; "); got != test.want {
				t.Errorf("%s (sequential %t):\ngot  %s\nwant %s", test.name, sequential, got, test.want)
			}
		}
	}
}

// A step that computes is decided by nobody, counts no call, and has no part in the progress.
func TestComputing(t *testing.T) {
	p := planOf(t, `{"steps":[{"id":"c","pick":"1..3"},{"id":"d","each":"$c","pick":"item * 2"},{"id":"x","tool":"x","each":"$d"}]}`)
	var reports []float64
	f := serve(func(ctx context.Context, tool string, a json.RawMessage, report execution.ProgressFunc) (string, error) {
		report(0.5, "")
		return echo(ctx, tool, a, report)
	})
	decided := 0
	out := f.run(t.Context(), p, runs{parallel: 1, request: execution.Request{Calls: execution.NewBudget(3)}, work: execution.Work{
		Decide: func(_ context.Context, s plan.Step, _ plan.Tool, calls []json.RawMessage) ([]execution.Decision, *plan.Error) {
			if decided += len(calls); s.ID != "x" {
				t.Errorf("asked for a decision on %s, want none", s.ID)
			}
			return make([]execution.Decision, len(calls)), nil
		},
		Progress: func(fraction float64, _ string) { reports = append(reports, math.Round(fraction*1000)/1000) },
	}})
	if got, want := calls(out), `c=[1,2,3]; d=[2,4,6] [0 , 1 , 2 ]; x=[{},{},{}] [0 {}, 1 {}, 2 {}]`; got != want || decided != 3 || out[0].Attempts+out[1].Attempts > 0 {
		t.Errorf("got %s after %d decisions, want %s after 3", got, decided, want)
	}
	if want := []float64{0.167, 0.5, 0.833}; !slices.Equal(reports, want) {
		t.Errorf("got the progress %v, want %v", reports, want)
	}
	p = planOf(t, `{"steps":[{"id":"c","pick":"1"},{"id":"d","each":"1..3","pick":"item"}]}`)
	out = f.run(t.Context(), p, runs{parallel: 1, request: execution.Request{Results: execution.NewBudget(2)}})
	if got, want := calls(out), `c=1; d=[1,null,null] [0 , 1!too_large, 2!too_large]`; got != want {
		t.Errorf("got %s, want %s: values within the bytes of a query", got, want)
	}
}

// What an expression says when it fails has no credentials of the values that it reads.
func TestComputing_Secrets(t *testing.T) {
	p := planOf(t, `{"steps":[{"id":"l","tool":"x","arguments":{"v":"password=hunter2hunter2"}},{"id":"c","pick":"date(l.v)"},{"id":"d","each":"[1, 2]","pick":"item > 1 ? 1 : date(l.v)"},{"id":"e","tool":"x","when":"date(l.v)"}]}`)
	for _, o := range serve(echo).run(t.Context(), p, runs{})[1:] {
		for _, c := range append(o.Calls(), o) {
			if c.Err != nil && (strings.Contains(c.Err.Message, "hunter2") || !strings.Contains(c.Err.Message, "[redacted]")) {
				t.Errorf("%s: got the error %q, want it without the password", o.Step.ID, c.Err.Message)
			}
		}
		if _, partly := o.PartialFailure(); o.OK() && !partly {
			t.Errorf("%s: got no failure", o.Step.ID)
		}
	}
}

func TestLoopBounds(t *testing.T) {
	items := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
	for n, want := range map[int]bool{plan.MaxElements: true, plan.MaxElements + 1: false} {
		made := 0
		p := planOf(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":`+items(n)+`}},{"id":"e","tool":"y","each":"$l.items"}]}`)
		out := serve(func(ctx context.Context, tool string, a json.RawMessage, f execution.ProgressFunc) (string, error) {
			if tool == "y" {
				made++
			}
			return echo(ctx, tool, a, f)
		}).run(t.Context(), p, runs{parallel: 1})[1]
		if out.OK() != want || want && made != n || !want && (made != 0 || out.Err.Reason != reason.TooLarge) {
			t.Errorf("%d elements: got %d calls and %v, want all calls or none", n, made, out.Err)
		}
	}
}

// A loop is decided on once, with the arguments of each call, and before any call. A refusal is the failure of the loop,
// whatever else is wrong with some elements. An element whose call is denied fails alone.
func TestLoopIsDecidedOnce(t *testing.T) {
	const steps = `{"steps":[{"id":"l","tool":"x","arguments":{"items":[{"n":1},{"n":2},{"n":3},{},{"n":5}]}},{"id":"e","tool":"w","each":"$l.items","when":"item.n != 2","arguments":{"n":"$item.n"}}]}`
	for _, refused := range []*plan.Error{nil, {Reason: reason.Declined, Message: "no"}} {
		var mu sync.Mutex
		var asked []string
		out := serve(func(ctx context.Context, tool string, a json.RawMessage, f execution.ProgressFunc) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if tool == "w" && (asked == nil || refused != nil) {
				t.Errorf("got a call with %s, want none before consent", a)
			}
			return echo(ctx, tool, a, f)
		}).run(t.Context(), planOf(t, steps), runs{work: execution.Work{
			Decide: func(
				_ context.Context, _ plan.Step, tool plan.Tool, calls []json.RawMessage,
			) ([]execution.Decision, *plan.Error) {
				decisions := make([]execution.Decision, len(calls))
				if tool.Name == "w" {
					asked = append(asked, fmt.Sprintf("%s", calls))
					decisions[1].Err = &plan.Error{Reason: reason.Forbidden}
					return decisions, refused
				}
				return decisions, nil
			}}})
		want := `e=[{"n":1},null,null,{"n":5}] [0 {"n":1}, 1 skipped, 2!forbidden, 3!missing_reference, 4 {"n":5}]`
		if refused != nil {
			want = `e!declined [0!declined, 1 skipped, 2!forbidden, 3!missing_reference, 4!declined]`
		}
		if got := calls(out[1:]); got != want || len(asked) != 1 || asked[0] != `[{"n":1} {"n":3} {"n":5}]` {
			t.Errorf("refused %v: got %s after asking %q, want %s after one question", refused, got, asked, want)
		}
	}
}

// Conditions of many elements are not computed for a query that is over.
func TestLoopEndsWithItsQuery(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	items := "[" + strings.Repeat("0,", 999) + "0]"
	p := planOf(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":`+items+`}},{"id":"e","tool":"x","each":"$l.items","when":"count(1..400000, true) > 0 and item == 0"}]}`)
	start := time.Now()
	out := serve(echo).run(ctx, p, runs{})[1]
	if took := time.Since(start); took > 30*time.Second || out.OK() || out.Err.Reason != reason.Timeout || out.Attempts > 0 {
		t.Errorf("got %+v and %d calls after %v, want the loop to fail soon", out.Err, out.Attempts, took)
	}
}

// The results and the values that Pick makes are limited in total, and so are the calls.
func TestBudgets(t *testing.T) {
	const pick = `{"steps":[{"id":"a","tool":"x","pick":"repeat(\"x\", 1000)"},{"id":"b","tool":"x","after":["a"],"pick":"repeat(\"x\", 1000)"}]}`
	const loop = `{"steps":[{"id":"a","tool":"x","arguments":{"l":[1,2,3]}},{"id":"b","tool":"x","each":"$a.l"}]}`
	for text, budget := range map[string]execution.Request{
		pick: {Results: execution.NewBudget(1500)}, loop: {Calls: execution.NewBudget(3)},
	} {
		out := serve(echo).run(t.Context(), planOf(t, text), runs{request: budget})
		if !out[0].OK() || out[1].OK() || out[1].Err.Reason != reason.TooLarge {
			t.Errorf("%s: got %+v and %+v, want the second step to be too large", text, out[0].Err, out[1].Err)
		}
	}
}

// Elements start as soon as there is a free slot. Calls that were made are reported when time is up.
func TestLoopTime(t *testing.T) {
	wait := serve(func(ctx context.Context, tool string, a json.RawMessage, f execution.ProgressFunc) (string, error) {
		var wait struct{ MS int }
		if _ = json.Unmarshal(a, &wait); tool == "wait" {
			select {
			case <-time.After(time.Duration(wait.MS) * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return echo(ctx, tool, a, f)
	})
	synctest.Test(t, func(t *testing.T) {
		const n, parallel = 1000, 7
		items := make([]string, n)
		total := time.Duration(0)
		for i := range items {
			d := time.Duration(1+i*7%13) * time.Millisecond
			total += d
			items[i] = fmt.Sprint(d.Milliseconds())
		}
		p := planOf(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[`+strings.Join(items, ",")+`]}},{"id":"e","tool":"wait","each":"$l.items","arguments":{"ms":"$item"}}]}`)
		start := time.Now()
		out := wait.run(t.Context(), p, runs{parallel: parallel})
		ideal := total / parallel
		if took := time.Since(start); !out[1].OK() || float64(took) > 1.03*float64(ideal) {
			t.Errorf("got %v, want at most 3 %% more than %v", took, ideal)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
		defer cancel()
		p = planOf(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[1,2,3,4]}},{"id":"e","tool":"wait","each":"$l.items","arguments":{"ms":10}}]}`)
		out = wait.run(ctx, p, runs{parallel: 1})
		if got, want := calls(out[1:]), `e=[{"ms":10},{"ms":10},null,null] [0 {"ms":10}, 1 {"ms":10}, 2!timeout, 3!timeout]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestLoopProgress(t *testing.T) {
	var got []float64
	serve(func(ctx context.Context, tool string, a json.RawMessage, report execution.ProgressFunc) (string, error) {
		report(0.5, "")
		return echo(ctx, tool, a, report)
	}).run(t.Context(), planOf(t, `{"steps":[{"id":"l","tool":"x","arguments":{"items":[1,2,3,4]}},{"id":"e","tool":"x","each":"$l.items"}]}`), runs{
		parallel: 1, work: execution.Work{Progress: func(f float64, _ string) { got = append(got, f) }},
	})
	want := []float64{0.25, 0.5625, 0.6875, 0.8125, 0.9375}
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		t.Errorf("got %v, want %v", got, want)
	}
}
