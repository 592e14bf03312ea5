package schema

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Bounds of one schema.
const (
	maxDepth        = 10
	maxSchemas      = 4000
	maxParts        = 64           // merged into one
	maxAlternatives = 200          // of one
	maxTypes        = 10           // of one
	maxReference    = 1000         // bytes
	maxEffort       = 4 * maxBytes // of reading: references may repeat a part many times
)

// reader reads one schema breadth first, so that a bound omits deep parts rather than the last properties.
type reader struct {
	root   *node
	queue  []*task
	tasks  map[*Schema]*task
	refs   map[string]*node
	effort int // left
}

// task is a schema inside the whole that is still to be read.
type task struct {
	into       *Schema
	parts      []*node // the JSON objects that describe the value; earlier ones win
	parent     *task
	depth      int
	properties map[string]*Schema
}

func read(root *node) *Schema {
	r := reader{root: root, tasks: map[*Schema]*task{}, refs: map[string]*node{}, effort: maxEffort}
	var whole *Schema
	r.child(nil, &whole, root)
	for i := 0; i < len(r.queue); i++ {
		r.fill(r.queue[i])
	}
	for _, t := range slices.Backward(r.queue) { // inner schemas before outer ones
		t.into.unite()
	}
	return whole
}

// child adds a part to the inner schema in *slot, which it creates unless a bound is reached.
func (r *reader) child(parent *task, slot **Schema, part *node) {
	if *slot != nil {
		r.tasks[*slot].merge(part)
		return
	}
	t := &task{into: &Schema{}, parts: []*node{part}, parent: parent}
	if parent != nil {
		t.depth = parent.depth + 1
	}
	if t.depth > maxDepth || len(r.queue) == maxSchemas {
		parent.into.Open = true
		return
	}
	*slot = t.into
	r.tasks[t.into] = t
	r.queue = append(r.queue, t)
}

// children appends an inner schema for each part to *list.
func (r *reader) children(t *task, list *[]*Schema, parts []*node) {
	for _, part := range parts {
		var s *Schema
		if r.child(t, &s, part); s != nil {
			*list = append(*list, s)
		}
	}
}

// merge adds a part that describes the same value.
func (t *task) merge(part *node) {
	if part != nil && len(t.parts) < maxParts && !slices.Contains(t.parts, part) {
		t.parts = append(t.parts, part)
	}
}

// within reports whether part also describes an outer value, so that the schema contains itself.
func (t *task) within(part *node) bool {
	for t = t.parent; t != nil; t = t.parent {
		if slices.Contains(t.parts, part) {
			return true
		}
	}
	return false
}

// fill reads the parts of a schema. References, allOf and single alternatives add parts while it runs.
func (r *reader) fill(t *task) {
	s := t.into
	for i := 0; i < len(t.parts); i++ {
		part := t.parts[i]
		if r.effort -= len(part.raw); r.effort < 0 {
			s.Open = true
			return
		}
		recursive, known := t.within(part), len(t.parts)
		for j, name := range part.open().names {
			describe(s, name, part.nodes[j])
			if !recursive {
				r.descend(t, name, part.nodes[j])
			}
		}
		added := slices.Clone(t.parts[known:])
		t.parts = slices.Insert(t.parts[:known], i+1, added...) // right after the part that named them
	}
	switch {
	case len(s.Types) > 0:
	case len(s.Properties) > 0:
		s.Types = []string{"object"}
	case s.Items != nil || len(s.PrefixItems) > 0:
		s.Types = []string{"array"}
	}
}

// describe reads a keyword that is about the value itself, unless an earlier part had it.
func describe(s *Schema, keyword string, v *node) {
	switch keyword {
	case "title":
		s.Title = cmp.Or(s.Title, v.text())
	case "description":
		s.Description = cmp.Or(s.Description, v.text())
	case "format":
		s.Format = cmp.Or(s.Format, v.text())
	case "pattern":
		s.Pattern = cmp.Or(s.Pattern, v.text())
	case "type":
		if len(s.Types) == 0 {
			readTypes(s, v)
		}
	case "nullable":
		s.Nullable = s.Nullable || v.is('t')
	case "enum":
		if s.Enum == nil && v.is('[') {
			s.Enum = v.open().values
		}
	case "const":
		s.Enum = []json.RawMessage{json.RawMessage(v.raw)}
	case "default":
		if s.Default == nil {
			s.Default = json.RawMessage(v.raw)
		}
	case "examples":
		if s.Examples == nil && v.is('[') {
			s.Examples = v.open().values
		}
	case "patternProperties", "if", "dependentSchemas":
		s.Open = true
	case "additionalProperties", "unevaluatedProperties":
		s.Open = s.Open || !v.is('f')
	case "required":
		for _, e := range v.elements() {
			if e.is('"') {
				s.Required = append(s.Required, e.text())
			}
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "minItems", "maxItems":
		if s.Bounds == nil {
			s.Bounds = map[string]json.Number{}
		}
		if _, err := json.Number(v.raw).Float64(); err == nil && s.Bounds[keyword] == "" && v.is('0') {
			s.Bounds[keyword] = json.Number(v.raw)
		}
	}
}

// descend reads a keyword that leads to other schemas.
func (r *reader) descend(t *task, keyword string, v *node) {
	s := t.into
	switch keyword {
	case "$ref":
		found := r.resolve(v.text())
		s.Open = s.Open || found == nil
		t.merge(found)
	case "allOf":
		for _, e := range v.elements() {
			t.merge(e)
		}
	case "anyOf", "oneOf":
		r.alternatives(t, v)
	case "properties":
		if t.properties == nil {
			t.properties = make(map[string]*Schema, len(v.open().names))
		}
		for i, name := range v.open().names {
			inner, known := t.properties[name]
			if r.child(t, &inner, v.nodes[i]); inner != nil && !known {
				t.properties[name] = inner
				s.Properties = append(s.Properties, Property{Name: name, Schema: inner})
			}
		}
	case "items", "prefixItems":
		if v.is('{') {
			r.child(t, &s.Items, v)
		} else if len(s.PrefixItems) == 0 { // items of older drafts may be a list too
			r.children(t, &s.PrefixItems, v.elements())
		}
	case "additionalProperties":
		if v.is('{') {
			r.child(t, &s.Additional, v)
		}
	}
}

// alternatives reads anyOf and oneOf.
func (r *reader) alternatives(t *task, v *node) {
	s := t.into
	var list []*node
	for _, e := range v.elements() {
		kind, only := e.at("type"), e.at("const")
		if kind != nil && kind.text() == "null" || only != nil && only.is('n') {
			s.Nullable = true
		} else {
			list = append(list, e)
		}
	}
	if len(list) == 1 {
		t.merge(list[0])
	} else {
		r.children(t, &s.Alternatives, list[:min(len(list), maxAlternatives-len(s.Alternatives))])
	}
}

// resolve returns what a reference stands for, nil if that is not in this schema.
func (r *reader) resolve(reference string) *node {
	found, known := r.refs[reference]
	if known || len(reference) > maxReference {
		return found
	}
	names := strings.Split(reference, "/")
	if names[0] == "#" {
		found = r.root
	}
	for _, name := range names[1:] {
		if found == nil {
			break
		}
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		r.effort -= len(found.open().values)
		found = found.at(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	r.refs[reference] = found
	return found
}

// readTypes reads the types by the names of JSON Schema, which not all servers use.
func readTypes(s *Schema, v *node) {
	list := v.elements()
	if !v.is('[') {
		list = []*node{v}
	}
	for _, e := range list[:min(len(list), maxTypes)] {
		switch name := typeName(e.text()); {
		case name == "null" && v.is('['):
			s.Nullable = true
		case name != "" && !slices.Contains(s.Types, name):
			s.Types = append(s.Types, name)
		}
	}
}

// TypeName returns the JSON Schema type for a name in any case, including names of other languages; "" for unknown
// names.
func TypeName(name string) string {
	switch name = strings.ToLower(name); name {
	case "string", "integer", "number", "boolean", "array", "object", "null":
		return name
	case "str", "text":
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
	return ""
}

// typeName is TypeName for descriptions, which keep unknown names.
func typeName(name string) string {
	if known := TypeName(name); known != "" {
		return known
	}
	switch name = strings.ToLower(name); name {
	case "enum", "date", "time":
		return "string"
	case "any":
		return ""
	}
	return name
}
