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

// Render executes a template. An error is a mistake in the template or the type of its data.
func Render(name string, data any) string {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name+".tmpl", data); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}
