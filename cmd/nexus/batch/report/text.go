package report

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxListed is how many failed lines a summary names.
const maxListed = 10

// maxRow bounds a line of a summary in bytes.
const maxRow = 4000

// WriteText writes a summary for a terminal, failures first.
func (f *Figures) WriteText(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		b.WriteString(textRow(name, fmt.Sprintf(format, args...)))
	}
	for i, d := range f.Failures {
		if i == maxListed {
			row("", "… and %d more", f.Failed+f.Errors-maxListed)
			break
		}
		row(d.Outcome, "%s: %s", d.name(), strings.Join(d.Reasons, "; "))
	}
	f.rates(row)
	row("latency", "p50 %s, p95 %s, p99 %s, most %s", seconds(f.Latency.P50), seconds(f.Latency.P95), seconds(f.Latency.P99), seconds(f.Latency.Max))
	row("time", "planning %.1f ms, executing %.1f ms, answering %.1f ms, on average", f.Time.Plan, f.Time.Execute, f.Time.Synthesize)
	f.usage(row)
	_, err := io.WriteString(w, b.String())
	return err
}

// textRow is a line of a summary, without control characters.
func textRow(name, text string) string {
	return fmt.Sprintf("%-11s %s\n", name, texts.Line(text, maxRow))
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
	low, high := outward(i)
	return fmt.Sprintf("%.1f %% (95 %%: %.1f to %.1f)", 100*i.Value, low, high)
}

// outward returns the bounds of an interval in per cent, rounded to tenths away from its middle, so that a bound
// that is not 100 is not shown as such.
func outward(i stats.Interval) (low, high float64) {
	return math.Floor(1000*i.Low) / 10, math.Ceil(1000*i.High) / 10
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.1f ms", 1000*s)
	}
	return fmt.Sprintf("%.2f s", s)
}

// WriteMarkdown writes tables for a pull request, failures first.
func (f *Figures) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## Batch: %.1f %% passed\n", 100*f.PassRate.Value)
	if len(f.Failures) > 0 {
		b.WriteString("\n| failed | why |\n|---|---|\n")
		for _, d := range f.Failures {
			fmt.Fprintf(&b, "| %s | %s |\n", cell(d.name()), cell(strings.Join(d.Reasons, "; ")))
		}
		if more := f.Failed + f.Errors - len(f.Failures); more > 0 {
			fmt.Fprintf(&b, "| … | %d more |\n", more)
		}
	}
	b.WriteString("\n| | |\n|---|---|\n")
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	f.rates(row)
	row("latency", "p50 %s, p95 %s, p99 %s", seconds(f.Latency.P50), seconds(f.Latency.P95), seconds(f.Latency.P99))
	f.usage(row)
	for _, kind := range kinds() {
		groups := f.Groups[kind]
		if len(groups) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n| %s | lines | passed |\n|---|---:|---:|\n", kind)
		for _, g := range groups {
			fmt.Fprintf(&b, "| %s | %d | %d |\n", cell(g.Name), g.Lines, g.Passed)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// kinds are the kinds of groups, in the order of the report.
func kinds() []string { return []string{byReason, byTag, byTool, byServer} }

// cell escapes text for a table cell: one line, without Markdown and @mentions.
func cell(s string) string {
	s = texts.Line(s, maxRow)
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[").Replace(s)
}

// WriteJUnit writes a test case for each line, in the order of the file, and reads the file once more.
func (b *Batch) WriteJUnit(w io.Writer) error {
	out := bufio.NewWriter(w)
	c := b.Counts()
	total := 0.0
	for _, r := range b.Rows {
		total += r.Seconds
	}
	fmt.Fprintf(out, `%s<testsuite name="nexus batch" tests="%d" failures="%d" errors="%d" skipped="%d" time="%.3f">`+"\n",
		xml.Header, c.Lines, c.Failed, c.Errors, c.Skipped, total)
	_, err := results.Read(b.Path, func(l *full, _ results.Place) error {
		_, err := fmt.Fprintf(out, "  %s\n", l.test())
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "</testsuite>")
	return out.Flush()
}

// test returns the element of a line in JUnit's XML.
func (l *full) test() string {
	d := Detail{Case: l.Case, Repeat: l.Repeat}
	test := fmt.Sprintf(`<testcase name="%s" classname="nexus.batch" time="%.3f">`, escaped(d.name()), l.Seconds)
	elements := map[string]string{results.Failed: "failure", results.Errored: "error", results.Skipped: "skipped"}
	if name := elements[outcome(l.Outcome)]; name != "" {
		reasons, message := l.reasons(), ""
		if len(reasons) > 0 {
			message = reasons[0]
		}
		text := strings.Join(append(reasons, "query: "+texts.Cut(l.Query, maxQuery)), "\n")
		test += fmt.Sprintf(`<%s message="%s">%s</%[1]s>`, name, escaped(message), escaped(text))
	}
	return test + "</testcase>"
}

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // writing to a Builder does not fail
	return out.String()
}
