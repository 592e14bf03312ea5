package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

// Flips counts pairs that passed in one file only. The P value is from McNemar's exact test over cases: a case is worse
// if fewer of its repeats pass.
type Flips struct {
	ToFail      int     `json:"to_fail"`
	ToPass      int     `json:"to_pass"`
	WorseCases  int     `json:"worse_cases"`
	BetterCases int     `json:"better_cases"`
	MixedCases  int     `json:"mixed_cases"` // as many of their repeats pass, but others
	P           float64 `json:"p"`
}

// FlippedCase is a case of which a pair flipped. Its repeats are one row.
type FlippedCase struct {
	Case  string `json:"case"`
	To    string `json:"to"` // fail or pass: fewer or more of its repeats pass; mixed: as many, but others
	A     Score  `json:"a"`
	B     Score  `json:"b"`
	Pairs []Flip `json:"pairs"` // that flipped

	flipped []*pair
}

// Score is how many of the repeats of a case passed, of those whose pairs are not skipped.
type Score struct {
	Passed int `json:"passed"`
	Of     int `json:"of"`
}

// Flip is a pair that passed in one file only.
type Flip struct {
	A        Detail      `json:"a"`
	B        Detail      `json:"b"`
	Diverges *Divergence `json:"diverges,omitempty"` // nil = the plans are the same
}

// Divergence is the first step that differs. A side without that step is empty.
type Divergence struct {
	Step int    `json:"step"` // from 1
	A    string `json:"a"`
	B    string `json:"b"`
}

// maxFlips is how many flipped pairs a comparison shows.
const maxFlips = 200

// Directions of a flipped case, in the order of a comparison.
const (
	toFail  = "fail"
	toMixed = "mixed"
	toPass  = "pass"
)

// flips returns the flipped cases, the worst first.
func flips(a, b *Batch, pairs []*pair) ([]*FlippedCase, error) {
	all := []*FlippedCase{}
	for repeats := range byCase(pairs) {
		c := &FlippedCase{Case: repeats[0].name, To: toMixed}
		for _, p := range repeats {
			if p.judged() {
				c.A.count(p.a)
				c.B.count(p.b)
			}
			if p.flipped() {
				c.flipped = append(c.flipped, p)
			}
		}
		switch {
		case c.B.Passed < c.A.Passed:
			c.To = toFail
		case c.B.Passed > c.A.Passed:
			c.To = toPass
		}
		if len(c.flipped) > 0 {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(x, y *FlippedCase) int {
		return cmp.Or(cmp.Compare(x.To, y.To), cmp.Compare(y.A.Passed-y.B.Passed, x.A.Passed-x.B.Passed))
	})
	left := maxFlips
	for i, c := range all {
		if left == 0 {
			return all[:i], nil
		}
		some := c.flipped
		against := func(p *pair) int { // the case's direction
			if p.a.Passed() == (c.To != toPass) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(some, func(x, y *pair) int { return cmp.Compare(against(x), against(y)) })
		some = some[:min(len(some), left)]
		left -= len(some)
		x, y, err := bothDetails(a, b, some)
		if err != nil {
			return nil, err
		}
		for j := range some {
			c.Pairs = append(c.Pairs, Flip{x[j], y[j], diverges(x[j], y[j])})
		}
	}
	return all, nil
}

func (s *Score) count(r *Row) {
	s.Of++
	if r.Passed() {
		s.Passed++
	}
}

func bothDetails(a, b *Batch, pairs []*pair) (x, y []Detail, err error) {
	rowsA, rowsB := make([]*Row, len(pairs)), make([]*Row, len(pairs))
	for i, p := range pairs {
		rowsA[i], rowsB[i] = p.a, p.b
	}
	if x, err = a.Details(rowsA); err == nil {
		y, err = b.Details(rowsB)
	}
	return x, y, err
}

// diverges returns the first step of two plans that differs, or else the first whose outcome does.
func diverges(a, b Detail) *Divergence {
	call := func(s DetailStep) string { return s.Tool + " " + s.Arguments }
	outcome := func(s DetailStep) string { return call(s) + ": " + s.Status }
	for _, text := range []func(DetailStep) string{call, outcome} {
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

// Verdict states the result of the test of the flips.
func (f Flips) Verdict() string {
	switch {
	case f.ToFail+f.ToPass == 0:
		return "no difference"
	case f.P < 0.05:
		return fmt.Sprintf("significant, P = %.3g", f.P)
	}
	return fmt.Sprintf("may be chance, P = %.3g", f.P)
}

// Text counts flipped cases and, if cases were repeated, pairs.
func (f Flips) Text() string {
	noun := "cases"
	if f.WorseCases == 1 {
		noun = "case"
	}
	text := fmt.Sprintf("%d %s worse, %d better", f.WorseCases, noun, f.BetterCases)
	if f.MixedCases > 0 {
		text += fmt.Sprintf(", %d mixed", f.MixedCases)
	}
	if f.ToFail+f.ToPass != f.Cases() {
		text += fmt.Sprintf("; of pairs %d to fail, %d to pass", f.ToFail, f.ToPass)
	}
	return text + " (" + f.Verdict() + ")"
}

// Cases counts the flipped cases.
func (f Flips) Cases() int { return f.WorseCases + f.BetterCases + f.MixedCases }

// Label names the direction of a case.
func (c *FlippedCase) Label() string {
	if c.To == toMixed {
		return c.To
	}
	return "to " + c.To
}

// Class is the class of styles of the direction: that of the outcome in B.
func (c *FlippedCase) Class() string {
	return map[string]string{toFail: results.Failed, toPass: results.Passed}[c.To]
}

// Scores tells how many repeats passed; empty if there is one.
func (c *FlippedCase) Scores() string {
	if c.A.Of < 2 {
		return ""
	}
	return fmt.Sprintf("%d/%d → %d/%d", c.A.Passed, c.A.Of, c.B.Passed, c.B.Of)
}

// text describes a case by its first pair.
func (c *FlippedCase) text() string {
	text, flip := c.Case, c.Pairs[0]
	if scores := c.Scores(); scores != "" {
		text += " " + scores
	}
	if reason := flip.Reason(); reason != "" {
		text += ": " + reason
	}
	if d := flip.Diverges; d != nil {
		text += fmt.Sprintf("; step %d: %s → %s", d.Step, orNone(d.A), orNone(d.B))
	}
	return text
}

// Reason is the first reason of the side that did not pass.
func (f *Flip) Reason() string {
	failed := f.A
	if f.A.Outcome == results.Passed {
		failed = f.B
	}
	if len(failed.Reasons) == 0 {
		return ""
	}
	return failed.Reasons[0]
}
