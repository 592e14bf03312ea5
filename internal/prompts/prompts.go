// Package prompts has the texts that models get, as templates.
package prompts

import (
	"embed"
	"strings"
	"sync"
	"text/template"
	"time"
)

//go:embed *.tmpl
var files embed.FS

var templates = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(files, "*.tmpl")) })

// MaxHistory bounds the conversation so far in a prompt, in bytes.
const MaxHistory = 8 << 10

// Time writes the present time and its zone for a prompt.
func Time(now time.Time) string {
	zone := " UTC-07:00"
	switch name, offset := now.Zone(); {
	case name == "UTC" && offset == 0:
		zone = " UTC"
	case strings.Trim(name, "+-0123456789") != "": // a name, not an offset once more
		zone = " MST (UTC-07:00)"
	}
	return now.Format("Monday, 2006-01-02 15:04" + zone)
}

// Render executes a template. An error is a mistake in the template or the type of its data.
func Render(name string, data any) string {
	var out strings.Builder
	if err := templates().ExecuteTemplate(&out, name+".tmpl", data); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}
