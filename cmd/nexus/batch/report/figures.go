package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

// Figures are what report --json prints. Rates are between 0 and 1, times in seconds unless their names say otherwise.
type Figures struct {
	Counts
	PassRate stats.Interval     `json:"pass_rate"` // at 95 %, clustered by case
	Repeated *Repeated          `json:"repeated,omitempty"`
	Latency  Latency            `json:"latency"`
	Time     Time               `json:"time"`
	Tokens   results.Tokens     `json:"tokens"`
	Cost     *float64           `json:"cost,omitempty"`
	Groups   map[string][]Group `json:"groups"`

	Slowest  []Detail `json:"slowest"`
	Failures []Detail `json:"failures"` // and errors
	Unmet    []Detail `json:"unmet"`

	Fingerprints []string `json:"fingerprints"`
}

// Counts are numbers of lines.
type Counts struct {
	Lines int `json:"lines"`
	Cases int `json:"cases"`
	results.Outcomes
}

// Repeated has figures over the repeats of cases.
type Repeated struct {
	PassAll    []PassAll `json:"pass_all"`
	Flaky      []string  `json:"flaky"` // cases that passed and failed, at most maxNamed
	FlakyCases int       `json:"flaky_cases"`
}

// PassAll is the probability that K repeats all pass.
type PassAll struct {
	K    int     `json:"k"`
	Rate float64 `json:"rate"`
}

// Latency of questions that were answered.
type Latency struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Time is the average time of each phase.
type Time struct {
	Plan       float64 `json:"plan_ms"`
	Execute    float64 `json:"execute_ms"`
	Synthesize float64 `json:"synthesize_ms"`
}

// Group counts the lines with a common tag, tool, server or reason. Reasons have no rate.
type Group struct {
	Name     string          `json:"name"`
	Lines    int             `json:"lines"`
	Passed   int             `json:"passed"`
	PassRate *stats.Interval `json:"pass_rate,omitempty"`
}

// How many lines and names a report shows.
const (
	maxSlowest  = 20
	maxFailures = 200
	maxUnmet    = 50
	maxNamed    = 100
	maxGroups   = 500
)

// Figures computes the figures and reads the lines that are shown.
func (b *Batch) Figures() (*Figures, error) {
	f := &Figures{Counts: b.Counts(), Groups: map[string][]Group{}, Fingerprints: b.Fingerprints}
	clusters := b.Clusters()
	f.PassRate = stats.Clustered(clusters)
	f.Repeated = b.repeated(clusters)
	f.Latency = b.Latency()
	answered := float64(max(f.Passed+f.Failed, 1))
	f.Time = Time{b.timings.Plan / answered, b.timings.Execute / answered, b.timings.Synthesize / answered}
	f.Tokens = results.Tokens{Input: b.Input, Output: b.Output}
	if b.Priced {
		cost := b.Cost()
		f.Cost = &cost
	}
	for kind, groups := range b.groups {
		f.Groups[kind] = list(kind, groups)
	}
	for _, shown := range []struct {
		rows []Row
		into *[]Detail
	}{
		{b.slowest(), &f.Slowest},
		{b.some(maxFailures, func(r Row) bool { return !r.Passed() && r.Judged() }), &f.Failures},
		{b.some(maxUnmet, func(r Row) bool { return r.Unmet }), &f.Unmet},
	} {
		var err error
		if *shown.into, err = b.Details(shown.rows); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Counts counts the lines.
func (b *Batch) Counts() Counts {
	c := Counts{Lines: len(b.Rows), Cases: len(b.Cases)}
	for _, r := range b.Rows {
		c.Count(r.Outcome)
	}
	return c
}

// Cost is the sum of all costs that are known.
func (b *Batch) Cost() float64 {
	sum := 0.0
	for _, r := range b.Rows {
		sum += r.Cost
	}
	return sum
}

// Latency returns the latency of the lines with an answer.
func (b *Batch) Latency() Latency {
	var seconds []float64
	for _, r := range b.Rows {
		if r.Outcome == results.Passed || r.Outcome == results.Failed {
			seconds = append(seconds, r.Seconds)
		}
	}
	slices.Sort(seconds)
	return Latency{
		P50: stats.Percentile(seconds, 0.50), P95: stats.Percentile(seconds, 0.95), P99: stats.Percentile(seconds, 0.99),
		Max: stats.Percentile(seconds, 1), Mean: stats.Mean(seconds),
	}
}

// repeated returns figures over repeats, or nil if no case was repeated.
func (b *Batch) repeated(clusters []stats.Cluster) *Repeated {
	most := 0
	for _, c := range clusters {
		most = max(most, c.Trials)
	}
	if most < 2 {
		return nil
	}
	r := &Repeated{PassAll: []PassAll{}, Flaky: []string{}}
	for k := 1; k <= most; k *= 2 {
		if rate, ok := stats.PassAll(clusters, k); ok {
			r.PassAll = append(r.PassAll, PassAll{k, rate})
		}
	}
	if most&(most-1) != 0 {
		if rate, ok := stats.PassAll(clusters, most); ok {
			r.PassAll = append(r.PassAll, PassAll{most, rate})
		}
	}
	for i, c := range clusters {
		if c.Successes > 0 && c.Successes < c.Trials {
			if r.FlakyCases++; len(r.Flaky) < maxNamed {
				r.Flaky = append(r.Flaky, b.Cases[i])
			}
		}
	}
	slices.Sort(r.Flaky)
	return r
}

// list returns groups in the order of their names, reasons by their number.
func list(kind string, groups map[string]*group) []Group {
	all := []Group{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		out := Group{Name: name, Lines: g.lines, Passed: g.passed}
		if kind != byReason {
			clusters := make([]stats.Cluster, 0, len(g.clusters))
			for _, i := range slices.Sorted(maps.Keys(g.clusters)) {
				clusters = append(clusters, g.clusters[i])
			}
			rate := stats.Clustered(clusters)
			out.PassRate = &rate
		}
		all = append(all, out)
	}
	if kind == byReason || len(all) > maxGroups {
		slices.SortStableFunc(all, func(a, b Group) int { return b.Lines - a.Lines })
	}
	return all[:min(len(all), maxGroups)]
}

// slowest returns the slowest rows, the slowest first.
func (b *Batch) slowest() []Row {
	rows := slices.Clone(b.Rows)
	slices.SortStableFunc(rows, func(x, y Row) int { return cmp.Compare(y.Seconds, x.Seconds) })
	return rows[:min(len(rows), maxSlowest)]
}

// some returns the first matching rows, by case and repeat.
func (b *Batch) some(most int, fits func(Row) bool) []Row {
	var rows []Row
	for _, r := range b.Rows {
		if fits(r) {
			rows = append(rows, r)
		}
	}
	b.sort(rows)
	return rows[:min(len(rows), most)]
}

// sort orders rows by case and repeat, so that the order in which questions were answered does not matter.
func (b *Batch) sort(rows []Row) {
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(b.Cases[x.Case], b.Cases[y.Case]), cmp.Compare(x.Repeat, y.Repeat))
	})
}
