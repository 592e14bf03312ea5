// Package stats has the statistics of batches: intervals of rates, a paired test, percentiles and bootstrap intervals.
//
// Its functions are pure: the same numbers and seeds give the same results. Intervals are at the level of 95 %.
package stats

import "math"

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
