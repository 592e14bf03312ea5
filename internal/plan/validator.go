package plan

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/lru"
)

// Validator checks arguments against input schemas. It caches the most recently used compiled schemas within limits.
// It is safe for concurrent use.
type Validator struct {
	compiled *lru.Cache[[sha256.Size]byte, *compiledSchema] // by the hash of the schema's text
}

// Limits of a Validator's memory. A compiled schema takes some tens of times the size of its text.
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
// with reason.InvalidArguments, or nil. Schemas without $schema are read as 2020-12, else as draft-07 or draft-04 if
// only these accept them. "format" and patterns that Go's regexp cannot compile assert nothing.
//
// Schemas come from servers. A schema accepts every object if it is invalid or too large, refers to anything outside
// itself, refers to itself for the same value, or takes too long on these arguments. No schema reads a file, opens a
// connection, hangs or crashes.
func (v *Validator) Validate(schema, arguments json.RawMessage) *Error {
	return v.validate(schema, arguments, nil)
}

// validate ignores errors that depend on the values at the JSON pointers in unknown.
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

// Len returns the number of cached compiled schemas.
func (v *Validator) Len() int { return v.compiled.Len() }
