package planner

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bounds of a signature. Schemas are untrusted.
const (
	maxTypeDepth   = 5
	maxParameters  = 30
	maxChoices     = 12  // of an enum or union
	maxType        = 300 // bytes of one type
	maxExplanation = 120 // bytes about one parameter
	maxDescription = 500 // bytes about a tool
	maxName        = 200 // bytes
	maxTypes       = 300 // types written for one tool
)

// toolList returns tools as one data block of at most room bytes. It leaves out the last ones if they are too many.
func toolList(tools []plan.Tool, room int) string {
	const source, marks = "the servers' descriptions of their tools", 100
	tools = tools[:min(len(tools), (room-marks)/minTool)]
	limit := min(maxTool, (room-marks)/len(tools))
	var blocks []string
	for _, t := range tools {
		blocks = append(blocks, signature(t, limit-1))
	}
	return llm.Data(source, strings.Join(blocks, "\n"))
}

// signature describes a tool in a few lines: its call, its purpose and its parameters.
//
//	web_search(query: string, limit?: integer = 10) -> {results: {title: string, url: string}[]} [read-only]
//	  Searches the web.
//	  query: words to look for
//
// It has at most limit bytes, including the marks of data lines. Descriptions of parameters are left out first.
func signature(t plan.Tool, limit int) string {
	var heads, notes []string
	input, err := schema.Read(t.InputSchema)
	if err != nil {
		input = &schema.Schema{}
		heads = append(heads, "…")
	}
	parameters := slices.Clone(input.Fields)
	slices.SortStableFunc(parameters, func(a, b schema.Property) int { // required ones first
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	var w typeWriter
	for i, p := range parameters {
		if i == maxParameters {
			heads = append(heads, "…")
			break
		}
		head := w.property(p, 0)
		if d := p.Default; len(d) > 0 && len(d) <= 40 {
			head += " = " + short.Line(string(d), maxName)
		}
		heads = append(heads, head)
		if p.Description != "" {
			notes = append(notes, "\n  "+short.Line(p.Name, maxName)+": "+short.Line(p.Description, maxExplanation))
		}
	}
	text := short.Line(t.Name, maxName) + "(" + strings.Join(heads, ", ") + ")"
	if output, err := schema.Read(t.OutputSchema); err == nil && len(t.OutputSchema) > 0 {
		text += " -> " + short.Text((&typeWriter{}).typeOf(output, 0), maxType)
	}
	text += hints(t.Annotations)
	const mark = len(llm.DataMark)
	text = short.Text(text, limit-mark-len("…"))
	about := short.Line(t.Description, maxDescription)
	if about == "" {
		about = short.Line(t.Title, maxDescription)
	}
	if room := limit - len(text) - 2*mark - len("\n  …"); about != "" && room > 0 {
		text += "\n  " + short.Text(about, min(room, maxDescription))
	}
	lines := 1 + strings.Count(text, "\n")
	for _, note := range notes {
		if lines++; len(text)+len(note)+lines*mark > limit {
			break
		}
		text += note
	}
	return text
}

func hints(a plan.Annotations) string {
	switch {
	case a.ReadOnly():
		return " [read-only]"
	case a.Destructive():
		return " [destructive]"
	}
	return ""
}

// typeWriter writes the types of one schema.
type typeWriter struct{ types int } // so far

// typeOf writes a schema as a type.
func (w *typeWriter) typeOf(s *schema.Schema, depth int) string {
	if w.types++; s == nil || depth > maxTypeDepth || w.types > maxTypes {
		return "any"
	}
	var parts []string
	switch {
	case s.Enum != nil:
		for _, v := range s.Enum[:min(len(s.Enum), maxChoices+1)] {
			parts = append(parts, short.Line(string(v), maxName))
		}
	case len(s.Alternatives) > 0 && len(s.Properties) == 0:
		for _, a := range s.Alternatives[:min(len(s.Alternatives), maxChoices+1)] {
			parts = append(parts, w.typeOf(a, depth+1))
		}
	case len(s.Types) == 0:
		parts = append(parts, "any")
	default:
		for _, name := range s.Types {
			parts = append(parts, w.named(name, s, depth))
		}
	}
	if s.Nullable {
		parts = append(parts, "null")
	}
	var once []string
	for _, p := range parts {
		if len(once) == maxChoices {
			once = append(once, "…")
			break
		}
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return strings.Join(once, " | ")
}

// named writes one of the types of a schema.
func (w *typeWriter) named(name string, s *schema.Schema, depth int) string {
	low, high := s.Bounds["minimum"], s.Bounds["maximum"]
	switch name {
	case "array":
		return w.array(s, depth) + interval(s.Bounds["minItems"], s.Bounds["maxItems"], " items")
	case "object":
		return w.object(s, depth)
	case "string":
		if s.Format != "" {
			name += "<" + short.Line(s.Format, 40) + ">"
		}
		if s.Pattern != "" && len(s.Pattern) <= 40 {
			name += " /" + short.Line(s.Pattern, 40) + "/"
		}
		return name + interval(s.Bounds["minLength"], s.Bounds["maxLength"], " characters")
	case "integer", "number":
		if x := s.Bounds["exclusiveMinimum"]; low == "" && x != "" {
			low = ">" + x
		}
		if x := s.Bounds["exclusiveMaximum"]; high == "" && x != "" {
			high = "<" + x
		}
		name += interval(low, high, "")
		if x := s.Bounds["multipleOf"]; x != "" {
			name += " step " + string(x)
		}
		return short.Line(name, 60)
	}
	return short.Line(name, 40)
}

// interval writes bounds. Either may be missing.
func interval(low, high json.Number, unit string) string {
	if low == "" && high == "" {
		return ""
	}
	return " " + short.Line(string(low+".."+high), 40) + unit
}

func (w *typeWriter) array(s *schema.Schema, depth int) string {
	if s.Items == nil && len(s.PrefixItems) > 0 {
		var parts []string
		for _, p := range s.PrefixItems[:min(len(s.PrefixItems), maxChoices)] {
			parts = append(parts, w.typeOf(p, depth+1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	item := w.typeOf(s.Items, depth+1)
	if strings.Contains(item, " ") && !(strings.HasPrefix(item, "{") && strings.HasSuffix(item, "}")) {
		item = "(" + item + ")"
	}
	return item + "[]"
}

func (w *typeWriter) object(s *schema.Schema, depth int) string {
	var parts []string
	for i, p := range s.Fields {
		if i == maxChoices {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, w.property(p, depth+1))
	}
	if s.Additional != nil {
		parts = append(parts, "[name]: "+w.typeOf(s.Additional, depth+1))
	}
	if len(parts) == 0 {
		return "object"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// property writes a property with its type.
func (w *typeWriter) property(p schema.Property, depth int) string {
	name := short.Line(p.Name, maxName)
	if !p.Required {
		name += "?"
	}
	return name + ": " + short.Text(w.typeOf(p.Schema, depth), maxType)
}
