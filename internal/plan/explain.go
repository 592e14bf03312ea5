package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Limits of a message.
const (
	maxFindings = 5
	maxFinding  = 300 // bytes
)

// explainRefusal reports what is wrong with instance. unknown are JSON pointers to values that are not known yet: only
// what is wrong for any of their values is reported.
func explainRefusal(s *jsonschema.Schema, instance any, unknown []string) (refused *Error) {
	// As in compile: a panic of the validator must not end the process. A schema that causes one accepts everything.
	defer func() {
		if recover() != nil {
			refused = nil
		}
	}()
	var err *jsonschema.ValidationError
	if !errors.As(s.Validate(instance), &err) {
		return nil
	}
	e := explainer{root: instance, open: make(map[string]bool), unknown: make(map[string]bool)}
	for _, pointer := range unknown {
		e.unknown[pointer] = true
		for pointer != "" {
			e.open[pointer] = true
			pointer = pointer[:strings.LastIndexByte(pointer, '/')]
		}
		e.open[""] = true
	}
	findings := e.explain(err)
	if len(findings) == 0 {
		return nil
	}
	slices.SortFunc(findings, func(a, b *finding) int {
		return cmp.Or(slices.Compare(a.path, b.path), cmp.Compare(a.text, b.text))
	})
	findings = slices.CompactFunc(findings, func(a, b *finding) bool {
		return a.text == b.text && slices.Equal(a.path, b.path)
	})
	var lines []string
	for i, f := range findings {
		if i == maxFindings {
			lines = append(lines, fmt.Sprintf("and %d more", len(findings)-i))
			break
		}
		lines = append(lines, texts.Line(e.location(f.path)+": "+f.text, maxFinding))
	}
	return &Error{reason.InvalidArguments, strings.Join(lines, "; ")}
}

// A finding is one error of the arguments.
type finding struct {
	path []string // of the value within the arguments
	text string
	got  string   // type found, for a type error
	want []string // types allowed
}

// An explainer turns the validator's tree of errors into findings.
type explainer struct {
	root    any
	unknown map[string]bool // pointers to unknown values
	open    map[string]bool // pointers to values that hold unknown ones, and those themselves
}

// explain returns the findings of an error that hold for any unknown values. It returns none if the error may depend
// on them.
func (e *explainer) explain(err *jsonschema.ValidationError) []*finding {
	at := pointer(err.InstanceLocation)
	if e.unknown[at] {
		return nil
	}
	if len(e.unknown) > 0 && conditional(err.SchemaURL) {
		return nil
	}
	open := e.open[at]
	switch k := err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		var all []*finding
		for _, cause := range err.Causes {
			all = append(all, e.explain(cause)...)
		}
		return all
	case *kind.AnyOf:
		return e.alternatives(err)
	case *kind.OneOf:
		if k.Subschemas == nil {
			return e.alternatives(err)
		}
		if open {
			return nil
		}
	case *kind.Not, *kind.Const, *kind.Enum, *kind.UniqueItems, *kind.Contains, *kind.MinContains, *kind.MaxContains:
		if open {
			return nil
		}
	case *kind.Type:
		return wrongType(err.InstanceLocation, k.Got, k.Want)
	}
	return []*finding{{path: err.InstanceLocation, text: describe(err.ErrorKind)}}
}

// alternatives explains that no branch of anyOf or oneOf matches. It returns nothing if a branch may match once the
// unknown values are known. Otherwise it returns the findings of the branch that matched deepest, or one finding with
// the types of all branches.
func (e *explainer) alternatives(err *jsonschema.ValidationError) []*finding {
	var best []*finding
	var want []string
	types := true
	got := ""
	for _, branch := range err.Causes {
		findings := e.explain(branch)
		if len(findings) == 0 {
			return nil
		}
		f := findings[0]
		if types = types && len(findings) == 1 && f.want != nil && len(f.path) == len(err.InstanceLocation); types {
			got = f.got
			for _, w := range f.want {
				if !slices.Contains(want, w) {
					want = append(want, w)
				}
			}
		}
		deeper := depth(findings) - depth(best)
		if best == nil || deeper > 0 || deeper == 0 && onlyType(best) && !onlyType(findings) {
			best = findings
		}
	}
	if types && want != nil {
		return wrongType(err.InstanceLocation, got, want)
	}
	if best == nil {
		return []*finding{{path: err.InstanceLocation, text: "no alternative fits"}}
	}
	return best
}

func wrongType(path []string, got string, want []string) []*finding {
	return []*finding{{path: path, text: "got " + got + ", want " + strings.Join(want, " or "), got: got, want: want}}
}

func depth(findings []*finding) int {
	deepest := 0
	for _, f := range findings {
		deepest = max(deepest, len(f.path))
	}
	return deepest
}

func onlyType(findings []*finding) bool { return len(findings) == 1 && findings[0].want != nil }

// conditional reports whether a subschema applies only if another one matches, which may depend on unknown values.
func conditional(location string) bool {
	for _, keyword := range []string{"/then", "/else", "/unevaluatedProperties", "/unevaluatedItems"} {
		if strings.Contains(location, keyword) {
			return true
		}
	}
	return false
}

// describe returns a short message.
func describe(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return plural("missing property", "missing properties", k.Missing)
	case *kind.AdditionalProperties:
		return plural("unknown property", "unknown properties", slices.Sorted(slices.Values(k.Properties)))
	case *kind.Enum:
		return "got " + compact(k.Got) + ", want one of " + first(20, k.Want, compact)
	case *kind.Const:
		return "got " + compact(k.Got) + ", want " + compact(k.Want)
	case *kind.Pattern:
		return "got " + quoteShort(k.Got) + ", want a match of " + quoteShort(k.Want)
	case *kind.PropertyNames:
		return "property " + quoteShort(k.Property) + " has a name that is not allowed"
	case *kind.FalseSchema:
		return "not allowed"
	case *kind.Not:
		return "has a form that is not allowed"
	case *kind.OneOf:
		return "fits several alternatives, want exactly one"
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func plural(one, several string, names []string) string {
	if len(names) == 1 {
		return one + " " + quoteShort(names[0])
	}
	return several + " " + first(10, names, quoteShort)
}

// first lists n of the values and counts the others.
func first[T any](n int, values []T, text func(T) string) string {
	var texts []string
	for _, v := range values[:min(len(values), n)] {
		texts = append(texts, text(v))
	}
	if more := len(values) - n; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "value"
	}
	return texts.Cut(string(text), 60)
}

// pointer returns the JSON pointer for a path (RFC 6901).
func pointer(path []string) string {
	var p jsontext.Pointer
	for _, name := range path {
		p = p.AppendToken(name)
	}
	return string(p)
}

// location formats a path like a program does: arguments.items[0].name.
func (e *explainer) location(path []string) string {
	b := []byte("arguments")
	v := e.root
	for _, name := range path {
		switch parent := v.(type) {
		case []any:
			b = append(append(append(b, '['), name...), ']')
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(parent) {
				v = nil
				continue
			}
			v = parent[i]
		case map[string]any:
			if plain(name) {
				b = append(append(b, '.'), name...)
			} else {
				b = append(append(append(b, '['), quoteShort(name)...), ']')
			}
			v = parent[name]
		}
	}
	return string(b)
}

func plain(name string) bool {
	for _, r := range name {
		if r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return name != "" && len(name) <= 100
}
