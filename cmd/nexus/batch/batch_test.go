package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

const answer = `{"answer":"fine","trace_id":"t","plan":{"steps":[]},"usage":{"planner":{"model":"m","input_tokens":60,"output_tokens":40},"synthesizer":{"model":"m"}}}`

// some makes n cases.
func some(n int) (all []cases.Case) {
	for i := range n {
		all = append(all, cases.Case{ID: fmt.Sprint(i), Query: "q", Definition: "d"})
	}
	return all
}

// run runs cases into a new file and returns its lines.
func run(t *testing.T, ctx context.Context, opts batch.Options, side batch.Side) (batch.Tally, []results.Line, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	out, err := results.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	side.Out = out
	opts.Sides, opts.Repeat, opts.Concurrency = []batch.Side{side}, max(opts.Repeat, 1), max(opts.Concurrency, 1)
	tallies, failed := batch.Run(ctx, opts)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	var lines []results.Line
	if _, err := results.Read(path, func(l *results.Line, _ results.Place) error {
		lines = append(lines, *l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return tallies[0], lines, failed
}

func reply(context.Context, batch.Question) (batch.Answer, error) {
	return batch.Answer{Content: json.RawMessage(answer), Took: time.Second}, nil
}

func TestRunAsksEachOnce(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	tally, lines, err := run(t, t.Context(), batch.Options{
		Cases: some(20), Repeat: 3, Concurrency: 4,
	}, batch.Side{
		Fingerprint: "f",
		Price:       func(_ string, input, output int) (float64, bool) { return float64(input+output) / 1000, true },
		Ask: func(ctx context.Context, q batch.Question) (batch.Answer, error) {
			mu.Lock()
			asked[q.ID]++
			mu.Unlock()
			return reply(ctx, q)
		},
	})
	if err != nil || tally.Passed != 60 || tally.Total != 60 || !tally.Clean() || tally.Tokens != 6000 {
		t.Fatalf("got %+v, %v", tally, err)
	}
	for id, n := range asked {
		if n != 3 {
			t.Errorf("case %s: got %d questions, want 3", id, n)
		}
	}
	for _, l := range lines {
		if l.Outcome != results.Passed || l.Fingerprint != "f" || l.TraceID != "t" || l.Tokens.Total() != 100 || l.Cost == nil || *l.Cost != 0.1 {
			t.Fatalf("got %+v", l)
		}
	}
}

// Two sides are asked each question one after the other, and take turns in being first, for each case and each repeat. A
// run that was interrupted between them continues with the missing half.
func TestSidesTakeTurns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, got := some(3), ""
	opts := batch.Options{Cases: all, Repeat: 2, Concurrency: 1}
	paths := []string{filepath.Join(t.TempDir(), "a.jsonl"), filepath.Join(t.TempDir(), "b.jsonl")}
	open := func() {
		opts.Sides = nil
		for i, name := range []string{"A", "B"} {
			out, err := results.Resume(paths[i])
			if err != nil {
				t.Fatal(err)
			}
			before, err := batch.ReadEarlier(paths[i], all, name)
			if err != nil {
				t.Fatal(err)
			}
			opts.Sides = append(opts.Sides, batch.Side{
				Fingerprint: name, Before: before, Out: out, Ask: func(ctx context.Context, q batch.Question) (batch.Answer, error) {
					if got += q.ID + name + " "; got == "0A 0B 1B " {
						cancel()
					}
					return reply(ctx, q)
				},
			})
		}
	}
	open()
	tallies, err := batch.Run(ctx, opts)
	if !errors.Is(err, batch.ErrInterrupted) || tallies[0].Done() != 1 || tallies[1].Done() != 2 || tallies[0].Total != 6 {
		t.Errorf("got %+v, %v, want the run interrupted after three questions", tallies, err)
	}
	for _, s := range opts.Sides {
		if err := s.Out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open()
	tallies, err = batch.Run(t.Context(), opts)
	if err != nil || !tallies[0].Clean() || tallies[0].Passed != 6 || tallies[1].Passed != 6 || tallies[0].New != 5 {
		t.Errorf("got %+v, %v, want six lines of each side", tallies, err)
	}
	if want := "0A 0B 1B 1A 2A 2B 0B 0A 1A 1B 2B 2A "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBudgetEndsTheRun(t *testing.T) {
	tally, lines, err := run(t, t.Context(), batch.Options{Cases: some(10), MaxTokens: 250}, batch.Side{Ask: reply})
	if !errors.Is(err, batch.ErrBudget) || len(lines) != 3 || tally.Done() != 3 {
		t.Errorf("got %d lines, %v; want 3 and ErrBudget", len(lines), err)
	}
}

func TestInterruptFinishesWhatRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, lines, err := run(t, ctx, batch.Options{Cases: some(10)}, batch.Side{Ask: func(asked context.Context, q batch.Question) (batch.Answer, error) {
		if q.ID == "2" {
			cancel()
		}
		if asked.Err() != nil {
			t.Error("the question under way was cut")
		}
		return reply(asked, q)
	}})
	if !errors.Is(err, batch.ErrInterrupted) || len(lines) != 3 || lines[2].Case != "2" {
		t.Errorf("got %d lines, %v; want 3 and ErrInterrupted", len(lines), err)
	}
}

func TestErrors(t *testing.T) {
	lost := errors.New("gone")
	for _, row := range []struct {
		name    string
		failure error
		reason  string // "" = no line
		ends    bool
	}{
		{"refused", &batch.Failure{Reason: "refused", Err: lost}, "refused", false},
		{"late", context.DeadlineExceeded, "timeout", false},
		{"other", lost, "failed", false},
		{"lost before", &batch.Failure{Reason: "unavailable", Err: lost, Lost: true}, "", true},
		{"lost after", &batch.Failure{Reason: "outcome_unknown", Err: lost, Lost: true, Sent: true}, "outcome_unknown", true},
	} {
		_, lines, err := run(t, t.Context(), batch.Options{Cases: some(3)}, batch.Side{Ask: func(context.Context, batch.Question) (batch.Answer, error) {
			return batch.Answer{}, row.failure
		}})
		want := 3
		if row.ends {
			want = 1
		}
		if row.reason == "" {
			want = 0
		}
		if len(lines) != want || (err != nil) != row.ends {
			t.Errorf("%s: got %d lines, %v; want %d", row.name, len(lines), err, want)
		}
		for _, l := range lines {
			if l.Outcome != results.Errored || l.Error.Reason != row.reason {
				t.Errorf("%s: got %+v", row.name, l)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	all := some(2)
	all[0].Timeout = 5
	_, lines, err := run(t, t.Context(), batch.Options{
		Cases: all, Timeout: time.Minute,
	}, batch.Side{
		Ask: func(ctx context.Context, q batch.Question) (batch.Answer, error) {
			limit := time.Minute
			if q.ID == "0" {
				limit = 5 * time.Second
			}
			if q.Limit != limit || q.Bound() != limit+30*time.Second {
				t.Errorf("case %s: got limit %v and bound %v, want %v and 30s more", q.ID, q.Limit, q.Bound(), limit)
			}
			return reply(ctx, q)
		},
	})
	if err != nil || lines[0].Seconds != 1 {
		t.Errorf("got %+v, %v; want the second that the router took", lines, err)
	}
	if bound := (batch.Question{}).Bound(); bound < 10*time.Minute {
		t.Errorf("without a limit: got bound %v, want more than the router's own", bound)
	}
}
