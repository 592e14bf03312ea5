package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

//go:embed style.css
var style string

//go:embed report.html
var page string

//go:embed table.js
var script string

// maxRows bounds the table of all lines in the HTML; the figures count every line.
const maxRows = 20_000

// Style is the style sheet of reports.
func Style() template.CSS { return template.CSS(style) }

// Functions are what templates of reports call.
func Functions() template.FuncMap {
	return template.FuncMap{
		"seconds": seconds, "percent": func(i *stats.Interval) string { return percent(*i) }, "graph": graph, "join": func(list []string) string { return strings.Join(list, "; ") },
		"name": func(d Detail) string { return d.name() },
		"cost": func(c *float64) string { return fmt.Sprintf("%.4f", *c) },
		"bar":  bar,
	}
}

// WriteHTML writes one file that needs nothing else.
func (b *Batch) WriteHTML(w io.Writer, f *Figures) error {
	t, err := template.New("report").Funcs(Functions()).Parse(page)
	if err != nil {
		return err
	}
	rows, more := b.table()
	low, high := Outward(f.PassRate)
	return t.Execute(w, map[string]any{
		"Figures": f, "Style": Style(), "Script": template.JS(script), "Rows": rows, "More": more, "Kinds": kinds(),
		"Histogram": b.histogram(), "Path": b.Path,
		"Percents": []float64{100 * f.PassRate.Value, low, high},
	})
}

// table returns the lines as rows of [case, repeat, outcome, seconds, tokens], and how many it leaves out.
func (b *Batch) table() (rows template.JS, more int) {
	sorted := make([]Row, len(b.Rows))
	copy(sorted, b.Rows)
	b.sort(sorted)
	if len(sorted) > maxRows {
		more = len(sorted) - maxRows
		sorted = sorted[:maxRows]
	}
	all := make([][5]any, len(sorted))
	for i, r := range sorted {
		all[i] = [5]any{b.Cases[r.Case], r.Repeat, r.Outcome, r.Seconds, r.Tokens}
	}
	raw, err := json.Marshal(all) // escapes < and >, so that it may stand in a script
	if err != nil {
		return "[]", len(b.Rows)
	}
	return template.JS(raw), more
}

// bar draws an interval of rates on a scale from 0 to 1.
func bar(i *stats.Interval) template.HTML {
	if i == nil {
		return ""
	}
	const width = 160
	at := func(x float64) string { return fmt.Sprintf("%.1f", width*x) }
	return template.HTML(fmt.Sprintf(`<svg class="rate" viewBox="0 0 %d 14" width="%d" height="14" aria-hidden="true">`+
		`<line class="scale" x1="0" y1="7" x2="%d" y2="7"/><line class="range" x1="%s" y1="7" x2="%s" y2="7"/><circle cx="%s" cy="7" r="4"/></svg>`,
		width, width, width, at(i.Low), at(i.High), at(i.Value)))
}

// histogram draws how many lines took how long, on a logarithmic scale.
func (b *Batch) histogram() template.HTML {
	limits := []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50}
	counts := make([]int, len(limits)+1)
	most := 1
	for _, r := range b.Rows {
		if r.Outcome != results.Passed && r.Outcome != results.Failed {
			continue
		}
		i := 0
		for i < len(limits) && r.Seconds > limits[i] {
			i++
		}
		counts[i]++
		most = max(most, counts[i])
	}
	const column, height = 44, 120
	var out, told strings.Builder
	for i, n := range counts {
		label := ">50 s"
		if i < len(limits) {
			label = "≤" + strings.TrimSuffix(strings.Replace(seconds(limits[i]), ".0 ", " ", 1), ".00")
			label = strings.Replace(label, ".00 s", " s", 1)
		}
		h := n * height / most
		if n > 0 {
			h = max(h, 2)
			fmt.Fprintf(&told, "%s: %d; ", label, n)
		}
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%d" height="%d"/><text x="%d" y="%d">%s</text>`,
			i*column+4, 16+height-h, column-8, h, i*column+column/2, height+32, label)
		if n > 0 {
			fmt.Fprintf(&out, `<text x="%d" y="%d">%d</text>`, i*column+column/2, 12+height-h, n)
		}
	}
	width := column * len(counts)
	return template.HTML(fmt.Sprintf(`<svg class="histogram" viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>`,
		width, height+40, template.HTMLEscapeString("Lines by seconds: "+told.String()), out.String()))
}
