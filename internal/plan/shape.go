package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// shapes are what is known, before a plan runs, of the values that its steps produce and take: what the schemas of
// their tools declare.
type shapes struct {
	steps  []Step
	index  map[string]int
	isStep func(id string) bool
	tools  []Tool // of the steps; empty where there is none
	strict bool   // only declared fields are taken to be there

	outputs map[int]shape
	read    map[string]shape // schemas by their text
}

// A shape is what is declared of a value: one of some schemas; nil allows anything.
type shape []*schema.Schema

// check reports references to what is not in the declared results of a step, or does not fit where it goes.
func (h *shapes) check(s *Step, input Tool) *Error {
	list, err := h.list(s)
	if err != nil {
		return err
	}
	for _, value := range referring(s.Arguments, s.inside(h.isStep)) {
		for _, r := range value.refs {
			given, err := h.find(r, s, list)
			if err != nil {
				return err
			}
			if !value.whole || given == nil {
				continue
			}
			wanted := h.input(input, value.pointer)
			if !fit(given, wanted) {
				return &Error{ReasonInvalidArguments, fmt.Sprintf("arguments%s: the result of %s is declared as %s, want %s",
					strings.ReplaceAll(value.pointer, "/", "."), quoteShort(r.written), given.names(), wanted.names())}
			}
		}
	}
	return nil
}

// list returns the shape of the list of a loop.
func (h *shapes) list(s *Step) (shape, *Error) {
	r, ok := s.list(h.isStep)
	if !ok {
		return nil, nil
	}
	list, err := h.find(r, s, nil)
	if err != nil {
		return nil, err
	}
	if names := list.kinds(); len(names) > 0 && !slices.Contains(names, "array") {
		return nil, &Error{ReasonInvalidArguments, fmt.Sprintf("each: %s is declared as %s, want array",
			quoteShort(r.written), list.names())}
	}
	return list, nil
}

// find returns the shape of what a reference in the step s refers to. list is that of the loop s.
func (h *shapes) find(r reference, s *Step, list shape) (shape, *Error) {
	var at shape
	tool := ""
	switch i, here := h.index[r.step]; {
	case s.loops() && isElement(r.step):
		if r.step == itemName {
			at, _ = list.at("0", h.strict)
		}
	case here:
		at, tool = h.output(i), h.tools[i].Name
	}
	for n, segment := range r.path {
		next, declared := at.at(segment, h.strict)
		if !declared {
			place := "$" + strings.Join(append([]string{r.step}, r.path[:n]...), ".")
			return nil, missing(r, fmt.Sprintf("%s is not in %s, which %s declares as %s", quoteShort(segment),
				quoteShort(place), quoteShort(tool), at.describe()))
		}
		at = next
	}
	return at, nil
}

// output returns the shape of the value of a step.
func (h *shapes) output(i int) shape {
	if known, ok := h.outputs[i]; ok {
		return known
	}
	var out shape
	step := h.steps[i]
	if step.Pick == "" {
		out = h.declared(h.tools[i].OutputSchema)
	}
	if step.loops() {
		list := &schema.Schema{Types: []string{"array"}}
		if out != nil {
			list.Items = out[0]
		}
		out = shape{list}
	}
	h.outputs[i] = out
	return out
}

// declared returns the shape that a schema declares, nil if it declares nothing that can be read.
func (h *shapes) declared(text json.RawMessage) shape {
	if len(text) == 0 {
		return nil
	}
	known, ok := h.read[string(text)]
	if !ok {
		if read, err := schema.Read(text); err == nil {
			known = shape{read}
		}
		h.read[string(text)] = known
	}
	return known
}

// input returns the shape that a tool wants at a place of its arguments.
func (h *shapes) input(tool Tool, pointer string) shape {
	at := h.declared(tool.InputSchema)
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		at, _ = at.at(strings.NewReplacer("~1", "/", "~0", "~").Replace(token), false)
	}
	return at
}

// at returns the shape of a part, nil if anything may be there, and false if nothing can be. Unless strict, an object
// may have other fields than those that are declared.
func (h shape) at(segment string, strict bool) (part shape, possible bool) {
	if h == nil {
		return nil, true
	}
	for _, s := range h {
		found, known := partOf(s, segment, strict)
		if !known {
			return nil, true
		}
		part = append(part, found...)
	}
	return part, len(part) > 0
}

// partOf returns the schemas that a part of a value may have, and false if they are not known.
func partOf(s *schema.Schema, segment string, strict bool) (found []*schema.Schema, known bool) {
	if s == nil {
		return nil, false
	}
	place, isIndex := index(segment)
	object, array := allows(s, "object"), allows(s, "array")
	if i := slices.IndexFunc(s.Properties, func(p schema.Property) bool { return p.Name == segment }); object && i >= 0 {
		return []*schema.Schema{s.Properties[i].Schema}, true
	}
	if len(s.Alternatives) > 0 && (object || array) {
		for _, a := range s.Alternatives {
			more, known := partOf(a, segment, strict)
			if !known {
				return nil, false
			}
			found = append(found, more...)
		}
		return found, !s.Open
	}
	if array && isIndex {
		item := s.Items
		if place < len(s.PrefixItems) {
			item = s.PrefixItems[place]
		}
		if item == nil {
			return nil, false
		}
		found = append(found, item)
	}
	switch {
	case !object:
	case s.Additional != nil:
		found = append(found, s.Additional)
	case s.Open, len(s.Properties) == 0, !strict:
		return nil, false
	}
	return found, true
}

// allows reports whether a value may be of a type.
func allows(s *schema.Schema, kind string) bool {
	return len(s.Types) == 0 || slices.Contains(s.Types, kind)
}

// kinds returns the types that a value may have, nil if that is not known.
func (h shape) kinds() (names []string) {
	for _, s := range h {
		switch {
		case s == nil:
			return nil
		case len(s.Types) > 0:
			names = append(names, s.Types...)
		case len(s.Alternatives) > 0 && !s.Open:
			more := shape(s.Alternatives).kinds()
			if more == nil {
				return nil
			}
			names = append(names, more...)
		default:
			return nil
		}
		if s.Nullable {
			names = append(names, "null")
		}
	}
	for _, name := range names {
		switch name {
		case "string", "integer", "number", "boolean", "object", "array", "null":
		default:
			return nil
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fit reports whether a value of one shape may be one of another.
func fit(given, wanted shape) bool {
	from, to := given.kinds(), wanted.kinds()
	if len(from) == 0 || len(to) == 0 {
		return true
	}
	var common []string
	for _, name := range from {
		switch {
		case slices.Contains(to, name):
			common = append(common, name)
		case name == "integer" && slices.Contains(to, "number"), name == "number" && slices.Contains(to, "integer"):
			return true
		}
	}
	if slices.Equal(common, []string{"array"}) {
		a, _ := given.at("0", false)
		b, _ := wanted.at("0", false)
		return fit(a, b)
	}
	return len(common) > 0
}

func (h shape) names() string { return strings.Join(h.kinds(), " or ") }

// describe says what a value is declared as, and which fields it has.
func (h shape) describe() string {
	var fields []string
	for _, s := range h {
		for _, f := range s.Fields {
			if !slices.Contains(fields, f.Name) {
				fields = append(fields, f.Name)
			}
		}
	}
	if len(fields) == 0 {
		return h.names()
	}
	return "object with " + first(10, fields, quoteShort)
}
