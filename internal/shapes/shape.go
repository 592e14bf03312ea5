package shapes

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Bounds of one shape.
const (
	maxDepth  = 8
	maxNodes  = 200 // shapes of a tool
	maxFields = 40  // of an object; one with more is a map
	maxSample = 20  // elements read of a list
	maxName   = 48  // bytes of the name of a field
)

// Shape is the type of a value, without the value. The file consists of shapes.
type Shape struct {
	Types  []string `json:"types,omitempty"`  // such as "string", sorted
	Fields []Field  `json:"fields,omitempty"` // of an object
	Values *Shape   `json:"values,omitempty"` // of all members of an object whose names are data
	Items  *Shape   `json:"items,omitempty"`  // of an array
	Text
}

// Field is a field of an object.
type Field struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"` // not every object had it
	Shape

	once bool // only one object had it, so its name may be data
}

// TypeOf returns the type of a value, such as {content: string of lines}; "" if it cannot be read. It has no more of
// the value than names of fields that do not look like data.
func TypeOf(value []byte) string {
	if len(value) > maxResult {
		return ""
	}
	room := maxNodes
	shape, err := read(newDecoder(value), 0, &room)
	if err != nil {
		return ""
	}
	return shape.String()
}

// read returns the shape of the next value of d. room is the number of shapes left.
func read(d *jsontext.Decoder, depth int, room *int) (Shape, error) {
	if *room--; *room < 0 || depth > maxDepth {
		return Shape{}, d.SkipValue()
	}
	switch kind := d.PeekKind(); kind {
	case '{':
		return readObject(d, depth, room)
	case '[':
		return readArray(d, depth, room)
	case '0':
		v, err := d.ReadValue()
		if strings.ContainsAny(string(v), ".eE") {
			return Shape{Types: []string{"number"}}, err
		}
		return Shape{Types: []string{"integer"}}, err
	case '"':
		text, err := d.ReadToken()
		if err != nil {
			return Shape{}, err
		}
		return readText(text.String(), depth, room), nil
	default:
		names := map[jsontext.Kind]string{'t': "boolean", 'f': "boolean", 'n': "null"}
		return Shape{Types: []string{names[kind]}}, d.SkipValue()
	}
}

func readArray(d *jsontext.Decoder, depth int, room *int) (Shape, error) {
	s := Shape{Types: []string{"array"}}
	if _, err := d.ReadToken(); err != nil {
		return s, err
	}
	for n := 0; d.PeekKind() != ']'; n++ {
		if n >= maxSample {
			if err := d.SkipValue(); err != nil {
				return s, err
			}
			continue
		}
		item, err := read(d, depth+1, room)
		if err != nil {
			return s, err
		}
		if s.Items == nil {
			s.Items = &item
		} else {
			s.Items.merge(item)
			*room += count(item) // it has become part of the first one
		}
	}
	_, err := d.ReadToken()
	return s, err
}

func readObject(d *jsontext.Decoder, depth int, room *int) (Shape, error) {
	s := Shape{Types: []string{"object"}}
	if _, err := d.ReadToken(); err != nil {
		return s, err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return s, err
		}
		text := strings.Clone(name.String())
		v, err := read(d, depth+1, room)
		if err != nil {
			return s, err
		}
		switch {
		case s.Values != nil:
			s.Values.merge(v)
			*room += count(v)
		case isData(text) || len(s.Fields) == maxFields:
			s.Fields = append(s.Fields, Field{Shape: v})
			s.generalise()
		default:
			s.Fields = append(s.Fields, Field{Name: text, Shape: v, once: true})
		}
	}
	if s.alike() {
		s.generalise()
	}
	_, err := d.ReadToken()
	return s, err
}

// generalise drops the names of an object's fields.
func (s *Shape) generalise() {
	for _, f := range s.Fields {
		if s.Values == nil {
			s.Values = &Shape{}
			*s.Values = f.Shape
		} else {
			s.Values.merge(f.Shape)
		}
	}
	s.Fields = nil
}

// alike reports whether the fields are several objects with the same fields, such as people by their names.
func (s *Shape) alike() bool {
	if len(s.Fields) < 2 {
		return false
	}
	names := func(f Field) []string {
		var all []string
		for _, inner := range f.Fields {
			all = append(all, inner.Name)
		}
		slices.Sort(all)
		return all
	}
	first := names(s.Fields[0])
	return len(first) > 0 && !slices.ContainsFunc(s.Fields, func(f Field) bool { return !slices.Equal(names(f), first) })
}

// merge makes s the shape of the values of both.
func (s *Shape) merge(o Shape) {
	switch {
	case !slices.Contains(o.Types, "string"):
	case !slices.Contains(s.Types, "string"):
		s.Text = o.Text
	default:
		s.Text.merge(o.Text)
	}
	both := slices.Contains(s.Types, "object") && slices.Contains(o.Types, "object")
	for _, name := range o.Types {
		if !slices.Contains(s.Types, name) {
			s.Types = append(s.Types, name)
		}
	}
	if slices.Contains(s.Types, "number") {
		s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return name == "integer" })
	}
	slices.Sort(s.Types)
	switch {
	case o.Items == nil:
	case s.Items == nil:
		s.Items = o.Items
	default:
		s.Items.merge(*o.Items)
	}
	s.mergeFields(o, both)
	if s.Values == nil && (len(s.Fields) > maxFields || s.alike()) {
		s.generalise()
	}
}

func (s *Shape) mergeFields(o Shape, both bool) {
	if s.Values != nil || o.Values != nil {
		s.generalise()
		o.generalise()
		switch {
		case s.Values == nil:
			s.Values = o.Values
		case o.Values != nil:
			s.Values.merge(*o.Values)
		}
		return
	}
	common := 0
	for _, f := range o.Fields {
		i := slices.IndexFunc(s.Fields, func(known Field) bool { return known.Name == f.Name })
		if i < 0 {
			f.Optional = f.Optional || both
			s.Fields = append(s.Fields, f)
			continue
		}
		common++
		s.Fields[i].once = false
		s.Fields[i].merge(f.Shape)
		s.Fields[i].Optional = s.Fields[i].Optional || f.Optional
	}
	if !both || len(o.Fields) == 0 {
		return
	}
	if had := len(s.Fields) - (len(o.Fields) - common); common == 0 && had > 0 { // other names each time
		s.generalise()
		return
	}
	for i, f := range s.Fields {
		if !slices.ContainsFunc(o.Fields, func(other Field) bool { return other.Name == f.Name }) {
			s.Fields[i].Optional = true
		}
	}
}

// count returns the number of shapes in a shape.
func count(s Shape) int {
	n := 1
	for _, f := range s.Fields {
		n += count(f.Shape)
	}
	for _, inner := range []*Shape{s.Values, s.Items, s.JSON} {
		if inner != nil {
			n += count(*inner)
		}
	}
	return n
}

// known returns the shape without the fields that only one object had.
func (s Shape) known() Shape {
	fields := s.Fields
	s.Fields = nil
	for _, f := range fields {
		if !f.once {
			f.Shape = f.known()
			s.Fields = append(s.Fields, f)
		}
	}
	for _, inner := range []**Shape{&s.Values, &s.Items, &s.JSON} {
		if *inner != nil {
			part := (*inner).known()
			*inner = &part
		}
	}
	return s
}

// maxWords bounds the words of a field name.
const maxWords = 6

// identifier is the form of a name of a field, such as userId, user_id, @type, xml:lang or content-type.
var identifier = pattern.New(`^[@$_]{0,2}[A-Za-z][A-Za-z0-9]*([_:-]{1,2}[A-Za-z0-9]+)*_{0,2}$`)

// isData reports whether a name is a value rather than the name of a field: an id, a number, a date, an address, a
// path, a host, words with spaces, a sentence or a word in another script.
func isData(name string) bool {
	if len(name) > maxName || !identifier().MatchString(name) {
		return true
	}
	digits, upper, lower, words := 0, 0, 0, 1
	for i, r := range name {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsUpper(r):
			upper++
			if i > 0 && unicode.IsLower(rune(name[i-1])) {
				words++
			}
		case unicode.IsLower(r):
			lower++
		case i > 0 && name[i-1] != byte(r):
			words++
		}
	}
	hex := strings.Trim(strings.ToLower(name), "0123456789abcdef-") == ""
	return words > maxWords || digits > 3 || hex && digits > 0 && len(name) >= 8 ||
		digits > 0 && upper > 0 && lower > 0 && len(name) >= 16
}

// String writes the shape as a type, such as {orders: {id: integer, note?: string}[]}.
func (s *Shape) String() string {
	var parts []string
	for _, name := range s.Types {
		switch {
		case name == "string":
			name = s.Text.String()
		case name == "array":
			item := "any"
			if s.Items != nil {
				item = s.Items.String()
			}
			if strings.Contains(item, " ") && !strings.HasPrefix(item, "{") {
				item = "(" + item + ")"
			}
			name = item + "[]"
		case name == "object" && s.Values != nil:
			name = "{[name]: " + s.Values.String() + "}"
		case name == "object" && len(s.Fields) > 0:
			var fields []string
			for _, f := range s.Fields {
				mark := ": "
				if f.Optional {
					mark = "?: "
				}
				fields = append(fields, f.Name+mark+f.Shape.String())
			}
			name = "{" + strings.Join(fields, ", ") + "}"
		}
		parts = append(parts, name)
	}
	if len(parts) == 0 {
		return "any"
	}
	return strings.Join(parts, " | ")
}
