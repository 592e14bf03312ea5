package progress_test

import (
	"math"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/progress"
)

func TestFraction(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range []struct{ progress, total, want float64 }{
		{0, 10, 0},
		{5, 10, 0.5},
		{10, 10, 1},
		{11, 10, 1},
		{-1, 10, 0},
		{0.25, 0, 0.25}, // no total
		{3, 0, 1},
		{0.25, -4, 0.25},
		{0.25, nan, 0.25},
		{nan, 10, 0},
		{inf, 10, 1},
		{inf, inf, 0},
		{5, inf, 0},
	} {
		if got := progress.Fraction(row.progress, row.total); got != row.want {
			t.Errorf("Fraction(%v, %v): got %v, want %v", row.progress, row.total, got, row.want)
		}
	}
}

func TestSpan(t *testing.T) {
	var got float64
	var said string
	f := progress.Func(func(x float64, message string) { got, said = x, message })
	quarter := f.Span(0.25, 0.5)
	for _, row := range []struct {
		name    string
		f       progress.Func
		x, want float64
	}{
		{"start", quarter, 0, 0.25},
		{"middle", quarter, 0.5, 0.375},
		{"end", quarter, 1, 0.5},
		{"below", quarter, -1, 0.25},
		{"above", quarter, 2, 0.5},
		{"no number", quarter, math.NaN(), 0.25},
		{"all", f.Span(0, 1), 0.5, 0.5},
		{"nothing", f.Span(0.5, 0.5), 0.75, 0.5},
		{"nested", quarter.Span(0.5, 1), 0.5, 0.4375},
	} {
		got, said = -1, ""
		if row.f(row.x, row.name); got != row.want || said != row.name {
			t.Errorf("%s: got %v and %q for %v, want %v and the message", row.name, got, said, row.x, row.want)
		}
	}
	progress.Func(progress.Discard).Span(0, 1)(1, "nobody listens")
}
