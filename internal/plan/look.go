package plan

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kinds is a set of the types that a value may have.
type kinds uint8

const (
	stringKind kinds = 1 << iota
	integerKind
	fractionKind // numbers that are no integers
	booleanKind
	objectKind
	arrayKind
	nullKind

	anyKind = stringKind | integerKind | fractionKind | booleanKind | objectKind | arrayKind | nullKind
)

// kindsOf are the types of JSON Schema.
var kindsOf = map[string]kinds{
	"string": stringKind, "integer": integerKind, "number": integerKind | fractionKind, "boolean": booleanKind,
	"object": objectKind, "array": arrayKind, "null": nullKind,
}

// String names the types.
func (k kinds) String() string {
	var names []string
	for _, name := range []string{"array", "boolean", "integer", "null", "number", "object", "string"} {
		if of := kindsOf[name]; k&of == of && !(name == "integer" && k&fractionKind != 0) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// verdict is a schema's statement about the last field of a path.
type verdict int

const (
	silent     verdict = iota // it names no fields
	undeclared                // it names others, and says nothing about more
	declared                  // it names the field, or says that there may be others
)

// found is a schema's statement about a part of a value. Without kinds the part cannot exist.
type found struct {
	kinds kinds
	said  verdict
}

// look finds a schema's statement about parts of a value. It follows subschemas of the same value and treats unknown
// keywords as allowing everything, so that an exclusion is always certain.
type look struct {
	strict bool // keywords for objects and lists imply the type
	known  map[visit]found
	fields map[string]bool // of the place itself; nil = not wanted
}

type visit struct {
	schema *jsonschema.Schema
	left   int // segments of the path
}

func newLook(strict bool) *look { return &look{strict: strict, known: map[visit]found{}} }

// at returns the schema's statement about the part at a path. It visits each schema once per segment of the path,
// because a Validator accepts no schema that applies recursively to the same value.
func (l *look) at(s *jsonschema.Schema, path []string) found {
	if s == nil {
		return found{kinds: anyKind}
	}
	if s.Bool != nil && !*s.Bool {
		return found{}
	}
	key := visit{s, len(path)}
	f, ok := l.known[key]
	if ok {
		return f
	}
	f = found{kinds: l.types(s)}
	if len(path) == 0 {
		for name := range s.Properties {
			if l.fields != nil {
				l.fields[name] = true
			}
		}
	} else {
		f = l.field(s, path, f.kinds).or(l.element(s, path, f.kinds))
	}
	if s.Ref != nil {
		f = f.and(l.at(s.Ref, path))
	}
	for _, part := range s.AllOf {
		f = f.and(l.at(part, path))
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		var either found
		for _, part := range list {
			either = either.or(l.at(part, path))
		}
		if len(list) > 0 {
			f = f.and(either)
		}
	}
	if s.If != nil || len(s.DependentSchemas)+len(s.Dependencies) > 0 { // they may name more fields
		f.said = declared
	}
	l.known[key] = f
	return f
}

// and combines the statements of two schemas that both apply.
func (f found) and(o found) found { return found{f.kinds & o.kinds, max(f.said, o.said)} }

// or combines the statements of two schemas of which one applies. A schema that excludes the part is ignored.
func (f found) or(o found) found {
	switch {
	case f.kinds == 0:
		return o
	case o.kinds == 0:
		return f
	}
	out := found{f.kinds | o.kinds, undeclared}
	switch said := []verdict{f.said, o.said}; {
	case slices.Contains(said, declared):
		out.said = declared
	case slices.Contains(said, silent):
		out.said = silent
	}
	return out
}

// types returns the types that the schema's own keywords allow.
func (l *look) types(s *jsonschema.Schema) kinds {
	switch {
	case s.Types != nil && !s.Types.IsEmpty():
		var k kinds
		for _, name := range s.Types.ToStrings() {
			k |= kindsOf[name]
		}
		return k
	case l.strict && len(s.Properties) > 0:
		return objectKind
	case l.strict && (s.Items != nil || s.Items2020 != nil || len(s.PrefixItems) > 0):
		return arrayKind
	}
	return anyKind
}

// field returns the schema's statement about a part of an object.
func (l *look) field(s *jsonschema.Schema, path []string, of kinds) found {
	if of&objectKind == 0 {
		return found{}
	}
	property, named := s.Properties[path[0]]
	more, isSchema := s.AdditionalProperties.(*jsonschema.Schema)
	last := len(path) == 1
	f := found{kinds: anyKind}
	switch {
	case named:
		f = l.at(property, path[1:])
	case len(s.PatternProperties) > 0:
	case s.AdditionalProperties == false:
		return found{}
	case isSchema:
		f = l.at(more, path[1:])
	}
	if !last {
		return f
	}
	closed := s.UnevaluatedProperties != nil && s.UnevaluatedProperties.Bool != nil && !*s.UnevaluatedProperties.Bool
	switch f.said = silent; {
	case named, len(s.PatternProperties) > 0, s.AdditionalProperties != nil, s.UnevaluatedProperties != nil && !closed:
		f.said = declared
	case len(s.Properties) > 0, closed:
		f.said = undeclared
	}
	return f
}

// element returns the schema's statement about an element of a list.
func (l *look) element(s *jsonschema.Schema, path []string, of kinds) found {
	place, ok := index(path[0])
	if !ok || of&arrayKind == 0 {
		return found{}
	}
	first, rest := s.PrefixItems, any(s.Items2020)
	if s.Items2020 == nil {
		rest = s.Items // of older drafts
	}
	if list, ok := rest.([]*jsonschema.Schema); ok {
		first, rest = list, s.AdditionalItems
	}
	f := found{kinds: anyKind}
	switch rest := rest.(type) {
	case *jsonschema.Schema:
		if place >= len(first) {
			f = l.at(rest, path[1:])
		}
	case bool:
		if place >= len(first) && !rest {
			return found{}
		}
	}
	if place < len(first) {
		f = l.at(first[place], path[1:])
	}
	if len(path) == 1 {
		f.said = silent
	}
	return f
}
