package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// WriteMarkdown writes tables for a pull request.
func (f *Figures) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## Batch: %.1f %% passed\n\n| | |\n|---|---|\n", 100*f.PassRate.Value)
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
	if len(f.Failures) > 0 {
		b.WriteString("\n| failed | why |\n|---|---|\n")
		for _, d := range f.Failures {
			fmt.Fprintf(&b, "| %s | %s |\n", cell(d.name()), cell(strings.Join(d.Reasons, "; ")))
		}
		if more := f.Failed + f.Errors - len(f.Failures); more > 0 {
			fmt.Fprintf(&b, "| … | %d more |\n", more)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// kinds are the kinds of groups, in the order of the report.
func kinds() []string { return []string{byReason, byTag, byTool, byServer} }

// cell escapes text for a table cell: one line, without Markdown and @mentions.
func cell(s string) string {
	s = short.Line(s, maxRow)
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[").Replace(s)
}
