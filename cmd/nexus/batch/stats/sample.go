package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Percentile returns the smallest value that at least the share q of sorted values do not exceed; 0 without values.
func Percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[rank(len(sorted), q)]
}

func rank(n int, q float64) int {
	return min(max(int(math.Ceil(q*float64(n)-1e-9))-1, 0), n-1)
}

// Mean is 0 without values.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

const (
	resamples = 2000
	most      = 20_000_000 // draws of one bootstrap; large samples get fewer resamples, but leastSets
	leastSets = 200
)

// Pairs are two measurements of the same cases, in the same order.
type Pairs struct {
	A, B []float64
}

// PercentileRatio is the ratio of a percentile of B to that of A, with the percentile interval of the bootstrap over
// pairs (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13). ok is false where that of A is 0.
func (p Pairs) PercentileRatio(q float64, seed uint64) (ratio Interval, ok bool) {
	orderA, orderB := order(p.A), order(p.B)
	n := len(p.A)
	if n == 0 || p.A[orderA[rank(n, q)]] == 0 {
		return ratio, false
	}
	ratio.Value = p.B[orderB[rank(n, q)]] / p.A[orderA[rank(n, q)]]
	ratio.Low, ratio.High = bootstrap(n, seed, func(weights []uint16) float64 {
		a := weighted(p.A, orderA, weights, q)
		if a == 0 {
			return math.Inf(1)
		}
		return weighted(p.B, orderB, weights, q) / a
	})
	return ratio, true
}

// MeanDifference is the mean of B less that of A, with its bootstrap interval.
func (p Pairs) MeanDifference(seed uint64) Interval {
	n := len(p.A)
	i := Interval{Value: Mean(p.B) - Mean(p.A)}
	if n > 0 {
		i.Low, i.High = bootstrap(n, seed, func(weights []uint16) float64 {
			sum := 0.0
			for i, w := range weights {
				sum += float64(w) * (p.B[i] - p.A[i])
			}
			return sum / float64(n)
		})
	}
	return i
}

// bootstrap returns the 2.5th and 97.5th percentile of a statistic over resamples, each of which is how often each of n
// items is drawn.
func bootstrap(n int, seed uint64, statistic func(weights []uint16) float64) (low, high float64) {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	sets := max(leastSets, min(resamples, most/n))
	values := make([]float64, sets)
	weights := make([]uint16, n)
	for i := range values {
		clear(weights)
		for range n {
			weights[random.IntN(n)]++
		}
		values[i] = statistic(weights)
	}
	slices.Sort(values)
	return Percentile(values, 0.025), Percentile(values, 0.975)
}

// order returns the indexes of values from the smallest to the largest.
func order(values []float64) []int32 {
	all := make([]int32, len(values))
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortFunc(all, func(a, b int32) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return int(a - b)
	})
	return all
}

// weighted is the percentile of a resample.
func weighted(values []float64, order []int32, weights []uint16, q float64) float64 {
	left := rank(len(values), q) + 1
	for _, i := range order {
		if left -= int(weights[i]); left <= 0 {
			return values[i]
		}
	}
	return 0
}
