package plan

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// Validator holds arguments against input schemas. It keeps compiled schemas, those used last, within
// a bound. It is safe for concurrent use.
type Validator struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element // of cached
	used  *list.List                          // last used first
	bytes int                                 // schema text of all entries
}

type cached struct {
	key    [sha256.Size]byte
	bytes  int
	schema *compiledSchema
}

// Bounds of a Validator's memory. A compiled schema takes some tens of times its text.
const (
	cacheEntries = 1024
	cacheBytes   = 4 << 20
)

// NewValidator returns a Validator that has compiled nothing yet.
func NewValidator() *Validator {
	return &Validator{byKey: make(map[[sha256.Size]byte]*list.Element), used: list.New()}
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
	v.mu.Lock()
	if e, ok := v.byKey[key]; ok {
		v.used.MoveToFront(e)
		v.mu.Unlock()
		return e.Value.(*cached).schema
	}
	v.mu.Unlock()

	s := compile(text)

	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.byKey[key]; ok { // compiled twice at once; either will do
		return s
	}
	v.byKey[key] = v.used.PushFront(&cached{key, len(text), s})
	v.bytes += len(text)
	for v.used.Len() > cacheEntries || v.bytes > cacheBytes {
		last := v.used.Back()
		c := v.used.Remove(last).(*cached)
		delete(v.byKey, c.key)
		v.bytes -= c.bytes
	}
	return s
}

// Len returns the number of schemas that are kept compiled.
func (v *Validator) Len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.used.Len()
}
