// Package stats has the statistics of batches: intervals of rates, a paired test, percentiles and bootstrap intervals.
//
// Its functions are pure: the same numbers and seeds give the same results. Intervals are at the level of 95 %.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// z is the 97.5th percentile of the standard normal distribution.
const z = 1.959963984540054

// Interval is an estimate with its bounds.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Wilson is the score interval of a rate without continuity correction (Wilson, J. Am. Stat. Assoc. 22:209, 1927).
// Without trials it is 0 to 1.
func Wilson(successes, trials int) Interval {
	if trials == 0 {
		return Interval{High: 1}
	}
	return wilson(float64(successes)/float64(trials), float64(trials))
}

func wilson(p, n float64) Interval {
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return Interval{Value: p, Low: max(0, (middle-half)/scale), High: min(1, (middle+half)/scale)}
}

// Cluster are the trials of one case.
type Cluster struct {
	Successes, Trials int
}

// Clustered is the interval of a rate whose trials depend on each other within clusters. Wilson's interval is taken
// with the effective number of trials, p(1-p)/v, where v is the cluster-robust variance of the rate (the ratio
// estimator of Cochran, Sampling Techniques, 3rd ed. 1977, section 3.12). The effective number lies between 1 and the
// number of trials; where v says nothing, because all trials came out alike, it is the number of clusters.
func Clustered(clusters []Cluster) Interval {
	var successes, trials, used int
	for _, c := range clusters {
		successes += c.Successes
		trials += c.Trials
		if c.Trials > 0 {
			used++
		}
	}
	if trials == 0 || trials == used { // each stands for itself
		return Wilson(successes, trials)
	}
	n := float64(trials)
	p := float64(successes) / n
	v := variance(clusters, p, used, n)
	effective := float64(used)
	if v > 0 {
		effective = min(max(p*(1-p)/v, 1), n)
	}
	return wilson(p, effective)
}

// variance is the cluster-robust variance of a rate.
func variance(clusters []Cluster, p float64, used int, trials float64) float64 {
	if used < 2 {
		return 0
	}
	sum := 0.0
	for _, c := range clusters {
		d := float64(c.Successes) - p*float64(c.Trials)
		sum += d * d
	}
	k := float64(used)
	return k / (k - 1) * sum / (trials * trials)
}

// PassAll is the probability that k repeats of a case all pass, averaged over the cases that have k repeats: pass^k of
// Yao et al., τ-bench, 2024 (arXiv:2406.12045), C(c,k)/C(n,k) for c passes in n repeats. ok is false where no case has
// k repeats.
func PassAll(clusters []Cluster, k int) (p float64, ok bool) {
	n := 0
	for _, c := range clusters {
		if c.Trials < k {
			continue
		}
		n++
		share := 1.0
		for i := range k {
			share *= max(0, float64(c.Successes-i)) / float64(c.Trials-i)
		}
		p += share
	}
	if n == 0 {
		return 0, false
	}
	return p / float64(n), true
}

// McNemar is the two-sided exact P value of a paired test: worse pairs have become worse, better ones better, and
// without a difference each is as likely as the other (McNemar, Psychometrika 12:153, 1947).
func McNemar(worse, better int) float64 {
	n := worse + better
	if n == 0 {
		return 1
	}
	tail := 0.0
	for k := range min(worse, better) + 1 {
		tail += math.Exp(logChoose(n, k) - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

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

// Pairs are two measurements of the same lines, in the same order.
type Pairs struct {
	A, B []float64

	// Cases are the numbers of the lines' cases, ascending from 0; nil = each line is a case of its own. Lines of a case
	// depend on each other, so the bootstrap draws whole cases, but lines if there is only one case.
	Cases []int
}

// PercentileRatio is the ratio of a percentile of B to that of A, with the percentile interval of the bootstrap over
// cases (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13). ok is false where that of A is 0.
func (p Pairs) PercentileRatio(q float64, seed uint64) (ratio Interval, ok bool) {
	orderA, orderB := order(p.A), order(p.B)
	n := len(p.A)
	if n == 0 || p.A[orderA[rank(n, q)]] == 0 {
		return ratio, false
	}
	ratio.Value = p.B[orderB[rank(n, q)]] / p.A[orderA[rank(n, q)]]
	ratio.Low, ratio.High = p.bootstrap(seed, func(weights []uint16) float64 {
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
		i.Low, i.High = p.bootstrap(seed, func(weights []uint16) float64 {
			sum := 0.0
			for i, w := range weights {
				sum += float64(w) * (p.B[i] - p.A[i])
			}
			return sum / float64(total(weights))
		})
	}
	return i
}

// bootstrap returns the 2.5th and 97.5th percentile of a statistic over resamples, each of which is how often each line
// is drawn.
func (p Pairs) bootstrap(seed uint64, statistic func(weights []uint16) float64) (low, high float64) {
	n := len(p.A)
	weights := make([]uint16, n)
	drawn, cases := weights, []int(nil) // how often each case is drawn
	if len(p.Cases) > 0 && p.Cases[n-1] > 0 {
		cases = p.Cases
		drawn = make([]uint16, cases[n-1]+1)
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(drawn))))
	values := make([]float64, max(leastSets, min(resamples, most/n)))
	for i := range values {
		clear(drawn)
		for range drawn {
			drawn[random.IntN(len(drawn))]++
		}
		for line, c := range cases {
			weights[line] = drawn[c]
		}
		values[i] = statistic(weights)
	}
	slices.Sort(values)
	return Percentile(values, 0.025), Percentile(values, 0.975)
}

func total(weights []uint16) (sum int) {
	for _, w := range weights {
		sum += int(w)
	}
	return sum
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
	left := rank(total(weights), q) + 1
	for _, i := range order {
		if left -= int(weights[i]); left <= 0 {
			return values[i]
		}
	}
	return 0
}
