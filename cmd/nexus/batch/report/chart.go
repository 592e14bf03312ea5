package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

// chart is a drawing of A and B that shared.html writes as SVG. Its caption says the same in words.
type chart struct {
	ID      string
	Title   string
	Caption string
	Height  float64
	Grid    []gridLine
	Curves  []curve
	Words   []word
}

// gridLine is a value of an axis: a path, and where its label is.
type gridLine struct {
	D string
	word
}

// curve is what is drawn of A or B: a class of style.css and the data of a path.
type curve struct{ Class, D string }

// word is text at a point.
type word struct {
	X, Y   float64
	Anchor string // start, middle or end
	Text   string
}

// The plane of a chart: its coordinates are pixels at its usual width.
const (
	chartWidth = 340
	chartLeft  = 48
	chartRight = 318
	chartTop   = 12
	chartFloor = 172 // of curves
	labelBelow = 18
)

// charts draws what may have changed from A to B.
func charts(a, b *Batch) []chart {
	all := []chart{rates(a, b)}
	for _, c := range []struct {
		id, title string
		scale     func(lo, hi float64) axis
		text      func(float64) string
		number    func(*Row) float64
	}{
		{"latency", "Latency", logAxis, shortSeconds, func(r *Row) float64 { return r.Seconds }},
		{"tokens", "Tokens", linearAxis, number, func(r *Row) float64 { return float64(r.Tokens.Total()) }},
	} {
		x, y := a.answered(c.number), b.answered(c.number)
		if len(x) == 0 || len(y) == 0 || max(x[len(x)-1], y[len(y)-1]) <= 0 {
			continue
		}
		scale := c.scale(min(x[0], y[0]), max(x[len(x)-1], y[len(y)-1]))
		said := func(v []float64) string {
			return "p50 " + c.text(stats.Percentile(v, 0.5)) + ", p95 " + c.text(stats.Percentile(v, 0.95))
		}
		one := chart{
			ID: c.id, Title: c.title + " of answers", Height: chartFloor + labelBelow + 8, Grid: scale.grid(chartFloor, c.text),
			Caption: fmt.Sprintf("Share of the answers up to a value, A solid, B dashed. A: %s. B: %s.", said(x), said(y)),
			Curves:  []curve{{"a", steps(x, scale)}, {"b", steps(y, scale)}},
		}
		for _, share := range [...]float64{0, 0.5, 1} {
			h := height(share)
			one.Grid = append(one.Grid, gridLine{
				fmt.Sprintf("M%d %g H%d", chartLeft, h, chartRight),
				word{chartLeft - 6, h + 4, "end", fmt.Sprintf("%.0f %%", 100*share)},
			})
		}
		// A is named above its curve, B below it, so that the names of equal curves do not meet.
		one.Words = []word{
			{scale.at(stats.Percentile(x, 0.75)) - 6, height(0.75) - 2, "end", "A"},
			{scale.at(stats.Percentile(y, 0.25)) + 6, height(0.25) + 14, "start", "B"},
		}
		all = append(all, one)
	}
	return all
}

// rates draws the pass rates with their intervals.
func rates(a, b *Batch) chart {
	const floor = 92
	scale := axis{0, 1, func(v float64) float64 { return v }, []float64{0, 0.25, 0.5, 0.75, 1}}
	c := chart{ID: "rates", Title: "Pass rate", Height: floor + labelBelow + 8, Grid: scale.grid(floor, func(v float64) string {
		return fmt.Sprintf("%.0f %%", 100*v)
	})}
	c.Caption = "With 95 % intervals."
	for i, side := range []struct {
		name, class, mark string // the mark is a circle or a diamond
		batch             *Batch
	}{
		{"A", "a", "m-5 0 a5 5 0 1 0 10 0 a5 5 0 1 0 -10 0", a},
		{"B", "b", "m-6 0 l6 -6 l6 6 l-6 6 z", b},
	} {
		r, y := stats.Clustered(side.batch.Clusters()), float64(32+36*i)
		low, high := scale.at(r.Low), scale.at(r.High)
		c.Curves = append(c.Curves,
			curve{side.class, fmt.Sprintf("M%g %g H%g M%g %g v12 M%g %g v12", low, y, high, low, y-6, high, y-6)},
			curve{side.class + " mark", fmt.Sprintf("M%g %g %s", scale.at(r.Value), y, side.mark)})
		c.Words = append(c.Words, word{chartLeft - 14, y + 4, "end", side.name})
		c.Caption += " " + side.name + ": " + rate(r) + "."
	}
	return c
}

// axis places values between chartLeft and chartRight.
type axis struct {
	lo, hi float64
	of     func(float64) float64
	ticks  []float64
}

func (s axis) at(v float64) float64 {
	share := (s.of(min(max(v, s.lo), s.hi)) - s.of(s.lo)) / (s.of(s.hi) - s.of(s.lo))
	return tenth(chartLeft + share*(chartRight-chartLeft))
}

// grid draws the values of the axis.
func (s axis) grid(floor float64, text func(float64) string) (all []gridLine) {
	for _, v := range s.ticks {
		x := s.at(v)
		all = append(all, gridLine{fmt.Sprintf("M%g %d V%g", x, chartTop, floor), word{x, floor + labelBelow, "middle", text(v)}})
	}
	return all
}

// maxTicks is how many values an axis names.
const maxTicks = 5

// linearAxis begins at 0 and ends at a round number.
func linearAxis(_, hi float64) axis {
	step := math.Pow(10, math.Floor(math.Log10(hi)))
	for _, part := range [...]float64{0.5, 1, 2, 5} {
		if hi <= part*step*(maxTicks-1) {
			step *= part
			break
		}
	}
	ticks := []float64{0}
	for last := 0.0; last < hi; {
		last += step
		ticks = append(ticks, last)
	}
	return axis{0, ticks[len(ticks)-1], func(v float64) float64 { return v }, ticks}
}

// logAxis is logarithmic, from one round number to another. lo may be 0. Results may be edited: values that no clock
// measures are drawn at its ends.
func logAxis(lo, hi float64) axis {
	hi = min(max(hi, 1e-9), 1e12)
	lo = min(max(lo, hi/1e6), hi)
	var ticks []float64
	for _, round := range []struct {
		parts []float64
		base  float64
	}{{[]float64{1, 2, 5}, 10}, {[]float64{1, 3}, 10}, {[]float64{1}, 10}, {[]float64{1}, 100}} {
		ticks = nil
		for power := math.Pow(10, math.Floor(math.Log10(lo))) / round.base; power <= hi*round.base; power *= round.base {
			for _, part := range round.parts {
				ticks = append(ticks, part*power)
			}
		}
		first, _ := slices.BinarySearch(ticks, lo)
		last, _ := slices.BinarySearch(ticks, hi)
		if ticks = ticks[first-1 : last+1]; len(ticks) <= maxTicks {
			break
		}
	}
	return axis{ticks[0], ticks[len(ticks)-1], math.Log, ticks}
}

// height is where a share of the answers is drawn.
func height(share float64) float64 { return tenth(chartFloor - share*(chartFloor-chartTop)) }

// steps draws how large a share of sorted values does not exceed each value, in at most a hundred steps.
func steps(sorted []float64, scale axis) string {
	n := min(len(sorted), 100)
	var d strings.Builder
	fmt.Fprintf(&d, "M%d %d", chartLeft, chartFloor)
	for i := 1; i <= n; i++ {
		share := float64(i) / float64(n)
		fmt.Fprintf(&d, "H%gV%g", scale.at(stats.Percentile(sorted, share)), height(share))
	}
	fmt.Fprintf(&d, "H%d", chartRight)
	return d.String()
}

func tenth(v float64) float64 { return math.Round(10*v) / 10 }

func shortSeconds(s float64) string {
	if s < 1 {
		return number(tenth(1000*s)) + " ms"
	}
	return number(s) + " s"
}
