package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// declarations are the types of values that steps produce, as far as the outputSchemas of their tools declare them. A
// nil schema declares nothing.
type declarations struct {
	steps  []Step
	index  map[string]int
	isStep func(id string) bool
	tools  []Tool // of the steps; empty where there is none
}

// check reports references of a step to parts that a declared result lacks, or whose type does not fit the argument.
func (d *declarations) check(s *Step, input Tool) *Error {
	if r, ok := s.list(d.isStep); ok {
		list, err := d.find(r, s)
		if err != nil {
			return err
		}
		text := DeclaresText(list) || len(r.path) == 1 && expression.IsTextName(r.path[0])
		if !allows(list, "array") && !text {
			return &Error{reason.InvalidArguments, fmt.Sprintf("each: %s is declared as %s, want array", quoteShort(r.written), typeNames(list))}
		}
	}
	for _, value := range referring(s.Arguments, s.inside(d.isStep)) {
		for _, r := range value.refs {
			given, err := d.find(r, s)
			if err != nil {
				return err
			}
			wanted := readSchema(input.InputSchema)
			for name := range value.pointer.Tokens() {
				wanted, _ = part(wanted, name)
			}
			if value.whole && !fits(given, wanted) {
				return &Error{reason.InvalidArguments, fmt.Sprintf("arguments%s: the result of %s is declared as %s, want %s",
					strings.ReplaceAll(string(value.pointer), "/", "."), quoteShort(r.written), typeNames(given), typeNames(wanted))}
			}
		}
	}
	return nil
}

// find returns the declared type of the value that a reference in step s means.
func (d *declarations) find(r reference, s *Step) (*schema.Schema, *Error) {
	var at *schema.Schema
	tool := ""
	if s.loops() && isElement(r.step) {
		if list, ok := s.list(d.isStep); ok && r.step == itemName {
			whole, err := d.find(list, s)
			if err != nil {
				return nil, err
			}
			at, _ = part(whole, "0")
			if i, here := d.index[list.step]; here {
				tool = d.tools[i].Name
			}
		}
	} else if i, here := d.index[r.step]; here {
		tool = cmp.Or(d.tools[i].Name, r.step)
		if d.steps[i].Pick == "" {
			at = readSchema(d.tools[i].OutputSchema)
		}
		if d.steps[i].loops() {
			at = &schema.Schema{Types: []string{"array"}, Items: at}
		}
	}
	text := false // at is a text that may be JSON
	for n, segment := range r.path {
		next, ok := part(at, segment)
		if text = text || DeclaresText(at); !ok && !text {
			return nil, missing(r, fmt.Sprintf("%s is not in %s, which %s declares as %s", quoteShort(segment),
				quoteShort("$"+strings.Join(append([]string{r.step}, r.path[:n]...), ".")), quoteShort(tool), describeType(at)))
		}
		at = next
	}
	return at, nil
}

func readSchema(text []byte) *schema.Schema {
	s, _ := schema.Read(text) // an unreadable schema declares nothing
	return s
}

// DeclaresText reports whether a schema declares an object that counts as the text in it, see textOf.
func DeclaresText(s *schema.Schema) bool {
	return s != nil && len(s.Fields) == 1 && expression.IsTextName(s.Fields[0].Name) &&
		slices.Equal(s.Fields[0].Types, []string{"string"})
}

// part returns the schema of a member or an element; ok is false if the schema declares that there is none.
func part(s *schema.Schema, segment string) (of *schema.Schema, ok bool) {
	if s == nil {
		return nil, true
	}
	if f := s.Field(segment); f != nil {
		return f, true
	}
	if i, isIndex := index(segment); isIndex && allows(s, "array") {
		if i < len(s.PrefixItems) {
			return s.PrefixItems[i], true
		}
		return s.Items, true
	}
	if segment == expression.Lines && slices.Equal(s.Types, []string{"string"}) {
		return &schema.Schema{Types: []string{"array"}, Items: s}, true
	}
	return s.Additional, allows(s, "object") && (s.Additional != nil || s.Open || len(s.Fields) == 0)
}

// typesOf returns the types that a schema allows; nil means all.
func typesOf(s *schema.Schema) (types []string) {
	if s == nil || len(s.Types)+len(s.Alternatives) == 0 {
		return nil
	}
	for _, name := range s.Types {
		if schema.TypeName(name) != name {
			return nil
		}
		types = append(types, name)
	}
	if len(s.Types) == 0 {
		for _, a := range s.Alternatives {
			of := typesOf(a)
			if of == nil {
				return nil
			}
			types = append(types, of...)
		}
	}
	if s.Nullable {
		types = append(types, "null")
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func allows(s *schema.Schema, name string) bool {
	types := typesOf(s)
	return types == nil || slices.Contains(types, name)
}

// fits reports whether a value of one schema may be a value of the other. Lists must have fitting elements.
func fits(given, wanted *schema.Schema) bool {
	types, want := typesOf(given), typesOf(wanted)
	if types == nil || want == nil {
		return true
	}
	return slices.ContainsFunc(types, func(name string) bool {
		switch {
		case name == "array":
			return slices.Contains(want, name) && fits(given.Items, wanted.Items)
		case name == "integer" || name == "number":
			return slices.Contains(want, "integer") || slices.Contains(want, "number")
		}
		return slices.Contains(want, name)
	})
}

// describeType names the types of a schema, and its fields.
func describeType(s *schema.Schema) string {
	if s != nil && len(s.Fields) > 0 {
		var names []string
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		return "object with " + first(10, names, quoteShort)
	}
	return typeNames(s)
}

func typeNames(s *schema.Schema) string { return strings.Join(typesOf(s), " or ") }
