package execution_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
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

// brief writes outcomes in one line.
func brief(outcomes []plan.Outcome) string {
	var all []string
	for _, o := range outcomes {
		text := o.Step.ID + ":" + string(o.Value)
		if o.Err != nil {
			text = o.Step.ID + "!" + o.Err.Reason
			if o.Value != nil {
				text += " with value " + string(o.Value)
			}
		}
		if o.Attempts > 0 && o.Sent == nil {
			text += " without arguments"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestExecute_Outcomes(t *testing.T) {
	failed := &plan.Error{Reason: reason.ToolError, Message: "x"}
	tests := []struct {
		name, plan string
		problems   []plan.Problem
		done       []plan.Outcome
		want       string
	}{
		{name: "nothing", plan: `[]`},
		{name: "order of the plan", plan: `[{"tool":"a","arguments":{"x":"$s3.y"}},{"tool":"b","after":["s1"]},{"tool":"c","arguments":{"y":[9007199254740993]}}]`,
			want: `s1:{"x":[9007199254740993]} s2:{} s3:{"y":[9007199254740993]}`},
		{name: "text", plan: `[{"tool":"a","arguments":{"x":"n ${s2.y}"}},{"tool":"c","arguments":{"y":1}}]`, want: `s1:{"x":"n 1"} s2:{"y":1}`},
		{name: "failure goes down", plan: `{"steps":[{"id":"a","tool":"fail"},{"id":"b","tool":"x","after":["a"]},{"id":"c","tool":"x","arguments":{"v":"$b.q"}},{"id":"d","tool":"x"}]}`,
			want: `a!tool_error b!dependency_failed c!dependency_failed d:{}`},
		{name: "missing path", plan: `[{"tool":"a","arguments":{"x":"$s2.y"}},{"tool":"b"}]`, want: `s1!missing_reference s2:{}`},
		{name: "after nothing", plan: `[{"tool":"a","after":["s9"]},{"tool":"b","after":["s1"]}]`, want: `s1!missing_reference s2!dependency_failed`},
		{name: "problems", plan: `[{"tool":"a"},{"tool":"b","after":["s1"]},{"tool":"c"}]`,
			problems: []plan.Problem{{Step: "s1", Error: plan.Error{Reason: reason.UnknownTool, Message: "x"}}, {Step: "s1", Error: plan.Error{Reason: reason.Cycle, Message: "y"}}},
			want:     `s1!unknown_tool s2!dependency_failed s3:{}`},
		{name: "cycle unchecked", plan: `[{"tool":"a","after":["s2"]},{"tool":"b","after":["s1"]},{"tool":"c","after":["s3"]},{"tool":"d"}]`, want: `s1!cycle s2!cycle s3!cycle s4:{}`},
		{name: "earlier rounds", plan: `{"steps":[{"id":"b","tool":"x","arguments":{"v":"$a.k"},"after":["a"]},{"id":"c","tool":"x","arguments":{"v":"$f"}},{"id":"d","tool":"x","after":["f"]},{"id":"g","tool":"fail"},{"id":"h","tool":"x","arguments":{"v":"$g"}}]}`,
			done: []plan.Outcome{
				{Step: plan.Step{ID: "a"}, Value: json.RawMessage(`{"k":7}`)}, {Step: plan.Step{ID: "f"}, Err: failed},
				{Step: plan.Step{ID: "g"}, Attempts: 1, Sent: json.RawMessage(`{}`), Value: json.RawMessage(`8`)},
			}, want: `b:{"v":7} c!dependency_failed d!dependency_failed g:8 h:{"v":8}`},
		{name: "final arguments", plan: `[{"tool":"number","arguments":{"x":"$s2"}},{"tool":"b","arguments":{"n":1}},{"tool":"c","after":["s1"]},{"tool":"number","arguments":{"x":"$s2.n"}}]`,
			want: `s1!invalid_arguments s2:{"n":1} s3!dependency_failed s4:{"x":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, limit := range []int{0, 1, 2} {
				r := runs{parallel: limit, request: execution.Request{Done: tt.done}, work: execution.Work{Problems: tt.problems}}
				if got := brief(serve(echo).run(t.Context(), planOf(t, tt.plan), r)); got != tt.want {
					t.Errorf("limit %d\n got %s\nwant %s", limit, got, tt.want)
				}
			}
		})
	}
	out := serve(echo).run(t.Context(), planOf(t, `{"steps":[{"id":"news","tool":"fail"},{"id":"b","tool":"x","after":["news"]}]}`), runs{})
	if got, want := out[1].Err.Message, "Step news, which this step needs, failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Steps of a bare array run one at a time in its order, whatever came of the one before and however many slots there
// are. Only what a step refers to goes first.
func TestSequential(t *testing.T) {
	for _, row := range []struct{ plan, events, outcomes string }{
		{`[{"tool":"1slow"},{"tool":"2"},{"tool":"3"}]`, `[+1 -1 +2 -2 +3 -3]`, `s1:{} s2:{} s3:{}`},
		{`{"tools":[{"tool":"fail"},{"tool":"2slow"},{"tool":"3"}]}`, `[+f -f +2 -2 +3 -3]`, `s1!tool_error s2:{} s3:{}`},
		{`[{"tool":"1slow","arguments":{"a":1}},{"tool":"2","arguments":{"b":"$s1.a"}},{"tool":"3"}]`, `[+1 -1 +2 -2 +3 -3]`, `s1:{"a":1} s2:{"b":1} s3:{}`},
		{`[{"tool":"fail"},{"tool":"2","arguments":{"b":"$s1"}},{"tool":"3"}]`, `[+f -f +3 -3]`, `s1!tool_error s2!dependency_failed s3:{}`},
		{`[{"tool":"1"},{"tool":"2slow","arguments":{"b":"$s4.n"}},{"tool":"3slow"},{"tool":"4","arguments":{"n":1}},{"tool":"5"}]`,
			`[+1 -1 +3 -3 +4 -4 +2 -2 +5 -5]`, `s1:{} s2:{"b":1} s3:{} s4:{"n":1} s5:{}`},
		{`{"steps":[{"tool":"1slow"},{"tool":"2"}]}`, `[+1 +2 -2 -1]`, `s1:{} s2:{}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			events := make(chan string, 20)
			outcomes := serve(func(ctx context.Context, tool string, arguments json.RawMessage, report execution.ProgressFunc) (string, error) {
				time.Sleep(time.Duration(tool[0]) * time.Millisecond)
				events <- "+" + tool[:1]
				if strings.HasSuffix(tool, "slow") {
					time.Sleep(300 * time.Millisecond)
				}
				events <- "-" + tool[:1]
				return echo(ctx, tool, arguments, report)
			}).run(t.Context(), planOf(t, row.plan), runs{parallel: 8})
			close(events)
			var got []string
			for e := range events {
				got = append(got, e)
			}
			if fmt.Sprint(got) != row.events || brief(outcomes) != row.outcomes {
				t.Errorf("%s\n got %v and %s\nwant %s and %s", row.plan, got, brief(outcomes), row.events, row.outcomes)
			}
		})
	}
}

// A layered graph with random edges, latencies in milliseconds, and its longest path. The tool of a step is its id.
func layered(r *rand.Rand, n int) (p plan.Plan, latency map[string]time.Duration, parents map[string][]string, critical time.Duration) {
	latency, parents = make(map[string]time.Duration), make(map[string][]string)
	end := make(map[string]time.Duration)
	var names []string
	width := 1 + r.IntN(5)
	for i := range n {
		id := fmt.Sprint("n", i)
		s := plan.Step{ID: id, Tool: id}
		latency[id] = time.Duration(1+r.IntN(400)) * time.Millisecond
		var refs []string
		for range r.IntN(4) {
			if i < width {
				break
			}
			parent := names[r.IntN(i-i%width)]
			if slices.Contains(parents[id], parent) {
				continue
			}
			parents[id] = append(parents[id], parent)
			switch r.IntN(3) {
			case 0:
				s.After = append(s.After, parent)
			case 1:
				refs = append(refs, fmt.Sprintf(`"k%s":"$%s.out"`, parent, parent))
			case 2:
				refs = append(refs, fmt.Sprintf(`"k%s":"value ${%s.out}"`, parent, parent))
			}
		}
		s.Arguments = json.RawMessage("{" + strings.Join(refs, ",") + "}")
		for _, parent := range parents[id] {
			end[id] = max(end[id], end[parent])
		}
		end[id] += latency[id]
		critical = max(critical, end[id])
		names = append(names, id)
		p.Steps = append(p.Steps, s)
	}
	r.Shuffle(len(p.Steps), func(i, j int) { p.Steps[i], p.Steps[j] = p.Steps[j], p.Steps[i] })
	return p, latency, parents, critical
}

// With slots for all, a plan takes as long as its longest chain, to the nanosecond; with few, no more run at once; and
// no step ever starts before those it needs are done.
func TestCriticalPath(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			p, latency, parents, critical := layered(r, 1+r.IntN(60))
			for _, limit := range []int{0, 1, 3} {
				var mu sync.Mutex
				finished := make(map[string]bool)
				running, most := 0, 0
				var sum time.Duration
				start := time.Now()
				out := serve(func(_ context.Context, tool string, arguments json.RawMessage, _ execution.ProgressFunc) (string, error) {
					mu.Lock()
					for _, parent := range parents[tool] {
						if !finished[parent] {
							t.Errorf("seed %d: %s started before %s was done", seed, tool, parent)
						}
					}
					running++
					most = max(most, running)
					sum += latency[tool]
					mu.Unlock()
					if bytes.ContainsRune(arguments, '$') {
						t.Errorf("seed %d: %s got %s", seed, tool, arguments)
					}
					time.Sleep(latency[tool])
					mu.Lock()
					running--
					finished[tool] = true
					mu.Unlock()
					return `{"out":"o"}`, nil
				}).run(t.Context(), p, runs{parallel: limit})
				wall := time.Since(start)
				for i, o := range out {
					if !o.OK() || o.Step.ID != p.Steps[i].ID || o.Duration != latency[o.Step.ID] {
						t.Errorf("seed %d: got outcome %+v for step %s", seed, o, p.Steps[i].ID)
					}
				}
				if want := map[int]time.Duration{0: critical, 1: sum, 3: wall}[limit]; wall != want {
					t.Errorf("seed %d, limit %d: took %v, want %v", seed, limit, wall, want)
				}
				if limit > 0 && most > limit {
					t.Errorf("seed %d: %d ran at once, want at most %d", seed, most, limit)
				}
			}
		})
	}
}

func TestCancellation(t *testing.T) {
	const text = `{"steps":[{"id":"a","tool":"quick"},{"id":"b","tool":"slow","after":["a"]},{"id":"c","tool":"slow","after":["a"]},{"id":"d","tool":"quick","after":["b"]},{"id":"e","tool":"slow"}]}`
	tools := serve(func(ctx context.Context, tool string, _ json.RawMessage, _ execution.ProgressFunc) (string, error) {
		d := time.Second
		if tool == "slow" {
			d = time.Hour
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return `1`, nil
	})
	tests := []struct {
		name    string
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		reason  string
		message string
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		}, "timeout", "Query timed out before this step started"},
		{"deadline with a cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("query.timeout"))
		}, "timeout", "Query timed out before this step started"},
		{"cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			timer := time.AfterFunc(time.Minute, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		}, "cancelled", "Query was cancelled before this step started"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := tt.ctx(t.Context())
			defer cancel()
			start := time.Now()
			out := tools.run(ctx, planOf(t, text), runs{parallel: 2})
			if d := time.Since(start); d != time.Minute {
				t.Errorf("%s: took %v, want %v", tt.name, d, time.Minute)
			}
			// a is done; e and b hold both slots; c waits for a slot, d for b
			if got, want := brief(out), fmt.Sprintf("a:1 b!%s c!%[1]s d!%[1]s e!%[1]s", tt.reason); got != want {
				t.Errorf("%s: got %s, want %s", tt.name, got, want)
			}
			if got := out[2].Err.Message; got != tt.message {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.message)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, want := brief(tools.run(ctx, planOf(t, text), runs{})), "a!cancelled b!cancelled c!cancelled d!cancelled e!cancelled"; got != want {
		t.Errorf("before the start: got %s, want %s", got, want)
	}
}

func TestPanicIsAFailure(t *testing.T) {
	var log bytes.Buffer
	out := serve(func(_ context.Context, tool string, _ json.RawMessage, report execution.ProgressFunc) (string, error) {
		switch tool {
		case "panic":
			panic("boom")
		case "goexit":
			runtime.Goexit()
		case "progress":
			report(0.5, "")
		}
		return `1`, nil
	}).run(t.Context(), planOf(t, `{"steps":[{"id":"a","tool":"panic"},{"id":"b","tool":"goexit"},{"id":"c","tool":"x","after":["a"]},{"id":"d","tool":"x"},{"id":"e","tool":"progress"}]}`),
		runs{log: slog.New(slog.NewTextHandler(&log, nil)), work: execution.Work{Progress: func(float64, string) { panic("x") }}})
	if got, want := brief(out), "a!internal b!internal c!dependency_failed d:1 e!internal"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "schedule_test.go") || strings.Contains(out[0].Err.Message, "boom") {
		t.Errorf("got log %s and error %q, want the panic and its stack in the log only", log.String(), out[0].Err.Message)
	}
}

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(3 * time.Second) // planning
		out := serve(func(ctx context.Context, tool string, arguments json.RawMessage, report execution.ProgressFunc) (string, error) {
			time.Sleep(time.Second)
			return echo(ctx, tool, arguments, report)
		}).run(t.Context(), planOf(t, `{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"fail","after":["a"]},{"id":"c","tool":"x","after":["b"]}]}`),
			runs{request: execution.Request{Began: began}})
		want := [][2]time.Duration{{3, 1}, {4, 1}, {5, 0}}
		for i, o := range out {
			if o.Started != want[i][0]*time.Second || o.Duration != want[i][1]*time.Second {
				t.Errorf("step %s: got %v for %v, want %vs for %vs", o.Step.ID, o.Started, o.Duration, int(want[i][0]), int(want[i][1]))
			}
		}
	})
}

func TestProgress(t *testing.T) {
	type event struct {
		fraction float64
		message  string
	}
	var got []event
	var late execution.ProgressFunc
	serve(func(_ context.Context, tool string, _ json.RawMessage, report execution.ProgressFunc) (string, error) {
		switch tool {
		case "one":
			late = report
			report(0.5, "half")
			report(0.25, "again") // a retry
			report(0.75, "")
			report(7, "beyond")
		case "two":
			late(0.9, "too late")
			report(-1, "below")
			report(0.4, "some")
		case "three":
			report(0.5, "c")
		}
		return `1`, nil
	}).run(t.Context(), planOf(t, `{"steps":[{"id":"a","tool":"one"},{"id":"b","tool":"two","after":["a"]},{"id":"c","tool":"three","after":["b"]},{"id":"d","tool":"none"}]}`),
		runs{work: execution.Work{
			Problems: []plan.Problem{{Step: "d", Error: plan.Error{Reason: "x"}}},
			Progress: func(x float64, message string) { got = append(got, event{x, message}) },
		}})
	late(1, "after the end")
	want := []event{ // d counts from the start
		{1.5 / 4, "[one] half"}, {1.5 / 4, "[one] again"}, {1.75 / 4, "[one] Working..."}, {2.0 / 4, "[one] beyond"},
		{2.0 / 4, "[two] below"}, {2.4 / 4, "[two] some"}, {3.5 / 4, "[three] c"},
	}
	if !slices.EqualFunc(got, want, func(a, b event) bool { return math.Abs(a.fraction-b.fraction) < 1e-12 && a.message == b.message }) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Many steps report at once: one call at a time, never backwards, never above 1.
func TestProgressConcurrently(t *testing.T) {
	last, inside := 0.0, false
	serve(func(_ context.Context, _ string, _ json.RawMessage, report execution.ProgressFunc) (string, error) {
		for i := range 200 {
			report(float64(i)/200, "x")
		}
		return `1`, nil
	}).run(t.Context(), planOf(t, `{"steps":[`+strings.Repeat(`{"tool":"t"},`, 39)+`{"tool":"t"}]}`), runs{work: execution.Work{
		Progress: func(x float64, _ string) {
			if inside || x < last || x > 1 {
				t.Errorf("got %v after %v, overlapping %v", x, last, inside)
			}
			inside = true
			last = x
			inside = false
		},
	}})
	if last < 0.99 {
		t.Errorf("got %v in the end, want almost 1", last)
	}
}

func TestFraction(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range []struct{ progress, total, want float64 }{
		{0, 10, 0},
		{5, 10, 0.5},
		{10, 10, 1},
		{11, 10, 1},
		{-1, 10, 0},
		{0.25, 0, 0.25}, // no total
		{3, 0, 1},
		{0.25, -4, 0.25},
		{0.25, nan, 0.25},
		{nan, 10, 0},
		{inf, 10, 1},
		{inf, inf, 0},
		{5, inf, 0},
	} {
		if got := execution.Fraction(row.progress, row.total); got != row.want {
			t.Errorf("Fraction(%v, %v): got %v, want %v", row.progress, row.total, got, row.want)
		}
	}
}
