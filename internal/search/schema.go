package search

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// schemaText holds the words of a JSON Schema to index.
type schemaText struct {
	names  []string // property names
	labels []string // titles, descriptions and enums of properties
}

// maxDepth limits the depth of indexed words in a schema.
const maxDepth = 6

func readSchema(raw json.RawMessage) (t schemaText) {
	if s, err := schema.Read(raw); err == nil {
		t.inside(s, 1)
	}
	return t
}

func (t *schemaText) inside(s *schema.Schema, depth int) {
	for _, p := range s.Properties {
		t.names = append(t.names, p.Name)
		t.label(p.Schema, depth)
	}
	for _, list := range [][]*schema.Schema{{s.Items, s.Additional}, s.PrefixItems, s.Alternatives} {
		for _, inner := range list {
			t.label(inner, depth)
		}
	}
}

func (t *schemaText) label(s *schema.Schema, depth int) {
	const maxChoices = 20
	if s == nil || depth > maxDepth {
		return
	}
	for _, text := range []string{s.Title, s.Description} {
		if text != "" {
			t.labels = append(t.labels, text)
		}
	}
	for _, v := range s.Enum[:min(len(s.Enum), maxChoices)] {
		var text string
		if json.Unmarshal(v, &text) == nil && text != "" {
			t.labels = append(t.labels, text)
		}
	}
	t.inside(s, depth+1)
}
