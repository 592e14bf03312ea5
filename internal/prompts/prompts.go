// Package prompts has the texts that models get, as templates.
package prompts

import (
	"embed"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var files embed.FS

var templates = template.Must(template.ParseFS(files, "*.tmpl"))

// MaxHistory bounds the conversation so far in a prompt, in bytes.
const MaxHistory = 8 << 10

// TimeLayout is the form of the present time and its zone in a prompt.
const TimeLayout = "Monday, 2006-01-02 15:04 MST (UTC-07:00)"

// Render executes a template. An error is a mistake in the template or the type of its data.
func Render(name string, data any) string {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name+".tmpl", data); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}
