package schema

import (
	"encoding/json"
	"slices"
)

// unite derives the common and the united parts of the alternatives of a schema.
func (s *Schema) unite() {
	if s.Enum == nil && len(s.Alternatives) > 0 { // such as constants with titles
		s.Enum = s.Alternatives[0].Enum
		for _, a := range s.Alternatives[1:] {
			s.Enum = either(s.Enum, a.Enum)
		}
	}
	noText := func(v json.RawMessage) bool { return v[0] != '"' }
	if len(s.Types) == 0 && s.Enum != nil && !slices.ContainsFunc(s.Enum, noText) {
		s.Types = []string{"string"}
	}
	for _, a := range s.Alternatives {
		s.Open = s.Open || a.Open
		if len(a.Types) == 0 {
			a.Types = s.Types
		}
	}
	s.Fields = s.Properties
	if len(s.Alternatives) > 0 {
		s.uniteFields()
	}
	required := make(map[string]bool, len(s.Required))
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool {
		known := required[name]
		required[name] = true
		return known
	})
	for _, list := range [][]Property{s.Properties, s.Fields} {
		for i := range list {
			list[i].Required = required[list[i].Name]
		}
	}
}

// uniteFields adds the fields of all alternatives, and requires the fields that all of them require.
func (s *Schema) uniteFields() {
	s.Fields = slices.Clip(s.Properties)
	at := make(map[string]int)
	for i, p := range s.Properties {
		at[p.Name] = i
	}
	count := make(map[string]int)
	for _, a := range s.Alternatives {
		for _, name := range a.Required {
			if count[name]++; count[name] == len(s.Alternatives) {
				s.Required = append(s.Required, name)
			}
		}
		for _, f := range a.Fields {
			switch i, known := at[f.Name]; {
			case !known:
				at[f.Name] = len(s.Fields)
				s.Fields = append(s.Fields, f)
			case i >= len(s.Properties) && s.Fields[i].Enum != nil:
				united := *s.Fields[i].Schema
				united.Enum = either(united.Enum, f.Enum)
				s.Fields[i].Schema = &united
			}
		}
	}
}

const maxUnited = 1000 // values of enumerations

// either returns the union of two enumerations, or nil if one of them allows all values or if the union is too large.
func either(a, b []json.RawMessage) []json.RawMessage {
	if a == nil || b == nil || len(a)+len(b) > maxUnited {
		return nil
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(slices.Concat(a, b), func(v json.RawMessage) bool {
		known := seen[string(v)]
		seen[string(v)] = true
		return known
	})
}
