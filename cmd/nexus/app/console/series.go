package console

import (
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/history"
)

// minutes of a series.
const minutes = 60

// series has counts and latencies of each of the last minutes, oldest first.
type series struct {
	Since   time.Time        `json:"since"`
	Queries [minutes]int     `json:"queries"`
	Failed  [minutes]int     `json:"queries_failed"`
	Calls   [minutes]int     `json:"calls"` // forwarded, and steps of queries
	Errors  [minutes]int     `json:"calls_failed"`
	P50     [minutes]float64 `json:"p50_ms"` // of queries
	P95     [minutes]float64 `json:"p95_ms"`

	durations [minutes][]float64
}

func (s *series) begin(since time.Time) { s.Since = since }

// add counts an entry.
func (s *series) add(e *history.Entry) {
	m := int(e.At.Sub(s.Since) / time.Minute)
	if m < 0 || m >= minutes {
		return
	}
	for _, u := range e.Uses {
		s.Calls[m] += u.Calls
		s.Errors[m] += u.Failed
	}
	if e.Kind != history.KindQuery {
		return
	}
	s.Queries[m]++
	if e.Outcome != history.OutcomeOK {
		s.Failed[m]++
	}
	s.durations[m] = append(s.durations[m], e.Duration)
}

// end computes the percentiles.
func (s *series) end() {
	for m, d := range s.durations {
		if len(d) > 0 {
			slices.Sort(d)
			s.P50[m], s.P95[m] = d[len(d)/2], d[len(d)*95/100]
		}
	}
}
