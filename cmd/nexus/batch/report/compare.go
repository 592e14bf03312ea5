package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

// Comparison are what compare --json prints. Latencies are in seconds.
type Comparison struct {
	A          Side           `json:"a"`
	B          Side           `json:"b"`
	Pairs      int            `json:"pairs"`
	Only       Only           `json:"only"` // lines without a partner
	Differs    []Aspect       `json:"differs"`
	Flips      Flips          `json:"flips"`
	Latency    LatencyRatios  `json:"latency"`
	Tokens     Difference     `json:"tokens"`
	Cost       *Difference    `json:"cost,omitempty"`
	Plans      int            `json:"plans_changed"` // pairs whose plans differ
	Same       bool           `json:"same_fingerprint"`
	Flipped    []*FlippedCase `json:"flipped"` // with at most maxFlips pairs
	Gates      []string       `json:"gates_failed"`
	Difference float64        `json:"pass_rate_difference"` // of pairs, B less A

	sides [2]*Batch
}

// Side is one of the files.
type Side struct {
	Path string `json:"path"`
	Counts
	PassRate stats.Interval `json:"pass_rate"`
	Latency  Latency        `json:"latency"`
}

// Only counts lines without a partner.
type Only struct {
	A int `json:"a"`
	B int `json:"b"`
}

// LatencyRatios compares percentiles: B relative to A.
type LatencyRatios struct {
	P50 *stats.Interval `json:"p50_ratio,omitempty"`
	P95 *stats.Interval `json:"p95_ratio,omitempty"`
}

// Difference is the mean of B less that of A, for one line.
type Difference struct {
	stats.Interval
	A float64 `json:"a"`
	B float64 `json:"b"`
}

const seed = 20250101

// Compare compares two batches. It reads the lines that it shows again.
func Compare(a, b *Batch, gates []Gate) (*Comparison, error) {
	pairs, only := match(a, b)
	f := &Comparison{
		A: side(a), B: side(b), Pairs: len(pairs), Only: only, Gates: []string{},
		Same: slices.Equal(a.Fingerprints, b.Fingerprints), Differs: aspects(a, b, pairs), sides: [2]*Batch{a, b},
	}
	f.count(pairs)
	f.measure(a, b, pairs)
	var err error
	if f.Flipped, err = flips(a, b, pairs); err != nil {
		return nil, err
	}
	metrics := b.Metrics()
	metrics[FlippedToFail], metrics[FlippedToPass] = float64(f.Flips.ToFail), float64(f.Flips.ToPass)
	f.Gates = append(f.Gates, Judge(gates, a.Metrics(), metrics)...)
	return f, nil
}

func side(b *Batch) Side {
	return Side{Path: b.Path, Counts: b.Counts(), PassRate: stats.Clustered(b.Clusters()), Latency: b.Latency()}
}

// pair are the lines of the same case and repeat.
type pair struct {
	name string
	a, b *Row
}

func (p pair) flipped() bool { return p.judged() && p.a.Passed() != p.b.Passed() }

func (p pair) judged() bool { return p.a.Judged() && p.b.Judged() }

// match pairs lines, in the order of case and repeat.
func match(a, b *Batch) (pairs []*pair, only Only) {
	type key struct {
		name   string
		repeat int32
	}
	rows := make(map[key]*Row, len(a.Rows))
	for _, r := range a.Rows {
		rows[key{a.Cases[r.Case], r.Repeat}] = r
	}
	for _, r := range b.Rows {
		name := b.Cases[r.Case]
		if other, found := rows[key{name, r.Repeat}]; found {
			pairs = append(pairs, &pair{name, other, r})
		}
	}
	slices.SortFunc(pairs, func(x, y *pair) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.a.Repeat, y.a.Repeat))
	})
	return pairs, Only{A: len(a.Rows) - len(pairs), B: len(b.Rows) - len(pairs)}
}

// byCase yields the pairs of each case.
func byCase(pairs []*pair) iter.Seq[[]*pair] {
	return func(yield func([]*pair) bool) {
		for begin := 0; begin < len(pairs); {
			end := begin
			for end < len(pairs) && pairs[end].name == pairs[begin].name {
				end++
			}
			if !yield(pairs[begin:end]) {
				return
			}
			begin = end
		}
	}
}

// count counts flips, by pair and by case.
func (f *Comparison) count(pairs []*pair) {
	judged := 0
	for repeats := range byCase(pairs) {
		toFail, toPass := 0, 0
		for _, p := range repeats {
			if p.a.Plan != p.b.Plan {
				f.Plans++
			}
			if p.judged() {
				judged++
			}
			switch {
			case !p.flipped():
			case p.a.Passed():
				toFail++
			default:
				toPass++
			}
		}
		f.Flips.ToFail += toFail
		f.Flips.ToPass += toPass
		switch {
		case toFail > toPass:
			f.Flips.WorseCases++
		case toFail < toPass:
			f.Flips.BetterCases++
		case toFail > 0:
			f.Flips.MixedCases++
		}
	}
	f.Flips.P = stats.McNemar(f.Flips.WorseCases, f.Flips.BetterCases)
	if judged > 0 {
		f.Difference = float64(f.Flips.ToPass-f.Flips.ToFail) / float64(judged)
	}
}

// measure compares latency, tokens and cost of the pairs.
func (f *Comparison) measure(a, b *Batch, pairs []*pair) {
	var latency, tokens, cost stats.Pairs
	last, cases := "", 0
	for _, p := range pairs {
		if !p.judged() {
			continue
		}
		if p.name != last {
			last = p.name
			cases++
		}
		latency.Cases = append(latency.Cases, cases-1)
		latency.A, latency.B = append(latency.A, p.a.Seconds), append(latency.B, p.b.Seconds)
		tokens.A, tokens.B = append(tokens.A, float64(p.a.Tokens.Total())), append(tokens.B, float64(p.b.Tokens.Total()))
		cost.A, cost.B = append(cost.A, p.a.Cost), append(cost.B, p.b.Cost)
	}
	tokens.Cases, cost.Cases = latency.Cases, latency.Cases
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

// maxListedFlips is how many flipped cases a summary names.
const maxListedFlips = 20

// WriteText writes a summary for a terminal: what differs, what flipped, then the figures.
func (f *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		b.WriteString(textRow(name, fmt.Sprintf(format, args...)))
	}
	row("pairs", "%d; only in A %d, only in B %d", f.Pairs, f.Only.A, f.Only.B)
	for _, d := range f.Differs {
		if d.Differs {
			row("differs", "%s: A %s; B %s", d.Name, d.A, d.B)
		}
	}
	row("flipped", "%s", f.Flips.Text())
	for i, c := range f.Flipped {
		if i == maxListedFlips {
			row("", "… and %d more", f.Flips.Cases()-maxListedFlips)
			break
		}
		row(c.Label(), "%s", c.text())
	}
	row("pass rate", "A %s, B %s", rate(f.A.PassRate), rate(f.B.PassRate))
	row("latency", "p50 %s, p95 %s", ratio(f.Latency.P50), ratio(f.Latency.P95))
	row("tokens", "%s", f.Tokens.text("%.1f"))
	if f.Cost != nil {
		row("cost", "%s", f.Cost.text("%.5f"))
	}
	row("plans", "%d of %d differ", f.Plans, f.Pairs)
	_, err := io.WriteString(w, b.String())
	return err
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func rate(i stats.Interval) string {
	low, high := outward(i)
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*i.Value, low, high)
}

// ratio writes the latency of B relative to A.
func ratio(i *stats.Interval) string {
	if i == nil {
		return "unknown"
	}
	return fmt.Sprintf("×%.2f (95 %%: %.2f to %.2f)", i.Value, i.Low, i.High)
}

func (d *Difference) text(format string) string {
	form := strings.ReplaceAll("A #, B # a line; difference # (95 %%: # to #)", "#", format)
	return fmt.Sprintf(form, d.A, d.B, d.Value, d.Low, d.High)
}

//go:embed compare.html
var comparePage string

// WriteHTML writes one file that needs nothing else.
func (f *Comparison) WriteHTML(w io.Writer) error {
	return writePage(w, "Batch comparison", comparePage,
		map[string]any{"Figures": f, "Charts": charts(f.sides[0], f.sides[1])})
}
