package compare

import (
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
)

// flips returns the flipped pairs, new failures first.
func flips(a, b *report.Batch, pairs []pair) ([]Flip, error) {
	var some []pair
	for _, toFail := range [...]bool{true, false} {
		for _, p := range pairs {
			if p.flipped() && p.a.Passed() == toFail && len(some) < maxFlips {
				some = append(some, p)
			}
		}
	}
	x, y, err := details(a, b, some)
	if err != nil {
		return nil, err
	}
	all := make([]Flip, len(some))
	for i, p := range some {
		all[i] = Flip{To: "pass", A: x[i], B: y[i], Diverges: diverges(x[i], y[i])}
		if p.a.Passed() {
			all[i].To = "fail"
		}
	}
	return all, nil
}

func details(a, b *report.Batch, pairs []pair) (x, y []report.Detail, err error) {
	rowsA, rowsB := make([]report.Row, len(pairs)), make([]report.Row, len(pairs))
	for i, p := range pairs {
		rowsA[i], rowsB[i] = p.a, p.b
	}
	if x, err = a.Details(rowsA); err == nil {
		y, err = b.Details(rowsB)
	}
	return x, y, err
}

// diverges returns the first step of two plans that differs, or else the first whose outcome does.
func diverges(a, b report.Detail) *Divergence {
	call := func(s report.DetailStep) string { return s.Tool + " " + s.Arguments }
	outcome := func(s report.DetailStep) string { return call(s) + ": " + s.Status }
	for _, text := range []func(report.DetailStep) string{call, outcome} {
		for i := range max(len(a.Steps), len(b.Steps)) {
			d := Divergence{Step: i + 1}
			if i < len(a.Steps) {
				d.A = text(a.Steps[i])
			}
			if i < len(b.Steps) {
				d.B = text(b.Steps[i])
			}
			if d.A != d.B {
				return &d
			}
		}
	}
	return nil
}
