package eval

import (
	"slices"
	"time"
)

// percentile returns the p-quantile (0 to 1) of durations in milliseconds; 0 if there are none.
func percentile(times []time.Duration, p float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	i := min(int(p*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}
