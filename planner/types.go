package planner

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bounds of a type. Schemas are untrusted.
const (
	maxTypeDepth = 5
	maxChoices   = 12  // of an enum or union
	maxType      = 300 // bytes of one type
	maxTypes     = 300 // types written for one tool
)

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
