package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

//go:embed style.css
var style string

//go:embed report.html
var page string

//go:embed shared.html
var shared string // templates of both pages

//go:embed table.js
var script string

// maxRows bounds the table of all lines in the HTML; the figures count every line.
const maxRows = 20_000

// maxRowQuery is how much of each question it shows, in bytes.
const maxRowQuery = 80

// pageFunctions are the functions of both pages.
var pageFunctions = template.FuncMap{
	"seconds": seconds,
	"millis":  func(ms float64) string { return seconds(ms / 1000) },
	"percent": func(i *stats.Interval) string { return percent(*i) },
	"name":    func(d Detail) string { return d.name() },
	"cost":    func(c *float64) string { return fmt.Sprintf("%.4f", *c) },
	"rate":    rate,
	"ratio":   ratio,
	"orNone":  orNone,
	"side":    func(path string, d Detail) map[string]any { return map[string]any{"Path": path, "Detail": d} },
	"plan": func(label string, steps []DetailStep) map[string]any {
		return map[string]any{"Label": label, "Steps": steps}
	},
}

// writePage executes a page.
func writePage(w io.Writer, title, page string, data map[string]any) error {
	data["Title"], data["Style"] = title, template.CSS(style)
	t, err := template.New("page").Funcs(pageFunctions).Parse(shared + page)
	if err != nil {
		return err
	}
	return t.Execute(w, data)
}

// WriteHTML writes one self-contained file.
func (b *Batch) WriteHTML(w io.Writer, f *Figures) error {
	lists := []details{
		{"failures", "Failed", f.Failures, f.Failed + f.Errors},
		{"unmet", "Unmet parts", f.Unmet, 0},
		{"slowest", "Slowest", f.Slowest, 0},
	}
	rows, more, err := b.table(anchors(lists))
	if err != nil {
		return err
	}
	low, high := outward(f.PassRate)
	return writePage(w, "Batch report", page, map[string]any{
		"Figures": f, "Script": template.JS(script), "Rows": rows, "More": more, "Kinds": kinds(),
		"Path": b.Path, "Failed": lists[0], "Others": lists[1:],
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
		all[i] = []any{name, r.Repeat, r.Outcome, r.Seconds, r.Tokens.Total(), query}
		if anchor, shown := anchors[results.Key{Case: name, Repeat: int(r.Repeat)}]; shown {
			all[i] = append(all[i], anchor)
		}
	}
	raw, err := json.Marshal(all) // escapes < and >, so that it may stand in a script
	return template.JS(raw), more, err
}
