package plan

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/lru"
)

// Validator checks arguments against input schemas. It keeps the compiled schemas that were used last, within a bound.
// It is safe for concurrent use.
type Validator struct {
	compiled *lru.Cache[[sha256.Size]byte, *compiledSchema] // by the hash of the schema's text
}

// Bounds of a Validator's memory. A compiled schema takes some tens of times its text.
const (
	cacheEntries = 1024
	cacheBytes   = 4 << 20
)

// NewValidator returns a Validator that has compiled nothing yet.
func NewValidator() *Validator {
	return &Validator{lru.New[[sha256.Size]byte, *compiledSchema](cacheEntries, cacheBytes)}
}

// Validate reports what is wrong with arguments, in one line such as
//
//	arguments.limit: got string, want integer
//
// with ReasonInvalidArguments, or nil. Schemas without $schema are read as 2020-12, or as draft-07 or
// draft-04 if they make sense only so; "format" asserts nothing, and neither does a pattern that Go's
// regexp cannot compile.
//
// Schemas come from servers. One that is no valid schema, refers to anything outside itself, refers to
// itself without going deeper into the arguments, or is larger than anybody needs asks for nothing but
// an object, and so does one that would take too long on these arguments. No schema reads a file, opens
// a connection, hangs or crashes.
func (v *Validator) Validate(schema, arguments json.RawMessage) *Error {
	return v.validate(schema, arguments, nil)
}

// validate ignores what depends on the values at the JSON pointers in unknown.
func (v *Validator) validate(text, arguments json.RawMessage, unknown []string) *Error {
	instance, err := readInstance(arguments)
	if err != nil {
		return err
	}
	s := v.schema(text)
	if s == nil {
		return nil
	}
	return s.validate(instance, unknown)
}

// schema returns the compiled schema, or nil if it cannot be used.
func (v *Validator) schema(text json.RawMessage) *compiledSchema {
	if len(text) == 0 || len(text) > maxSchemaBytes {
		return nil
	}
	key := sha256.Sum256(text)
	s, ok := v.compiled.Get(key)
	if !ok {
		s = compile(text)
		v.compiled.Put(key, s, len(text))
	}
	return s
}

// Len returns the number of schemas that are kept compiled.
func (v *Validator) Len() int { return v.compiled.Len() }
