package report_test

import (
	"fmt"
	"regexp"
	"strconv"
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
	if f.Tokens.Value != 0 || f.Plans != 0 || !f.Same || len(f.Flipped) != 14 || f.Flipped[0].To != "fail" || f.Flipped[0].Pairs[0].Diverges != nil {
		t.Errorf("got %+v", f)
	}
}

// Repeats of one case are one piece of evidence and one row, the worst first.
func TestRepeatsAreNoCases(t *testing.T) {
	a := loadRuns(t, 50, 5, 1, func(i, repeat int) bool { return i != 4 || repeat == 1 })
	b := loadRuns(t, 50, 5, 1, func(i, repeat int) bool { return i > 1 && i != 4 || i == 1 && repeat < 3 || i == 4 && repeat == 2 })
	f, err := report.Compare(a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Flips.ToFail != 9 || f.Flips.ToPass != 1 || f.Flips.WorseCases != 2 || f.Flips.MixedCases != 1 || f.Flips.P != 0.5 {
		t.Errorf("got %+v, want 10 pairs of 3 cases and P = 0.5", f.Flips)
	}
	if f.Difference != -0.032 {
		t.Errorf("got difference %f, want -0.032", f.Difference)
	}
	got := ""
	for _, c := range f.Flipped {
		got += fmt.Sprintf("%s %s %s, %d pairs; ", c.Label(), c.Case, c.Scores(), len(c.Pairs))
	}
	if want := "to fail 0 5/5 → 0/5, 5 pairs; to fail 1 5/5 → 2/5, 3 pairs; mixed 4 1/5 → 1/5, 2 pairs; "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A comparison opens with what differs, as far as the lines tell.
func TestAspects(t *testing.T) {
	const usual = `{"case":"a","repeat":1,"outcome":"passed","fingerprint":"f","definition":"d","started":"2026-11-22T12:00:00Z","cost":1,"tokens":{"input":5,"output":1},` +
		`"result":{"usage":{"planner":{"model":"p"},"synthesizer":{"model":"s"}},"steps":[{"tool":"t","success":true}]}}` + "\n"
	for _, row := range []struct{ was, is, want string }{
		{"", "", ""},
		{`"fingerprint":"f"`, `"fingerprint":"g"`, "fingerprint: A f; B g\n"},
		{`"model":"p"`, `"model":"q"`, "planner: A p; B q\n"},
		{`"model":"s"`, `"model":""`, "synthesizer: A s; B none\n"},
		{`"cost":1`, `"cost":2`, "prices: A set; B others: the same tokens cost otherwise\n"},
		{`"cost":1,`, ``, "prices: A set; B none\n"},
		{`"definition":"d"`, `"definition":"e"`, "cases: A 1; B 1, of which 1 have changed\n"},
		{`"tool":"t"`, `"tool":"u"`, "tools called: A only here: t; B only here: u\n"},
		{`2T12`, `3T12`, "time: A 2026-11-22 12:00:00 to 12:00:00 UTC; B 2026-11-23 12:00:00 to 12:00:00 UTC\n"},
	} {
		f, err := report.Compare(load(t, usual), load(t, strings.ReplaceAll(usual, row.was, row.is)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := f.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		got := ""
		for line := range strings.Lines(text.String()) {
			if aspect, is := strings.CutPrefix(line, "differs     "); is {
				got += aspect
			}
		}
		if got != row.want {
			t.Errorf("%s to %s: got %q, want %q", row.was, row.is, got, row.want)
		}
	}
}

// The drawings stay within their planes whatever the values are, and each has a caption that names it. The tables of both
// plans of a flipped pair have names of their own.
func TestCompareHTML(t *testing.T) {
	numbers := regexp.MustCompile(`[MHV](-?[0-9.]+)`)
	for _, row := range []struct{ a, b, tokens float64 }{
		{1, 1, 0}, {0, 0.001, 7}, {0, 0, 0}, {0.0004, 3000, 12345}, {0.1, 0.3, 1}, {100, 100, 1e9},
		{1e308, 1e308, 1}, {5e-324, 5e-324, 1},
	} {
		line := `{"case":"a","repeat":1,"outcome":%q,"seconds":%g,"tokens":{"input":%d,"output":0},"result":{"plan":{"steps":[{"id":"a","tool":"t","arguments":{}}]}}}` + "\n"
		a := load(t, fmt.Sprintf(line, "passed", row.a, int(row.tokens)))
		b := load(t, fmt.Sprintf(line, "failed", row.b, int(row.tokens)/2))
		f, err := report.Compare(a, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := f.WriteHTML(&text); err != nil {
			t.Fatal(err)
		}
		page, want := text.String(), 1
		for _, drawn := range []float64{max(row.a, row.b), row.tokens} {
			if drawn > 0 {
				want++
			}
		}
		if n := strings.Count(page, "<svg"); n != want {
			t.Errorf("%+v: got %d drawings, want %d", row, n, want)
		}
		for _, id := range regexp.MustCompile(`aria-labelledby="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if !strings.Contains(page, `<figcaption id="`+id[1]+`"`) {
				t.Errorf("%+v: got no caption %s", row, id[1])
			}
		}
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Errorf("%+v: got a value that is no number", row)
		}
		for _, n := range numbers.FindAllStringSubmatch(page[strings.Index(page, "<svg"):strings.LastIndex(page, "</svg>")], -1) {
			if v, err := strconv.ParseFloat(n[1], 64); err == nil && (v < 0 || v > 340) {
				t.Errorf("%+v: got a point at %g", row, v)
			}
		}
		for _, label := range []string{"Plan of A", "Plan of B"} {
			if n := strings.Count(page, `aria-label="`+label+`"`); n != 1 {
				t.Errorf("got %d tables named %s, want 1", n, label)
			}
		}
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
