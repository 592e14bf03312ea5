package dataflow

import (
	"cmp"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/progress"
)

// A bar adds up how far the steps of a plan are, or the elements of a loop within the slice of its step. Each has its
// own slice of 1/n; a slice never shrinks, so that a retry does not move the bar back, and is full once its step has
// finished.
type bar struct {
	*output
	parent *bar // nil for the plan
	place  int  // in the parent

	slices   []float64
	finished []bool
	sum      float64
}

// output is what a bar and those within it report to.
type output struct {
	mu     sync.Mutex // also held while reporting, so that sums arrive in order
	report progress.Func
	plan   *bar
}

func newBar(n int, report progress.Func) *bar {
	if report == nil {
		report = progress.Discard
	}
	b := &bar{output: &output{report: report}, slices: make([]float64, n), finished: make([]bool, n)}
	b.plan = b
	return b
}

// within returns a bar of n slices that together are the slice of the step.
func (b *bar) within(i, n int) *bar {
	return &bar{output: b.output, parent: b, place: i, slices: make([]float64, n), finished: make([]bool, n)}
}

// step returns where the step reports to. Reports that come after it has finished are dropped.
func (b *bar) step(i int, tool string) progress.Func {
	return func(fraction float64, message string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.finished[i] || b.parent != nil && b.parent.finished[b.place] {
			return
		}
		b.fill(i, progress.Fraction(fraction, 1))
		message = cmp.Or(message, "Working...")
		b.report(b.plan.fraction(), "["+tool+"] "+message)
	}
}

func (b *bar) finish(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished[i] = true
	b.fill(i, 1)
}

func (b *bar) fill(i int, fraction float64) {
	if fraction > b.slices[i] {
		b.sum += fraction - b.slices[i]
		b.slices[i] = fraction
	}
	if b.parent != nil {
		b.parent.fill(b.place, b.fraction())
	}
}

func (b *bar) fraction() float64 { return min(b.sum/float64(len(b.slices)), 1) }
