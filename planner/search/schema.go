package search

import (
	"encoding/json"
	"maps"
	"slices"
)

// Bounds on what is read of one tool's schema: schemas come from servers and may be of any shape.
const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 6
	maxSchemaNodes = 500
)

// schemaText collects the words of a JSON Schema that tell what a tool is about.
type schemaText struct {
	names  []string // property names
	labels []string // titles, descriptions and enum values of properties
	nodes  int
}

func readSchema(raw json.RawMessage) schemaText {
	var t schemaText
	if len(raw) == 0 || len(raw) > maxSchemaBytes {
		return t
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return t
	}
	t.walk(v, 0)
	return t
}

func (t *schemaText) walk(v any, depth int) {
	m, ok := v.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return
	}
	if depth > 0 {
		t.label(m)
	}
	if props, ok := m["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(props)) { // what is left out of a large one is always the same
			if t.nodes++; t.nodes > maxSchemaNodes {
				return
			}
			t.names = append(t.names, name)
			t.walk(props[name], depth+1)
		}
	}
	t.walk(m["items"], depth+1)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alternatives, _ := m[key].([]any)
		for _, a := range alternatives {
			if t.nodes++; t.nodes > maxSchemaNodes {
				return
			}
			t.walk(a, depth+1)
		}
	}
}

func (t *schemaText) label(m map[string]any) {
	for _, key := range []string{"title", "description"} {
		if s, ok := m[key].(string); ok && s != "" {
			t.labels = append(t.labels, s)
		}
	}
	enum, _ := m["enum"].([]any)
	for i, e := range enum {
		if i == 20 {
			break
		}
		if s, ok := e.(string); ok {
			t.labels = append(t.labels, s)
		}
	}
}
