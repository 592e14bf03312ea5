package compare

import (
	"fmt"
	"io"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

// maxListed is how many flipped pairs a summary names.
const maxListed = 20

// WriteText writes a summary for a terminal.
func (f *Figures) WriteText(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		b.WriteString(report.TextRow(name, fmt.Sprintf(format, args...)))
	}
	row("pairs", "%d; only in A %d, only in B %d", f.Pairs, f.Only.A, f.Only.B)
	row("pass rate", "A %s, B %s", rate(f.A.PassRate), rate(f.B.PassRate))
	row("flipped", "%d to fail, %d to pass (%s)", f.Flips.ToFail, f.Flips.ToPass, f.Flips.Verdict())
	row("latency", "p50 %s, p95 %s", ratio(f.Latency.P50), ratio(f.Latency.P95))
	row("tokens", "%s", f.Tokens.text("%.1f"))
	if f.Cost != nil {
		row("cost", "%s", f.Cost.text("%.5f"))
	}
	row("plans", "%d of %d differ", f.Plans, f.Pairs)
	if r := f.Resolution; r != nil {
		row("sample", "%d cases find a difference of %.0f points with a power of 80 %%", r.Cases, r.Points)
	}
	for i, flip := range f.Flipped {
		if i == maxListed {
			row("", "… and %d more", f.Flips.ToFail+f.Flips.ToPass-maxListed)
			break
		}
		row("to "+flip.To, "%s", flip.text())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict states the result of the test of the flips.
func (f Flips) Verdict() string {
	switch {
	case f.ToFail+f.ToPass == 0:
		return "no difference"
	case f.P < 0.05:
		return fmt.Sprintf("significant, P = %.3g", f.P)
	}
	return fmt.Sprintf("may be chance, P = %.3g", f.P)
}

func (f *Flip) text() string {
	text := fmt.Sprintf("%s #%d", f.A.Case, f.A.Repeat)
	failed := f.B
	if f.To == "pass" {
		failed = f.A
	}
	if len(failed.Reasons) > 0 {
		text += ": " + failed.Reasons[0]
	}
	if d := f.Diverges; d != nil {
		text += fmt.Sprintf("; step %d: %s → %s", d.Step, orNone(d.A), orNone(d.B))
	}
	return text
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func rate(i stats.Interval) string {
	low, high := report.Outward(i)
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
