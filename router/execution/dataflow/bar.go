package dataflow

import (
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/progress"
)

// A bar adds up how far the steps of a plan are. Each has its own slice of 1/n; a slice never shrinks,
// so that a retry does not move the bar back, and is full once its step has finished.
type bar struct {
	mu       sync.Mutex // also held while reporting, so that sums arrive in order
	out      progress.Func
	slices   []float64
	finished []bool
	sum      float64
}

func newBar(n int, out progress.Func) *bar {
	if out == nil {
		out = progress.Discard
	}
	return &bar{out: out, slices: make([]float64, n), finished: make([]bool, n)}
}

// step returns where the step reports to. Reports that come after it has finished are dropped.
func (b *bar) step(i int, tool string) progress.Func {
	return func(fraction float64, message string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.finished[i] {
			return
		}
		b.fill(i, progress.Fraction(fraction, 1))
		if message == "" {
			message = "Working..."
		}
		b.out(min(b.sum/float64(len(b.slices)), 1), "["+tool+"] "+message)
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
}
