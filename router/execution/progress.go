package execution

import (
	"cmp"
	"sync"
)

// ProgressFunc receives how much of a task is done, 0 to 1, and what is going on. It must not block.
type ProgressFunc func(fraction float64, message string)

// Fraction returns progress/total between 0 and 1. A total that is zero, negative or NaN counts as 1, and a quotient
// that is NaN as 0.
func Fraction(progress, total float64) float64 {
	if !(total > 0) {
		total = 1
	}
	if x := progress / total; x > 0 {
		return min(x, 1)
	}
	return 0
}

// A tracker sums the progress of a plan's steps, or of a loop's calls within the slice of their step. Each of n parts
// has a slice of 1/n; a step that computes has none. A slice never shrinks, so a retry does not move progress back; it
// is full once its step has finished.
type tracker struct {
	*output
	parent *tracker // nil for the plan
	slice  int      // in the parent

	slices   []float64
	of       int // how many of the slices are to be filled
	finished []bool
	sum      float64
}

// output is shared by a tracker and the trackers within it.
type output struct {
	mu     sync.Mutex // also held while reporting, so that sums arrive in order
	report ProgressFunc
	plan   *tracker
}

// newTracker returns a tracker of n steps, of which so many have a slice.
func newTracker(n, of int, report ProgressFunc) *tracker {
	if report == nil {
		report = func(float64, string) {}
	}
	t := &tracker{output: &output{report: report}, slices: make([]float64, n), of: of, finished: make([]bool, n)}
	t.plan = t
	return t
}

// within returns a tracker whose n slices together form slice i of t.
func (t *tracker) within(i, n int) *tracker {
	return &tracker{output: t.output, parent: t, slice: i, slices: make([]float64, n), of: n, finished: make([]bool, n)}
}

// step returns the progress function of step i. Reports after the step has finished are dropped.
func (t *tracker) step(i int, tool string) ProgressFunc {
	return func(fraction float64, message string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.finished[i] || t.parent != nil && t.parent.finished[t.slice] {
			return
		}
		t.fill(i, Fraction(fraction, 1))
		message = cmp.Or(message, "Working...")
		t.report(t.plan.fraction(), "["+tool+"] "+message)
	}
}

func (t *tracker) finish(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished[i] = true
	t.fill(i, 1)
}

func (t *tracker) fill(i int, fraction float64) {
	if fraction > t.slices[i] {
		t.sum += fraction - t.slices[i]
		t.slices[i] = fraction
	}
	if t.parent != nil {
		t.parent.fill(t.slice, t.fraction())
	}
}

func (t *tracker) fraction() float64 { return min(t.sum/float64(t.of), 1) }
