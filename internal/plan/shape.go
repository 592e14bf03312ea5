package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// shapes are the declared types of the values that steps produce and take, known from the schemas of their tools
// before the plan runs.
type shapes struct {
	steps     []Step
	index     map[string]int
	isStep    func(id string) bool
	tools     []Tool // of the steps; empty where there is none
	validator *Validator
	strict    bool // only declared fields exist
}

// check reports references to parts that a step's declared result lacks, or whose type does not fit.
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
			if !value.whole {
				continue
			}
			wanted := place{schema: h.validator.compiledOf(input.InputSchema), path: slices.Collect(value.pointer.Tokens())}
			if !given.fits(wanted, h.strict) {
				return &Error{reason.InvalidArguments, fmt.Sprintf("arguments%s: the result of %s is declared as %s, want %s",
					strings.ReplaceAll(string(value.pointer), "/", "."), quoteShort(r.written), given.look(h.strict).kinds,
					wanted.look(false).kinds)}
			}
		}
	}
	return nil
}

// list returns the place of a loop's list.
func (h *shapes) list(s *Step) (place, *Error) {
	r, ok := s.list(h.isStep)
	if !ok {
		return place{}, nil
	}
	list, err := h.find(r, s, place{})
	if err != nil {
		return place{}, err
	}
	if kinds := list.look(h.strict).kinds; kinds&arrayKind == 0 {
		return place{}, &Error{reason.InvalidArguments, fmt.Sprintf("each: %s is declared as %s, want array",
			quoteShort(r.written), kinds)}
	}
	return list, nil
}

// find returns the place that a reference in step s refers to. list is the place of s's list if s is a loop.
func (h *shapes) find(r reference, s *Step, list place) (place, *Error) {
	var at place
	switch i, here := h.index[r.step]; {
	case s.loops() && r.step == itemName:
		at = list.part("0")
	case s.loops() && isElement(r.step):
	case here:
		at = h.output(i)
	}
	for n, segment := range r.path {
		next := at.part(segment)
		if f := next.look(h.strict); f.kinds == 0 || h.strict && f.said == undeclared {
			return place{}, missing(r, fmt.Sprintf("%s is not in %s, which %s declares as %s", quoteShort(segment),
				quoteShort("$"+strings.Join(append([]string{r.step}, r.path[:n]...), ".")), quoteShort(at.tool),
				at.describe(h.strict)))
		}
		at = next
	}
	return at, nil
}

// output returns the place of the value of a step.
func (h *shapes) output(i int) place {
	out := place{tool: h.tools[i].Name, loops: h.steps[i].loops()}
	if h.steps[i].Pick == "" {
		out.schema = h.validator.compiledOf(h.tools[i].OutputSchema)
	}
	return out
}

// A place is a part of a value that a schema describes.
type place struct {
	tool   string             // that declares it
	schema *jsonschema.Schema // nil allows anything
	loops  bool               // the value is a list, and the schema is that of its elements
	path   []string
}

func (p place) part(segment string) place {
	p.path = append(slices.Clip(p.path), segment)
	return p
}

// look returns what the schema says of the place.
func (p place) look(strict bool) found {
	path := p.path
	if p.loops {
		if len(path) == 0 {
			return found{kinds: arrayKind}
		}
		if _, ok := index(path[0]); !ok {
			return found{}
		}
		if path = path[1:]; len(path) == 0 { // null if the call failed
			f := newLook(strict).at(p.schema, nil)
			f.kinds |= nullKind
			return f
		}
	}
	return newLook(strict).at(p.schema, path)
}

// fits reports whether a value of one place may be a value of another. With strict, lists must have fitting elements;
// without, the empty list always fits.
func (p place) fits(wanted place, strict bool) bool {
	common := p.look(strict).kinds & wanted.look(false).kinds
	if common == arrayKind && strict {
		return p.part("0").look(strict).kinds&wanted.part("0").look(false).kinds != 0
	}
	return common != 0
}

// describe describes the declared type of a place and its fields.
func (p place) describe(strict bool) string {
	l := newLook(strict)
	l.fields = map[string]bool{}
	path := p.path
	if p.loops && len(path) > 0 {
		path = path[1:]
	}
	if !p.loops || len(p.path) > 0 {
		l.at(p.schema, path)
	}
	if len(l.fields) == 0 {
		return p.look(strict).kinds.String()
	}
	names := make([]string, 0, len(l.fields))
	for name := range l.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return "object with " + first(10, names, quoteShort)
}

// compiledOf returns the compiled schema of a text; nil if it declares nothing usable.
func (v *Validator) compiledOf(text json.RawMessage) *jsonschema.Schema {
	if s := v.schema(text); s != nil {
		return s.compiled
	}
	return nil
}
