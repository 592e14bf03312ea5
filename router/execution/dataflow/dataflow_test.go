package dataflow_test

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

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t testing.TB, text string) plan.Plan {
	t.Helper()
	p, err := plan.ParseJSON(json.RawMessage(text))
	if err != nil {
		t.Fatalf("ParseJSON(%s): %v", text, err)
	}
	return p
}

// echo answers with its arguments; the tool "fail" fails.
func echo(_ context.Context, s plan.Step, arguments json.RawMessage, _ progress.Func) plan.Outcome {
	if s.Tool == "fail" {
		return plan.Outcome{Attempts: 1, Value: json.RawMessage(`1`), Err: &plan.Error{Reason: reason.ToolError, Message: "no luck"}}
	}
	return plan.Outcome{Attempts: 1, Value: arguments, Text: string(arguments)}
}

// brief writes outcomes in one line.
func brief(outcomes []plan.Outcome) string {
	var all []string
	for _, o := range outcomes {
		text := o.Step.ID + ":" + string(o.Value)
		if o.Err != nil {
			text = o.Step.ID + "!" + o.Err.Reason
			if o.Text != "Error: "+o.Err.Message || o.Value != nil {
				text += " with text " + o.Text + " and value " + string(o.Value)
			}
		}
		if (o.Attempts == 0) != (o.Sent == nil) {
			text += fmt.Sprintf(" %d attempts with %s", o.Attempts, o.Sent)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestRun(t *testing.T) {
	tests := []struct {
		name, plan string
		opts       dataflow.Options
		want       string
	}{
		{"nothing", `[]`, dataflow.Options{}, ``},
		{"order of the plan", `[{"tool":"a","arguments":{"x":"$s3.y"}},{"tool":"b","after":["s1"]},{"tool":"c","arguments":{"y":[9007199254740993]}}]`, dataflow.Options{},
			`s1:{"x":[9007199254740993]} s2:{} s3:{"y":[9007199254740993]}`},
		{"text", `[{"tool":"a","arguments":{"x":"n ${s2.y}"}},{"tool":"c","arguments":{"y":1}}]`, dataflow.Options{}, `s1:{"x":"n 1"} s2:{"y":1}`},
		{"failure goes down", `{"steps":[{"id":"a","tool":"fail"},{"id":"b","tool":"x","after":["a"]},{"id":"c","tool":"x","arguments":{"v":"$b.q"}},{"id":"d","tool":"x"}]}`, dataflow.Options{},
			`a!tool_error b!dependency_failed c!dependency_failed d:{}`},
		{"missing path", `[{"tool":"a","arguments":{"x":"$s2.y"}},{"tool":"b"}]`, dataflow.Options{}, `s1!missing_reference s2:{}`},
		{"after nothing", `[{"tool":"a","after":["s9"]},{"tool":"b","after":["s1"]}]`, dataflow.Options{}, `s1!missing_reference s2!dependency_failed`},
		{"problems", `[{"tool":"a"},{"tool":"b","after":["s1"]},{"tool":"c"}]`,
			dataflow.Options{Problems: []plan.Problem{{Step: "s1", Error: plan.Error{Reason: reason.UnknownTool, Message: "x"}}, {Step: "s1", Error: plan.Error{Reason: reason.Cycle, Message: "y"}}}},
			`s1!unknown_tool s2!dependency_failed s3:{}`},
		{"cycle unchecked", `[{"tool":"a","after":["s2"]},{"tool":"b","after":["s1"]},{"tool":"c","after":["s3"]},{"tool":"d"}]`, dataflow.Options{}, `s1!cycle s2!cycle s3!cycle s4:{}`},
		{"earlier rounds", `{"steps":[{"id":"b","tool":"x","arguments":{"v":"$a.k"},"after":["a"]},{"id":"c","tool":"x","arguments":{"v":"$f"}},{"id":"d","tool":"x","after":["f"]},{"id":"g","tool":"fail"}]}`,
			dataflow.Options{Done: []plan.Outcome{
				{Step: plan.Step{ID: "a"}, Value: json.RawMessage(`{"k":7}`)},
				{Step: plan.Step{ID: "f"}, Err: &plan.Error{Reason: reason.ToolError, Message: "x"}},
				{Step: plan.Step{ID: "g"}, Attempts: 1, Sent: json.RawMessage(`{}`), Value: json.RawMessage(`8`)},
			}}, `b:{"v":7} c!dependency_failed d!dependency_failed g:8`},
		{"validation", `[{"tool":"a","arguments":{"x":"$s2"}},{"tool":"b","arguments":{"n":1}},{"tool":"c","after":["s1"]}]`,
			dataflow.Options{Validate: func(_ plan.Step, arguments json.RawMessage) *plan.Error {
				if bytes.Contains(arguments, []byte(`"x":{"n":1}`)) {
					return &plan.Error{Reason: reason.InvalidArguments, Message: "x"}
				}
				return nil
			}}, `s1!invalid_arguments s2:{"n":1} s3!dependency_failed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, limit := range []int{0, 1, 2} {
				tt.opts.Call, tt.opts.MaxParallel = echo, limit
				if got := brief(dataflow.Run(t.Context(), parse(t, tt.plan), tt.opts)); got != tt.want {
					t.Errorf("limit %d\n got %s\nwant %s", limit, got, tt.want)
				}
			}
		})
	}
}

func TestDependencyFailedNamesTheStep(t *testing.T) {
	out := dataflow.Run(t.Context(), parse(t, `{"steps":[{"id":"news","tool":"fail"},{"id":"b","tool":"x","after":["news"]}]}`), dataflow.Options{Call: echo})
	if got, want := out[1].Text, "Error: Step news, which this step needs, failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A layered graph with random edges, latencies in milliseconds, and its longest path.
func layered(r *rand.Rand, n int) (p plan.Plan, latency map[string]time.Duration, parents map[string][]string, critical time.Duration) {
	latency, parents = make(map[string]time.Duration), make(map[string][]string)
	end := make(map[string]time.Duration)
	var names []string
	width := 1 + r.IntN(5)
	for i := range n {
		s := plan.Step{ID: fmt.Sprint("n", i), Tool: "t", Arguments: json.RawMessage(`{}`)}
		latency[s.ID] = time.Duration(1+r.IntN(400)) * time.Millisecond
		var refs []string
		for range r.IntN(4) {
			if i < width {
				break
			}
			parent := names[r.IntN(i-i%width)]
			if slices.Contains(parents[s.ID], parent) {
				continue
			}
			parents[s.ID] = append(parents[s.ID], parent)
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
		for _, parent := range parents[s.ID] {
			end[s.ID] = max(end[s.ID], end[parent])
		}
		end[s.ID] += latency[s.ID]
		critical = max(critical, end[s.ID])
		names = append(names, s.ID)
		p.Steps = append(p.Steps, s)
	}
	r.Shuffle(len(p.Steps), func(i, j int) { p.Steps[i], p.Steps[j] = p.Steps[j], p.Steps[i] })
	return p, latency, parents, critical
}

// With slots for all, a plan takes as long as its longest chain, to the nanosecond; with few, no more
// run at once; and no step ever starts before those it needs are done.
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
				out := dataflow.Run(t.Context(), p, dataflow.Options{MaxParallel: limit, Call: func(_ context.Context, s plan.Step, arguments json.RawMessage, _ progress.Func) plan.Outcome {
					mu.Lock()
					for _, parent := range parents[s.ID] {
						if !finished[parent] {
							t.Errorf("seed %d: %s started before %s was done", seed, s.ID, parent)
						}
					}
					running++
					most = max(most, running)
					sum += latency[s.ID]
					mu.Unlock()
					if bytes.ContainsRune(arguments, '$') {
						t.Errorf("seed %d: %s got %s", seed, s.ID, arguments)
					}
					time.Sleep(latency[s.ID])
					mu.Lock()
					running--
					finished[s.ID] = true
					mu.Unlock()
					return plan.Outcome{Value: json.RawMessage(`{"out":"o"}`), Attempts: 1}
				}})
				wall := time.Since(start)
				for i, o := range out {
					if !o.OK() || o.Step.ID != p.Steps[i].ID || o.Duration != latency[o.Step.ID] {
						t.Errorf("seed %d: got outcome %+v for step %s", seed, o, p.Steps[i].ID)
					}
				}
				switch limit {
				case 0:
					if wall != critical {
						t.Errorf("seed %d: took %v, want %v", seed, wall, critical)
					}
				case 1:
					if wall != sum {
						t.Errorf("seed %d: one at a time took %v, want %v", seed, wall, sum)
					}
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
	call := func(ctx context.Context, s plan.Step, _ json.RawMessage, _ progress.Func) plan.Outcome {
		d := time.Second
		if s.Tool == "slow" {
			d = time.Hour
		}
		select {
		case <-time.After(d):
			return plan.Outcome{Attempts: 1, Value: json.RawMessage(`1`)}
		case <-ctx.Done():
			return plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: "stopped", Message: "stopped"}}
		}
	}
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
			out := dataflow.Run(ctx, parse(t, text), dataflow.Options{Call: call, MaxParallel: 2})
			if d := time.Since(start); d != time.Minute {
				t.Errorf("%s: took %v, want %v", tt.name, d, time.Minute)
			}
			// a is done; e and b hold both slots; c waits for a slot, d for b
			got := brief(out)
			want := fmt.Sprintf("a:1 b!stopped c!%s d!%s e!stopped", tt.reason, tt.reason)
			if got != want {
				t.Errorf("%s: got %s, want %s", tt.name, got, want)
			}
			if got := out[2].Err.Message; got != tt.message {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.message)
			}
		})
	}
	t.Run("before the start", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, want := brief(dataflow.Run(ctx, parse(t, text), dataflow.Options{Call: call})), "a!cancelled b!cancelled c!cancelled d!cancelled e!cancelled"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestPanicIsAFailure(t *testing.T) {
	var log bytes.Buffer
	out := dataflow.Run(t.Context(), parse(t, `{"steps":[{"id":"a","tool":"panic"},{"id":"b","tool":"goexit"},{"id":"c","tool":"x","after":["a"]},{"id":"d","tool":"x"}]}`), dataflow.Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Call: func(_ context.Context, s plan.Step, _ json.RawMessage, _ progress.Func) plan.Outcome {
			switch s.Tool {
			case "panic":
				panic("boom")
			case "goexit":
				runtime.Goexit()
			}
			return plan.Outcome{Value: json.RawMessage(`1`), Attempts: 1}
		},
	})
	if got, want := brief(out), "a!internal b!internal c!dependency_failed d:1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "dataflow_test.go") {
		t.Errorf("got log %s, want the panic and its stack", log.String())
	}
	if strings.Contains(out[0].Text, "boom") {
		t.Errorf("got text %q, want the panic in the log only", out[0].Text)
	}
}

func TestPanicInValidateAndProgress(t *testing.T) {
	p := parse(t, `[{"tool":"a"},{"tool":"b"}]`)
	out := dataflow.Run(t.Context(), p, dataflow.Options{Call: echo, Validate: func(s plan.Step, _ json.RawMessage) *plan.Error {
		if s.Tool == "a" {
			panic("x")
		}
		return nil
	}})
	if out[0].OK() || !out[1].OK() {
		t.Errorf("got %s, want the first to fail alone", brief(out))
	}
	out = dataflow.Run(t.Context(), p, dataflow.Options{
		Progress: func(float64, string) { panic("x") },
		Call: func(_ context.Context, s plan.Step, _ json.RawMessage, report progress.Func) plan.Outcome {
			if s.Tool == "a" {
				report(0.5, "")
			}
			return plan.Outcome{Value: json.RawMessage(`1`), Attempts: 1}
		},
	})
	if out[0].OK() || !out[1].OK() {
		t.Errorf("got %s, want the first to fail alone", brief(out))
	}
}

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		time.Sleep(3 * time.Second) // planning
		out := dataflow.Run(t.Context(), parse(t, `{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"fail","after":["a"]},{"id":"c","tool":"x","after":["b"]},{"id":"d","tool":"own"}]}`), dataflow.Options{
			Elapsed: func() time.Duration { return time.Since(begin) },
			Call: func(ctx context.Context, s plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome {
				time.Sleep(time.Second)
				o := echo(ctx, s, arguments, report)
				if s.Tool == "own" {
					o.Started, o.Duration = time.Second, 5*time.Second
				}
				return o
			},
		})
		want := [][2]time.Duration{{3, 1}, {4, 1}, {5, 0}, {1, 5}}
		for i, o := range out {
			if o.Started != want[i][0]*time.Second || o.Duration != want[i][1]*time.Second {
				t.Errorf("step %s: got %v for %v, want %vs for %vs", o.Step.ID, o.Started, o.Duration, int(want[i][0]), int(want[i][1]))
			}
		}
	})
}

type event struct {
	fraction float64
	message  string
}

func TestProgress(t *testing.T) {
	var got []event
	p := parse(t, `{"steps":[{"id":"a","tool":"one"},{"id":"b","tool":"two","after":["a"]},{"id":"c","tool":"two","after":["b"]},{"id":"d","tool":"none"}]}`)
	var late progress.Func
	dataflow.Run(t.Context(), p, dataflow.Options{
		Problems: []plan.Problem{{Step: "d", Error: plan.Error{Reason: "x"}}},
		Progress: func(x float64, message string) { got = append(got, event{x, message}) },
		Call: func(_ context.Context, s plan.Step, _ json.RawMessage, report progress.Func) plan.Outcome {
			switch s.ID {
			case "a":
				late = report
				report(0.5, "half")
				report(0.25, "again") // a retry
				report(0.75, "")
				report(7, "beyond")
				report(math.NaN(), "not a number")
			case "b":
				late(0.9, "too late")
				report(-1, "below")
				report(0.4, "some")
			case "c":
				report(0.5, "c")
			}
			return plan.Outcome{Attempts: 1, Value: json.RawMessage(`1`)}
		},
	})
	late(1, "after the end")
	want := []event{ // d counts from the start
		{1.5 / 4, "[one] half"}, {1.5 / 4, "[one] again"}, {1.75 / 4, "[one] Working..."}, {2.0 / 4, "[one] beyond"}, {2.0 / 4, "[one] not a number"},
		{2.0 / 4, "[two] below"}, {2.4 / 4, "[two] some"}, {3.5 / 4, "[two] c"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if math.Abs(got[i].fraction-want[i].fraction) > 1e-12 || got[i].message != want[i].message {
			t.Errorf("event %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// Many steps report at once: one call at a time, never backwards, never above 1.
func TestProgressConcurrently(t *testing.T) {
	var steps []string
	for range 40 {
		steps = append(steps, `{"tool":"t"}`)
	}
	last, inside := 0.0, false
	dataflow.Run(t.Context(), parse(t, "["+strings.Join(steps, ",")+"]"), dataflow.Options{
		Progress: func(x float64, _ string) {
			if inside || x < last || x > 1 {
				t.Errorf("got %v after %v, overlapping %v", x, last, inside)
			}
			inside = true
			last = x
			inside = false
		},
		Call: func(_ context.Context, _ plan.Step, _ json.RawMessage, report progress.Func) plan.Outcome {
			for i := range 200 {
				report(float64(i)/200, "x")
			}
			return plan.Outcome{Value: json.RawMessage(`1`)}
		},
	})
	if last < 0.99 {
		t.Errorf("got %v in the end, want almost 1", last)
	}
}

func BenchmarkRun(b *testing.B) {
	for name, text := range map[string]func(int) string{
		"independent": func(int) string { return `{"tool":"t","arguments":{"q":"x"}}` },
		"chain": func(i int) string {
			if i == 0 {
				return `{"tool":"t","arguments":{"q":"x"}}`
			}
			return fmt.Sprintf(`{"tool":"t","arguments":{"q":"$s%d.q"}}`, i)
		},
	} {
		b.Run(name, func(b *testing.B) {
			const n = 100
			var steps []string
			for i := range n {
				steps = append(steps, text(i))
			}
			p := parse(b, "["+strings.Join(steps, ",")+"]")
			b.ReportAllocs()
			for b.Loop() {
				dataflow.Run(b.Context(), p, dataflow.Options{Call: echo})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/step")
		})
	}
}
