package router

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

const (
	maxChoices = 100 // of an enum in a form
	maxLabel   = 300 // bytes of a title or description in a form
)

// form returns the schema of a form that asks for the named fields of an input schema. Elicitation allows only flat
// forms of strings, numbers, booleans and enums (MCP 2025-06-18, Elicitation, Requested Schema). ok is false if a
// field has another type. Servers are untrusted, so only known keywords are copied from the input schema.
func form(input json.RawMessage, names []string) (requested []byte, ok bool) {
	s, err := schema.Read(input)
	if err != nil {
		return nil, false
	}
	properties := []byte(`{}`)
	for _, name := range slices.Backward(names) { // Set prepends a new member
		f := s.Field(name)
		if f == nil || !askable(f) {
			return nil, false
		}
		properties = jsonrpc.Set(properties, name, []byte(encode(fieldOf(f), "")))
	}
	requested = jsonrpc.Set([]byte(`{}`), "required", []byte(encode(names, "")))
	requested = jsonrpc.Set(requested, "properties", properties)
	return jsonrpc.Set(requested, "type", []byte(`"object"`)), true
}

// formField is the schema of one field.
type formField struct {
	Type        string            `json:"type"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	MinLength   json.Number       `json:"minLength,omitempty"`
	MaxLength   json.Number       `json:"maxLength,omitempty"`
	Format      string            `json:"format,omitempty"`
	Minimum     json.Number       `json:"minimum,omitempty"`
	Maximum     json.Number       `json:"maximum,omitempty"`
}

// askable reports whether a form can ask for a value. Forms support enums of strings only.
func askable(s *schema.Schema) bool {
	if len(s.Types) != 1 || len(s.Enum) > maxChoices {
		return false
	}
	text := s.Types[0] == "string"
	return text && !slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return v[0] != '"' }) ||
		s.Enum == nil && slices.Contains([]string{"number", "integer", "boolean"}, s.Types[0])
}

func fieldOf(s *schema.Schema) formField {
	f := formField{Type: s.Types[0], Enum: s.Enum}
	f.Title, f.Description = short.Line(s.Title, maxLabel), short.Line(s.Description, maxLabel)
	switch {
	case f.Enum != nil:
	case f.Type == "string":
		f.MinLength, f.MaxLength = s.Bounds["minLength"], s.Bounds["maxLength"]
		if slices.Contains([]string{"email", "uri", "date", "date-time"}, s.Format) {
			f.Format = s.Format
		}
	case f.Type != "boolean":
		f.Minimum, f.Maximum = s.Bounds["minimum"], s.Bounds["maximum"]
	}
	return f
}

// enumerate joins names as "a, b and c".
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return short.Line(names[0], maxLabel)
	}
	return short.Line(strings.Join(names[:last], ", ")+" and "+names[last], maxLabel)
}
