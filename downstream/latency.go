package downstream

import (
	"slices"
	"time"
)

const latencyWindow = 256 // number of calls in the percentiles

// latencies keeps the durations of the last calls. The zero value is ready. It is not safe for concurrent use.
type latencies struct {
	ring [latencyWindow]time.Duration
	n    int // total number of calls
}

func (l *latencies) add(d time.Duration) {
	l.ring[l.n%latencyWindow] = d
	l.n++
}

// percentiles returns the median and the 95th percentile; zero before the first call.
func (l *latencies) percentiles() (p50, p95 time.Duration) {
	n := min(l.n, latencyWindow)
	if n == 0 {
		return 0, 0
	}
	sorted := slices.Clone(l.ring[:n])
	slices.Sort(sorted)
	return sorted[(n-1)*50/100], sorted[(n-1)*95/100]
}
