package router

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

const (
	maxChoices = 100 // of an enum in a form
	maxLabel   = 300 // bytes of a title or description in a form
)

// form makes the schema of a form that asks for some properties of an input schema: flat, of texts, numbers, booleans
// and choices, as elicitation allows (MCP 2025-06-18, Elicitation, Requested Schema). It reports false if one of them
// is of another kind. The input schema is a server's, so that only what is known of it gets into the form.
func form(input json.RawMessage, names []string) (schema []byte, ok bool) {
	var properties fields
	for _, name := range names {
		f := field(jsonrpc.Get(input, "properties", name))
		if f == nil {
			return nil, false
		}
		properties.add(name, f.object())
	}
	var whole fields
	whole.add("type", []byte(`"object"`))
	whole.add("properties", properties.object())
	whole.add("required", encodeList(names))
	return whole.object(), true
}

// fields are the members of a JSON object in their order, which is the one that people see.
type fields []byte

func (f *fields) add(name string, value []byte) {
	*f = append(append(append(append(*f, ','), jsonrpc.StringID(name)...), ':'), value...)
}

func (f fields) object() []byte {
	return append(append([]byte{'{'}, bytes.TrimPrefix(f, []byte{','})...), '}')
}

// field is the schema of one field, nil if a form cannot ask for it.
func field(property json.RawMessage) (out fields) {
	kind := jsonrpc.Text(jsonrpc.Get(property, "type"))
	var kinds []string
	if json.Unmarshal(jsonrpc.Get(property, "type"), &kinds) == nil { // such as ["string","null"]
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "null" })
		if len(kinds) == 1 {
			kind = kinds[0]
		}
	}
	var choices []string
	given := jsonrpc.Get(property, "enum")
	chosen := given != nil && json.Unmarshal(given, &choices) == nil && len(choices) > 0 && len(choices) <= maxChoices
	if chosen && kind == "" {
		kind = "string"
	}
	if given != nil && !chosen {
		return nil
	}
	var keep []string
	switch kind {
	case "string":
		keep = []string{"minLength", "maxLength", "format"}
	case "number", "integer":
		keep = []string{"minimum", "maximum"}
	case "boolean":
	default:
		return nil
	}
	out.add("type", []byte(jsonrpc.StringID(kind)))
	for _, name := range []string{"title", "description"} {
		if text := short.Line(jsonrpc.Text(jsonrpc.Get(property, name)), maxLabel); text != "" {
			out.add(name, []byte(jsonrpc.StringID(text)))
		}
	}
	if chosen {
		out.add("enum", encodeList(choices))
		return out
	}
	for _, name := range keep {
		value := jsonrpc.Get(property, name)
		if name == "format" && !slices.Contains([]string{"email", "uri", "date", "date-time"}, jsonrpc.Text(value)) {
			continue
		}
		if name != "format" {
			var number float64
			if value == nil || json.Unmarshal(value, &number) != nil {
				continue
			}
		}
		out.add(name, value)
	}
	return out
}

func encodeList(texts []string) []byte { return []byte(encode(texts, "")) }

// enumerate writes names for people: a, b and c.
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return short.Line(names[0], maxLabel)
	}
	return short.Line(strings.Join(names[:last], ", ")+" and "+names[last], maxLabel)
}
