package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

//go:embed style.css
var style string

//go:embed report.html
var page string

//go:embed table.js
var script string

// maxRows bounds the table of all lines in the HTML; the figures count every line.
const maxRows = 20_000

// maxRowQuery is how much of each question it shows, in bytes.
const maxRowQuery = 80

// Style is the style sheet of reports.
func Style() template.CSS { return template.CSS(style) }

// Functions are the functions for report templates.
func Functions() template.FuncMap {
	return template.FuncMap{
		"seconds": seconds, "percent": func(i *stats.Interval) string { return percent(*i) }, "graph": graph,
		"name":     func(d Detail) string { return d.name() },
		"cost":     func(c *float64) string { return fmt.Sprintf("%.4f", *c) },
		"bar":      bar,
		"outcomes": outcomes,
	}
}

// WriteHTML writes one self-contained file.
func (b *Batch) WriteHTML(w io.Writer, f *Figures) error {
	t, err := template.New("report").Funcs(Functions()).Parse(page)
	if err != nil {
		return err
	}
	lists := []details{
		{"failures", "Failed", f.Failures, f.Failed + f.Errors},
		{"unmet", "Unmet parts", f.Unmet, 0},
		{"slowest", "Slowest", f.Slowest, 0},
	}
	rows, more, err := b.table(anchors(lists))
	if err != nil {
		return err
	}
	low, high := Outward(f.PassRate)
	return t.Execute(w, map[string]any{
		"Figures": f, "Style": Style(), "Script": template.JS(script), "Rows": rows, "More": more, "Kinds": kinds(),
		"Histogram": b.histogram(), "Path": b.Path, "Details": lists,
		"Percents": []float64{100 * f.PassRate.Value, low, high},
	})
}

// details is a list of lines that a report shows in full.
type details struct {
	ID    string // of its heading
	Title string
	Lines []Detail
	Of    int // lines there are; 0 = not told
}

// anchors returns the ids under which lines are shown first.
func anchors(lists []details) map[results.Key]string {
	found := map[results.Key]string{}
	for _, list := range lists {
		for i, d := range list.Lines {
			key := results.Key{Case: d.Case, Repeat: d.Repeat}
			if _, shown := found[key]; !shown {
				found[key] = fmt.Sprintf("%s-%d", list.ID, i)
			}
		}
	}
	return found
}

// table returns the lines as rows of [case, repeat, outcome, seconds, tokens, query, anchor], and how many it leaves
// out.
func (b *Batch) table(anchors map[results.Key]string) (rows template.JS, more int, err error) {
	sorted := slices.Clone(b.Rows)
	b.sort(sorted)
	if len(sorted) > maxRows {
		more = len(sorted) - maxRows
		sorted = sorted[:maxRows]
	}
	places := make([]results.Place, len(sorted))
	for i, r := range sorted {
		places[i] = r.Place
	}
	queries, err := results.At[struct {
		Query string `json:"query"`
	}](b.Path, places)
	if err != nil {
		return "", 0, err
	}
	all := make([][]any, len(sorted))
	for i, r := range sorted {
		name := b.Cases[r.Case]
		query := texts.Line(queries[i].Query, maxRowQuery)
		all[i] = []any{name, r.Repeat, r.Outcome, r.Seconds, r.Tokens, query}
		if anchor, shown := anchors[results.Key{Case: name, Repeat: int(r.Repeat)}]; shown {
			all[i] = append(all[i], anchor)
		}
	}
	raw, err := json.Marshal(all) // escapes < and >, so that it may stand in a script
	return template.JS(raw), more, err
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

// outcomes draws the shares of outcomes.
func outcomes(c Counts) template.HTML {
	const width = 1000
	var b strings.Builder
	at := 0
	for _, part := range []struct {
		name  string
		lines int
	}{{results.Passed, c.Passed}, {results.Failed, c.Failed}, {results.Errored, c.Errors}, {results.Skipped, c.Skipped}} {
		w := part.lines * width / max(c.Lines, 1)
		if part.lines > 0 {
			w = max(w, 4) // so that a single failure is visible
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%d" width="%d" height="10"/>`, part.name, at, w)
		at += w
	}
	return template.HTML(fmt.Sprintf(`<svg class="outcomes" viewBox="0 0 %d 10" preserveAspectRatio="none" aria-hidden="true">%s</svg>`,
		max(at, 1), b.String()))
}

// histogram draws how many lines took how long, on a logarithmic scale from the fastest to the slowest.
func (b *Batch) histogram() template.HTML {
	limits := []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50}
	counts := make([]int, len(limits)+1)
	most, first, last := 1, len(limits), 0
	for _, r := range b.Rows {
		if r.Outcome != results.Passed && r.Outcome != results.Failed {
			continue
		}
		i, _ := slices.BinarySearch(limits, r.Seconds)
		counts[i]++
		most, first, last = max(most, counts[i]), min(first, i), max(last, i)
	}
	if first > last {
		return ""
	}
	const column, height = 64, 120
	var out, told strings.Builder
	for i, n := range counts[first : last+1] {
		label := "> 50 s"
		if i += first; i < len(limits) {
			label = fmt.Sprintf("≤ %v s", limits[i])
			if limits[i] < 1 {
				label = fmt.Sprintf("≤ %v ms", 1000*limits[i])
			}
		}
		x, h := (i-first)*column, n*height/most
		if n > 0 {
			h = max(h, 2)
			fmt.Fprintf(&told, "%s: %d; ", label, n)
			fmt.Fprintf(&out, `<text x="%d" y="%d">%d</text>`, x+column/2, 12+height-h, n)
		}
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%d" height="%d"/><text x="%d" y="%d">%s</text>`,
			x+4, 16+height-h, column-8, h, x+column/2, height+32, label)
	}
	return template.HTML(fmt.Sprintf(`<svg class="histogram" width="%d" height="%d" role="img" aria-label="%s">%s</svg>`,
		column*(last-first+1), height+40, template.HTMLEscapeString("Lines by time: "+told.String()), out.String()))
}
