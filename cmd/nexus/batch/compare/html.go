package compare

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/report"
)

//go:embed compare.html
var page string

// WriteHTML writes one file that needs nothing else.
func (f *Figures) WriteHTML(w io.Writer) error {
	functions := report.Functions()
	functions["rate"] = rate
	functions["ratio"] = ratio
	functions["orNone"] = orNone
	functions["side"] = func(path string, d report.Detail) map[string]any { return map[string]any{"Path": path, "Detail": d} }
	t, err := template.New("compare").Funcs(functions).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Figures": f, "Style": report.Style()})
}
