package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Validator checks arguments against input schemas. It caches the most recently used compiled schemas within limits.
// It is safe for concurrent use.
type Validator struct {
	compiled *lru.Cache[[sha256.Size]byte, *jsonschema.Schema] // by the hash of the schema's text
}

// Limits of a Validator's memory. A compiled schema takes some tens of times the size of its text.
const (
	cacheEntries = 1024
	cacheBytes   = 4 << 20
)

// NewValidator returns a Validator that has compiled nothing yet.
func NewValidator() *Validator {
	return &Validator{lru.New[[sha256.Size]byte, *jsonschema.Schema](cacheEntries, cacheBytes)}
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
	if s == nil || !affordable(s, instance) {
		return nil
	}
	return explainRefusal(s, instance, unknown)
}

// schema returns the compiled schema, or nil if it cannot be used.
func (v *Validator) schema(text json.RawMessage) *jsonschema.Schema {
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

// Limits of a compiled schema.
const (
	maxSchemaBytes  = 256 << 10
	maxSchemaDepth  = 64
	maxSubschemas   = 4000           // objects and booleans
	maxPointerBytes = 4 << 20        // JSON pointers to all of them
	maxPattern      = 1000           // bytes of a regular expression
	maxPrograms     = 200_000        // instructions of all of them
	maxInPlace      = 64             // nested subschemas that apply to one value
	maxNumber       = 1000           // digits of a number, and its exponent
	maxInstance     = 2*MaxDepth + 2 // levels of nesting of arguments, with what steps before returned
)

// compile returns nil for a schema that is invalid or exceeds a limit.
func compile(text json.RawMessage) (s *jsonschema.Schema) {
	// The compiler is not designed for hostile input. The limits exclude known failures; a panic must not end the
	// process.
	defer func() {
		if recover() != nil {
			s = nil
		}
	}()
	if checkSize(text) != nil {
		return nil
	}
	// A schema without $schema is read as the first draft that accepts it: 2020-12 is the default of MCP, but servers
	// still use tuples and boolean exclusiveMinimum.
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil
		}
		engine := &patterns{known: make(map[string]*expression.Pattern)}
		engine.relax(doc)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(draft)
		c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is ever loaded
		c.UseRegexpEngine(engine.compile)
		const name = "urn:tool:schema"
		if c.AddResource(name, doc) != nil {
			return nil
		}
		compiled, err := c.Compile(name)
		if err != nil {
			continue
		}
		return compiled
	}
	return nil
}

var errBounds = errors.New("schema is out of bounds")

// checkSize refuses a schema that would take too long to compile.
func checkSize(text []byte) error {
	d := newDecoder(text)
	subschemas, pointers, pointer := 0, 0, 0
	var names []int // lengths of the names on the path
	for {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		switch t.Kind() {
		case '{', '[':
			subschemas++
			pointers += pointer
			names = append(names, 0)
		case '}', ']':
			pointer -= names[len(names)-1]
			names = names[:len(names)-1]
		case 't', 'f':
			subschemas++
			pointers += pointer
		case '0':
			if !cheapNumber(t.String()) {
				return errBounds
			}
		case '"':
			if kind, length := d.StackIndex(d.StackDepth()); kind == '{' && length%2 == 1 {
				n := len(t.String()) + 1
				pointer += n - names[len(names)-1]
				names[len(names)-1] = n
			}
		}
		switch {
		case d.StackDepth() == 0:
			if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
				return errBounds
			}
			return nil
		case d.StackDepth() > maxSchemaDepth, subschemas > maxSubschemas, pointers > maxPointerBytes:
			return errBounds
		}
	}
}

// cheapNumber reports whether exact arithmetic on a number is cheap: that on 1e999999999 is not.
func cheapNumber(text string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exponent = strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
	return len(mantissa) <= maxNumber && (len(exponent) < 4 || exponent == "1000")
}

// patterns compiles the regular expressions of one schema within a common bound.
type patterns struct {
	known map[string]*expression.Pattern
	size  int
}

func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	if re, ok := p.known[text]; ok {
		return re, nil
	}
	if len(text) > maxPattern {
		return nil, errBounds
	}
	re, err := expression.CompilePattern(text)
	if err != nil {
		return nil, err
	}
	if p.size += re.Size; p.size > maxPrograms {
		return nil, errBounds
	}
	p.known[text] = re
	return re, nil
}

// relax removes keywords that must not refuse values: "format", which is an annotation; unknown types; "enum" and
// "required" that are not lists; and patterns that Go cannot compile. Types with a capital letter or a name from
// another language, such as String and int, are corrected. If a pattern of patternProperties is removed, the
// restrictions of other properties are removed, too.
func (p *patterns) relax(v any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			p.relax(element)
		}
	case map[string]any:
		if _, ok := v["format"].(string); ok {
			delete(v, "format")
		}
		if name, ok := v["type"].(string); ok {
			if v["type"] = schema.TypeName(name); v["type"] == "" {
				delete(v, "type")
			}
		}
		for _, list := range []string{"enum", "required"} { // a property of that name is an object
			switch v[list].(type) {
			case string, bool, json.Number:
				delete(v, list)
			}
		}
		if text, ok := v["pattern"].(string); ok {
			if _, err := p.compile(text); err != nil {
				delete(v, "pattern")
			}
		}
		if properties, ok := v["patternProperties"].(map[string]any); ok {
			for text := range properties {
				if _, err := p.compile(text); err != nil {
					delete(properties, text)
					delete(v, "additionalProperties")
					delete(v, "unevaluatedProperties")
				}
			}
		}
		for name, member := range v {
			switch name {
			case "const", "enum", "default", "examples": // data, not schemas
			default:
				p.relax(member)
			}
		}
	}
}

// readInstance reads arguments for validation.
func readInstance(arguments json.RawMessage) (any, *Error) {
	refuse := func(format string, a ...any) (any, *Error) {
		return nil, &Error{reason.InvalidArguments, "arguments: " + fmt.Sprintf(format, a...)}
	}
	if kind := jsontext.Value(arguments).Kind(); kind != '{' {
		return refuse("got %s, want object", kindName(kind))
	}
	d := newDecoder(arguments)
	for {
		t, err := d.ReadToken()
		if err != nil {
			return refuse("%s", texts.Line(syntaxError(err).Error(), 200))
		}
		if t.Kind() == '0' && !cheapNumber(t.String()) {
			return refuse("a number has too many digits")
		}
		if depth := d.StackDepth(); depth > maxInstance {
			return refuse("nested deeper than %d levels", maxInstance)
		} else if depth == 0 {
			break
		}
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return refuse("%s", texts.Line(err.Error(), 200))
	}
	return instance, nil
}
