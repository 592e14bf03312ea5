// Package compare compares two results files, pairing lines by case and repeat.
package compare

import (
	"cmp"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

// Figures are what compare --json prints. Latencies are in seconds.
type Figures struct {
	A          Side         `json:"a"`
	B          Side         `json:"b"`
	Pairs      int          `json:"pairs"`
	Only       Only         `json:"only"` // lines without a partner
	Flips      Flips        `json:"flips"`
	Latency    Latency      `json:"latency"`
	Tokens     Difference   `json:"tokens"`
	Cost       *Difference  `json:"cost,omitempty"`
	Plans      int          `json:"plans_changed"` // pairs whose plans differ
	Same       bool         `json:"same_fingerprint"`
	Flipped    []Flip       `json:"flipped"` // at most maxFlips
	Gates      []string     `json:"gates_failed"`
	Difference float64      `json:"pass_rate_difference"` // of pairs, B less A
	Resolution *Sensitivity `json:"sensitivity,omitempty"`
}

// Side is one of the files.
type Side struct {
	Path string `json:"path"`
	report.Counts
	PassRate stats.Interval `json:"pass_rate"`
	Latency  report.Latency `json:"latency"`
}

// Only counts lines without a partner.
type Only struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Flips counts pairs that passed in one file only. The P value is from McNemar's exact test over cases: a case is worse
// if fewer of its repeats pass.
type Flips struct {
	ToFail      int     `json:"to_fail"`
	ToPass      int     `json:"to_pass"`
	WorseCases  int     `json:"worse_cases"`
	BetterCases int     `json:"better_cases"`
	P           float64 `json:"p"`
}

// Sensitivity is the number of cases needed to find a difference of five points in 80 % of comparisons.
type Sensitivity struct {
	Points float64 `json:"points"`
	Cases  int     `json:"cases_needed"`
}

// Latency compares percentiles: B relative to A.
type Latency struct {
	P50 *stats.Interval `json:"p50_ratio,omitempty"`
	P95 *stats.Interval `json:"p95_ratio,omitempty"`
}

// Difference is the mean of B less that of A, for one line.
type Difference struct {
	stats.Interval
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Flip is a pair that passed in one file only.
type Flip struct {
	To       string        `json:"to"` // fail or pass
	A        report.Detail `json:"a"`
	B        report.Detail `json:"b"`
	Diverges *Divergence   `json:"diverges,omitempty"` // nil = the plans are the same
}

// Divergence is the first step that differs. A side without that step is empty.
type Divergence struct {
	Step int    `json:"step"` // from 1
	A    string `json:"a"`
	B    string `json:"b"`
}

const (
	maxFlips = 200
	seed     = 20250101
	points   = 0.05
)

// Compare compares two batches. It reads the lines that it shows again.
func Compare(a, b *report.Batch, gates []report.Gate) (*Figures, error) {
	pairs, only := match(a, b)
	f := &Figures{
		A: side(a), B: side(b), Pairs: len(pairs), Only: only, Flipped: []Flip{}, Gates: []string{},
		Same: slices.Equal(a.Fingerprints, b.Fingerprints),
	}
	f.count(pairs)
	f.measure(a, b, pairs)
	var err error
	if f.Flipped, err = flips(a, b, pairs); err != nil {
		return nil, err
	}
	metrics := b.Metrics()
	metrics[report.FlippedToFail], metrics[report.FlippedToPass] = float64(f.Flips.ToFail), float64(f.Flips.ToPass)
	f.Gates = append(f.Gates, report.Judge(gates, a.Metrics(), metrics)...)
	return f, nil
}

func side(b *report.Batch) Side {
	return Side{Path: b.Path, Counts: b.Counts(), PassRate: stats.Clustered(b.Clusters()), Latency: b.Latency()}
}

// pair are the lines of the same case and repeat.
type pair struct {
	name string
	a, b report.Row
}

func (p pair) flipped() bool { return p.judged() && p.a.Passed() != p.b.Passed() }

func (p pair) judged() bool { return p.a.Judged() && p.b.Judged() }

// match pairs lines, in the order of case and repeat.
func match(a, b *report.Batch) (pairs []pair, only Only) {
	type key struct {
		name   string
		repeat int32
	}
	rows := make(map[key]report.Row, len(a.Rows))
	for _, r := range a.Rows {
		rows[key{a.Cases[r.Case], r.Repeat}] = r
	}
	for _, r := range b.Rows {
		name := b.Cases[r.Case]
		if other, found := rows[key{name, r.Repeat}]; found {
			pairs = append(pairs, pair{name, other, r})
		}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.a.Repeat, y.a.Repeat))
	})
	return pairs, Only{A: len(a.Rows) - len(pairs), B: len(b.Rows) - len(pairs)}
}

// count counts flips, by pair and by case.
func (f *Figures) count(pairs []pair) {
	judged, cases := 0, 0
	for begin := 0; begin < len(pairs); {
		end, balance := begin, 0
		for ; end < len(pairs) && pairs[end].name == pairs[begin].name; end++ {
			p := pairs[end]
			if p.a.Plan != p.b.Plan {
				f.Plans++
			}
			if p.judged() {
				judged++
			}
			switch {
			case !p.flipped():
			case p.a.Passed():
				f.Flips.ToFail++
				balance--
			default:
				f.Flips.ToPass++
				balance++
			}
		}
		cases++
		switch {
		case balance < 0:
			f.Flips.WorseCases++
		case balance > 0:
			f.Flips.BetterCases++
		}
		begin = end
	}
	f.Flips.P = stats.McNemar(f.Flips.WorseCases, f.Flips.BetterCases)
	if judged > 0 {
		f.Difference = float64(f.Flips.ToPass-f.Flips.ToFail) / float64(judged)
		discordant := float64(f.Flips.WorseCases+f.Flips.BetterCases) / float64(cases)
		f.Resolution = &Sensitivity{Points: 100 * points, Cases: stats.Needed(discordant, points)}
	}
}

// measure compares latency, tokens and cost of the pairs.
func (f *Figures) measure(a, b *report.Batch, pairs []pair) {
	var latency, tokens, cost stats.Pairs
	for _, p := range pairs {
		if !p.judged() {
			continue
		}
		latency.A, latency.B = append(latency.A, p.a.Seconds), append(latency.B, p.b.Seconds)
		tokens.A, tokens.B = append(tokens.A, float64(p.a.Tokens)), append(tokens.B, float64(p.b.Tokens))
		cost.A, cost.B = append(cost.A, p.a.Cost), append(cost.B, p.b.Cost)
	}
	if ratio, ok := latency.PercentileRatio(0.50, seed); ok {
		f.Latency.P50 = &ratio
	}
	if ratio, ok := latency.PercentileRatio(0.95, seed); ok {
		f.Latency.P95 = &ratio
	}
	f.Tokens = Difference{tokens.MeanDifference(seed), stats.Mean(tokens.A), stats.Mean(tokens.B)}
	if a.Priced && b.Priced {
		f.Cost = &Difference{cost.MeanDifference(seed), stats.Mean(cost.A), stats.Mean(cost.B)}
	}
}
