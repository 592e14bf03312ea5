package stats

import (
	"math"
	"testing"
)

// The renters of 25 clusters of residents in Scheaffer, Mendenhall and Ott, Elementary Survey Sampling, section 8.6
// (estimation of a population proportion): a share of 0.48 whose variance is 0.00055 with the correction for 25 of 415
// clusters, which a batch does not have.
func TestVariance(t *testing.T) {
	residents := []int{8, 12, 4, 5, 6, 6, 7, 5, 8, 3, 2, 6, 5, 10, 9, 3, 6, 5, 5, 4, 6, 8, 7, 3, 8}
	renters := []int{4, 7, 1, 3, 3, 4, 4, 2, 3, 2, 1, 3, 2, 5, 4, 1, 4, 2, 3, 1, 3, 3, 4, 0, 3}
	var clusters []Cluster
	for i := range residents {
		clusters = append(clusters, Cluster{Successes: renters[i], Trials: residents[i]})
	}
	v := variance(clusters, 72.0/151, len(clusters), 151)
	if got := (1 - 25.0/415) * v; math.Abs(got-0.00055) > 0.000005 {
		t.Errorf("got variance %.6f, want 0.00055", got)
	}
}
