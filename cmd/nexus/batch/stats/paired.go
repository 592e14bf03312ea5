package stats

import "math"

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

// power is the 80th percentile of the standard normal distribution.
const power = 0.8416212335729143

// Needed is how many pairs find a difference of rates with a power of 80 % at the level of 5 %, where discordant is the
// share of pairs that differ (Connor, Biometrics 43:207, 1987), with 2/difference pairs more for the exact test.
// discordant is raised to difference at least.
func Needed(discordant, difference float64) int {
	if difference <= 0 {
		return 0
	}
	d := max(discordant, difference)
	root := z*math.Sqrt(d) + power*math.Sqrt(max(0, d-difference*difference))
	return int(math.Ceil(root*root/(difference*difference) + 2/difference))
}
