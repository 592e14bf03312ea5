package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// maxListed is how many failed lines a summary names.
const maxListed = 10

// maxRow bounds a line of a summary in bytes.
const maxRow = 4000

// WriteText writes a summary for a terminal.
func (f *Figures) WriteText(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		b.WriteString(TextRow(name, fmt.Sprintf(format, args...)))
	}
	f.rates(row)
	row("latency", "p50 %s, p95 %s, p99 %s, most %s", seconds(f.Latency.P50), seconds(f.Latency.P95), seconds(f.Latency.P99), seconds(f.Latency.Max))
	row("time", "planning %.1f ms, executing %.1f ms, answering %.1f ms, on average", f.Time.Plan, f.Time.Execute, f.Time.Synthesize)
	f.usage(row)
	for i, d := range f.Failures {
		if i == maxListed {
			row("", "… and %d more", f.Failed+f.Errors-maxListed)
			break
		}
		row(d.Outcome, "%s: %s", d.name(), strings.Join(d.Reasons, "; "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// TextRow is a line of a summary, without control characters.
func TextRow(name, text string) string {
	return fmt.Sprintf("%-11s %s\n", name, short.Line(text, maxRow))
}

// rates adds the rows with pass rates.
func (f *Figures) rates(row func(name, format string, args ...any)) {
	row("lines", "%d of %d cases: %s", f.Lines, f.Cases, f.outcomes())
	row("pass rate", "%s", percent(f.PassRate))
	if r := f.Repeated; r != nil {
		for _, p := range r.PassAll[1:] {
			row(fmt.Sprintf("pass^%d", p.K), "%.1f %%", 100*p.Rate)
		}
		row("flaky", "%d cases", r.FlakyCases)
	}
}

// usage adds the rows with tokens and cost.
func (f *Figures) usage(row func(name, format string, args ...any)) {
	row("tokens", "%d in, %d out", f.Tokens.Input, f.Tokens.Output)
	if f.Cost != nil {
		row("cost", "%.4f", *f.Cost)
	}
}

func (f *Figures) outcomes() string {
	text := fmt.Sprintf("%d passed, %d failed, %d errors", f.Passed, f.Failed, f.Errors)
	if f.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", f.Skipped)
	}
	return text
}

// name returns the name of the case, with the repeat if it is not the first.
func (d *Detail) name() string {
	if d.Repeat > 1 {
		return fmt.Sprintf("%s #%d", d.Case, d.Repeat)
	}
	return d.Case
}

// percent writes an interval of rates.
func percent(i stats.Interval) string {
	low, high := Outward(i)
	return fmt.Sprintf("%.1f %% (95 %%: %.1f to %.1f)", 100*i.Value, low, high)
}

// Outward returns the bounds of an interval in per cent, rounded to tenths away from its middle, so that a bound
// that is not 100 is not shown as such.
func Outward(i stats.Interval) (low, high float64) {
	return math.Floor(1000*i.Low) / 10, math.Ceil(1000*i.High) / 10
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.1f ms", 1000*s)
	}
	return fmt.Sprintf("%.2f s", s)
}
