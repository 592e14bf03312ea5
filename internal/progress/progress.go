// Package progress scales progress: see [Func.Span]. A [Func] is called concurrently.
package progress

// Func reports how much of a task is done, 0 to 1, and what is going on. It must not block.
type Func func(fraction float64, message string)

// Discard is a Func for callers without a listener.
func Discard(float64, string) {}

// Span returns a Func whose 0..1 covers lo..hi of f. Values outside 0..1 are clamped; NaN counts as 0.
func (f Func) Span(lo, hi float64) Func {
	return func(x float64, message string) { f(lo+(hi-lo)*clamp(x), message) }
}

// Fraction returns progress/total clamped to 0..1. A total that is zero, negative or absent (0) counts as 1.
func Fraction(progress, total float64) float64 {
	if !(total > 0) {
		total = 1
	}
	return clamp(progress / total)
}

func clamp(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}
