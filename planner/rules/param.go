package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/planner/search"
)

// Bounds on what is read of a schema.
const (
	maxSchemaBytes = 1 << 20
	maxParams      = 64
	maxChoices     = 20_000 // values of all enumerations of a schema
	maxRefs        = 8
)

// param is one property of an input schema.
type param struct {
	name        string
	kind        string // JSON Schema type; "" if unknown
	description string
	format      string
	required    bool
	enum        []any
	wide        map[string][]int // see wideIndex
	fallback    any              // default; nil if none
	minimum     *float64
	maximum     *float64
	items       *param  // of an array
	fields      []param // of an object
	nameStems   []string
	descStems   map[string]bool
	examples    []string
	listed      bool // the description lists the values: examples are all there is
}

// shape is a tool's input schema as far as arguments can be filled from language.
type shape struct {
	params []param
	ok     bool // the schema could be read
}

// readShape reads the properties of a schema. Local references are followed a few steps; of
// alternatives (anyOf, oneOf) the first that is not null counts.
func readShape(raw json.RawMessage) shape {
	if len(raw) == 0 {
		return shape{ok: true}
	}
	var root map[string]any
	if len(raw) > maxSchemaBytes || json.Unmarshal(raw, &root) != nil {
		return shape{}
	}
	s := schemaReader{root: root, order: propertyOrder(raw)}
	return shape{params: s.properties(root, 0), ok: true}
}

type schemaReader struct {
	root    map[string]any
	order   map[string]int // of the outermost properties
	nodes   int
	choices int
}

func (s *schemaReader) properties(m map[string]any, depth int) []param {
	props, _ := m["properties"].(map[string]any)
	required := map[string]bool{}
	list, _ := m["required"].([]any)
	for _, v := range list {
		if name, ok := v.(string); ok {
			required[name] = true
		}
	}
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.order[a], s.order[b]), strings.Compare(a, b))
	})
	var out []param
	for _, name := range names {
		if s.nodes++; s.nodes > maxParams {
			break
		}
		p := s.param(name, props[name], depth)
		p.required = required[name]
		out = append(out, p)
	}
	return out
}

func (s *schemaReader) param(name string, v any, depth int) param {
	p := param{name: name, descStems: map[string]bool{}}
	for _, w := range search.Words(name) {
		p.nameStems = append(p.nameStems, search.Stem(w))
	}
	m := s.resolve(v)
	if m == nil {
		return p
	}
	p.kind = typeOf(m)
	p.description, _ = m["description"].(string)
	if p.description == "" {
		p.description, _ = m["title"].(string)
	}
	p.format, _ = m["format"].(string)
	p.fallback = m["default"]
	p.enum, _ = m["enum"].([]any)
	if c, ok := m["const"]; ok {
		p.enum = []any{c}
	}
	p.enum = p.enum[:min(len(p.enum), max(2, maxChoices-s.choices))] // one value would be a constant, none a free text
	s.choices += len(p.enum)
	p.wide = wideIndex(p.enum)
	if p.fallback == nil {
		p.fallback = p.describedDefault()
	}
	p.minimum, p.maximum = bound(m["minimum"]), bound(m["maximum"])
	for _, w := range search.Words(clip(p.description, 600)) {
		if !search.IsStopWord(w) {
			p.descStems[search.Stem(w)] = true
		}
	}
	p.examples = examplesIn(p.description)
	p.listed = choiceList.MatchString(p.description)
	if depth < 3 {
		if p.kind == "array" {
			item := s.param(name, m["items"], depth+1)
			item.description += " " + p.description
			p.items = &item
		}
		if p.kind == "object" {
			p.fields = s.properties(m, depth+1)
		}
	}
	return p
}

// resolve follows references and picks the alternative to fill.
func (s *schemaReader) resolve(v any) map[string]any {
	m, _ := v.(map[string]any)
	for range maxRefs {
		if m == nil {
			return nil
		}
		next := m
		if ref, ok := m["$ref"].(string); ok {
			next = s.lookup(ref)
		} else if typeOf(m) == "" && m["enum"] == nil {
			next = alternative(m)
		}
		if next == nil {
			return m
		}
		merged := map[string]any{}
		for k, v := range next {
			merged[k] = v
		}
		for _, k := range []string{"description", "title", "default"} {
			if v, ok := m[k]; ok {
				merged[k] = v
			}
		}
		m = merged
		if m["$ref"] == nil && (typeOf(m) != "" || alternative(m) == nil) {
			return m
		}
	}
	return m
}

func (s *schemaReader) lookup(ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	m := s.root
	for part := range strings.SplitSeq(path, "/") {
		m, _ = m[part].(map[string]any)
	}
	return m
}

func alternative(m map[string]any) map[string]any {
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := m[key].([]any)
		for _, v := range list {
			if a, ok := v.(map[string]any); ok && typeOf(a) != "null" {
				return a
			}
		}
	}
	return nil
}

// typeOf is the type of a schema in JSON Schema's spelling; of several the first that is not null.
func typeOf(m map[string]any) string {
	switch t := m["type"].(type) {
	case string:
		return normalType(t)
	case []any:
		for _, v := range t {
			if s, ok := v.(string); ok && s != "null" {
				return normalType(s)
			}
		}
	}
	return ""
}

// normalType forgives what many servers write for a type.
func normalType(t string) string {
	switch t = strings.ToLower(t); t {
	case "str", "enum", "text", "date", "time":
		return "string"
	case "int", "long":
		return "integer"
	case "float", "double", "decimal":
		return "number"
	case "bool":
		return "boolean"
	case "list", "tuple":
		return "array"
	case "dict", "map":
		return "object"
	}
	return t
}

func bound(v any) *float64 {
	if f, ok := v.(float64); ok {
		return &f
	}
	return nil
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}

var (
	exampleLead  = regexp.MustCompile(`(?i)(?:e\.?g\.?,?|such as|for example,?|for instance,?|examples?:|like|options?:|one of|either|can be|could be)[:\s]+([^.;)\]]{2,160})`)
	choiceList   = regexp.MustCompile(`:\s+([^:;.(),]{1,40}(?:, [^:;.(),]{1,40})+,? or [^:;.(),]{1,40})`) // "Size: small, medium or large"
	quotedInText = regexp.MustCompile(`['"‘“` + "`" + `]([^'"’”` + "`" + `]{1,60})['"’”` + "`" + `]`)
)

// examplesIn finds the example values a description gives.
func examplesIn(description string) []string {
	description = clip(description, 1000)
	var out []string
	for _, m := range append(exampleLead.FindAllStringSubmatch(description, 4), choiceList.FindAllStringSubmatch(description, 1)...) {
		if q := quotedInText.FindAllStringSubmatch(m[1], 12); q != nil {
			for _, x := range q {
				out = append(out, x[1])
			}
			continue
		}
		for part := range strings.SplitSeq(strings.ReplaceAll(m[1], " or ", ", "), ",") {
			if part = strings.Trim(strings.TrimPrefix(strings.TrimSpace(part), "and "), " '\"`()"); part != "" && part != "etc" {
				out = append(out, part)
			}
		}
	}
	return out
}

// propertyOrder tells in which order a schema lists its outermost properties: authors put what
// matters, and what comes first in language, first.
func propertyOrder(raw json.RawMessage) map[string]int {
	var root struct {
		Properties json.RawMessage `json:"properties"`
	}
	order := map[string]int{}
	if json.Unmarshal(raw, &root) != nil {
		return order
	}
	d := json.NewDecoder(bytes.NewReader(root.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return order
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return order
		}
		order[name.(string)] = len(order)
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return order
		}
	}
	return order
}
