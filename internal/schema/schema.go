// Package schema reads the JSON Schemas of tools.
//
// [Read] turns a schema into a [Schema], a small model of the values that it allows: the types, the properties in
// their order, the choices and the bounds. It merges all that applies to one value: local references ("$ref") and
// "allOf". It keeps the alternatives of "oneOf" and "anyOf". It skips malformed and unknown parts, because the model
// only describes values to people, language models and search indexes; it does not validate them.
//
// Schemas are untrusted. Size, depth and effort are bounded whatever a schema refers to. The model of a schema beyond
// the bounds lacks inner parts. A schema that contains itself is expanded once. Read keeps nothing: a caller that needs
// a model again reads it again or keeps it. Read is safe for concurrent use. Do not change a Schema: its raw values
// share memory with the text.
package schema

import (
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema describes a value. The zero value allows anything.
type Schema struct {
	Title, Description, Format, Pattern string

	Types    []string // such as "string"; none allows all
	Nullable bool     // null is allowed besides; then it is not in Types
	Values

	// Bounds has the numbers of minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength,
	// maxLength, minItems and maxItems, as far as they are given.
	Bounds map[string]json.Number

	Items       *Schema   // of an array
	PrefixItems []*Schema // of an array, by position

	Object

	Alternatives []*Schema // of "oneOf" and "anyOf" without null; one alone is merged
}

// Object describes an object.
type Object struct {
	Properties []Property // without those that only some alternatives have
	Fields     []Property // with those
	Additional *Schema    // other properties; nil if nothing is said of them
	Open       bool       // other properties are allowed explicitly, or may be described in a part that is not read
	Required   []string   // properties that the schema or all of its alternatives require
}

// Values has the values in a schema.
type Values struct {
	Enum     []json.RawMessage // the only ones allowed, also of "const"; nil allows all
	Default  json.RawMessage   // nil if there is none
	Examples []json.RawMessage
}

// Property is a property of an object.
type Property struct {
	Name     string
	Required bool
	*Schema
}

// Field returns the description of a field, nil if there is none of that name.
func (s *Schema) Field(name string) *Schema {
	for _, f := range s.Fields {
		if f.Name == name {
			return f.Schema
		}
	}
	return nil
}

// maxBytes is the size of the largest schema that is read.
const maxBytes = 1 << 20

var (
	errTooLarge = errors.New("schema is larger than 1 MiB")
	errNoSchema = errors.New("schema is not a JSON object")
)

// Read reads a schema. No text is a schema that allows anything. An error means that nothing could be read.
func Read(text json.RawMessage) (*Schema, error) {
	raw := jsontext.Value(text)
	switch {
	case len(raw) == 0:
		return &Schema{}, nil
	case len(raw) > maxBytes:
		return nil, errTooLarge
	case !raw.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)):
		return nil, errNoSchema
	}
	switch raw.Kind() {
	case '{':
		return read(&node{raw: raw}), nil
	case 't', 'f':
		return &Schema{}, nil
	}
	return nil, errNoSchema
}
