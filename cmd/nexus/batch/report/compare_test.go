package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
)

// loadRuns writes repeats of cases, of which passed tells whether they passed, and reads them.
func loadRuns(t *testing.T, cases, repeats int, seconds float64, passed func(i, repeat int) bool) *report.Batch {
	t.Helper()
	var text strings.Builder
	for i := range cases {
		for repeat := 1; repeat <= repeats; repeat++ {
			outcome := "failed"
			if passed(i, repeat) {
				outcome = "passed"
			}
			fmt.Fprintf(&text, `{"case":"%d","repeat":%d,"outcome":%q,"checks":[],"result":{"plan":{"steps":[{"id":"a","tool":"t","arguments":{}}]}},"seconds":%g,"tokens":{"input":%d,"output":0},"trace_id":"","fingerprint":"f"}`+"\n",
				i, repeat, outcome, seconds*float64(i%7+1), i%5)
		}
	}
	return load(t, text.String())
}

// Of 200 cases 12 become worse and 2 better: P = 0.01294 (binomial, 2 of 14), and B takes twice as long.
func TestCompare(t *testing.T) {
	a := loadRuns(t, 200, 1, 0.1, func(i, _ int) bool { return i >= 2 })
	b := loadRuns(t, 200, 1, 0.2, func(i, _ int) bool { return i < 188 })
	f, err := report.Compare(a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Pairs != 200 || f.Flips.ToFail != 12 || f.Flips.ToPass != 2 || fmt.Sprintf("%.5f", f.Flips.P) != "0.01294" {
		t.Errorf("got %d pairs and %+v", f.Pairs, f.Flips)
	}
	if r := f.Latency.P95; r == nil || r.Value != 2 || r.Low != 2 || r.High != 2 {
		t.Errorf("p95: got %+v, want exactly 2", r)
	}
	if f.Tokens.Value != 0 || f.Plans != 0 || !f.Same || len(f.Flipped) != 14 || f.Flipped[0].To != "fail" || f.Flipped[0].Diverges != nil {
		t.Errorf("got %+v", f)
	}
}

// The tables of both plans of a flipped pair have names of their own.
func TestCompareHTML(t *testing.T) {
	a := loadRuns(t, 1, 1, 1, func(int, int) bool { return true })
	b := loadRuns(t, 1, 1, 1, func(int, int) bool { return false })
	f, err := report.Compare(a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := f.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"Plan of A", "Plan of B"} {
		if n := strings.Count(page.String(), `aria-label="`+label+`"`); n != 1 {
			t.Errorf("got %d tables named %s, want 1", n, label)
		}
	}
}

// Repeats of one case are one piece of evidence.
func TestRepeatsAreNoCases(t *testing.T) {
	a := loadRuns(t, 50, 5, 1, func(int, int) bool { return true })
	b := loadRuns(t, 50, 5, 1, func(i, _ int) bool { return i >= 2 })
	f, err := report.Compare(a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Flips.ToFail != 10 || f.Flips.WorseCases != 2 || f.Flips.P != 0.5 {
		t.Errorf("got %+v, want 10 pairs of 2 cases and P = 0.5", f.Flips)
	}
	if f.Difference != -0.04 {
		t.Errorf("got difference %f, want -0.04", f.Difference)
	}
}

// Plans that differ only in what a loop goes through, a condition or a shape are different plans.
func TestPlansDifferByLoops(t *testing.T) {
	for _, member := range []string{`"each":"$l.x"`, `"when":"true"`, `"pick":"value.x"`} {
		var two [2]*report.Batch
		for i, more := range []string{"", "," + member} {
			two[i] = load(t, `{"case":"a","repeat":1,"outcome":"passed","checks":[],"fingerprint":"f",`+
				`"result":{"plan":{"steps":[{"id":"a","tool":"t","arguments":{}`+more+`}]}}}`+"\n")
		}
		f, err := report.Compare(two[0], two[1], nil)
		if err != nil || f.Plans != 1 {
			t.Errorf("%s: got %+v and %v, want one plan that differs", member, f, err)
		}
	}
}
