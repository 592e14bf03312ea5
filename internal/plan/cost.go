package plan

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// maxCost limits the work of one validation, in units of some tens of nanoseconds.
const maxCost = 4_000_000

// affordable reports whether validating instance stays within maxCost. Subschemas that apply to the same value
// multiply: 25 levels of anyOf with two branches each are 33 million evaluations. So affordable walks the schema as the
// validator would do if no branch ended early, and stops when the budget is spent.
func affordable(s *jsonschema.Schema, instance any) bool {
	b := budget(maxCost)
	b.validate(s, instance, 0)
	return b > 0
}

// budget is what is left of maxCost.
type budget int64

// validate charges the validation of v and its parts. depth is the number of schemas around s that apply to v, too.
func (b *budget) validate(s *jsonschema.Schema, v any, depth int) {
	if s == nil || *b <= 0 {
		return
	}
	if depth > maxInPlace || s.RecursiveRef != nil || s.DynamicRef != nil { // maybe endless
		*b = 0
		return
	}
	b.charge(s, v)
	subs := sameValue(s)
	*b -= budget(10 * len(subs))
	for _, sub := range subs {
		b.validate(sub, v, depth+1)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			for _, sub := range memberSchemas(s, name) {
				b.validate(sub, part, 0)
			}
			b.validate(s.PropertyNames, name, 0)
		}
	case []any:
		for i, part := range v {
			for _, sub := range elementSchemas(s, i) {
				b.validate(sub, part, 0)
			}
		}
	}
}

// sameValue returns the subschemas that apply to the value that s applies to.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	subs := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else})
	subs = slices.AppendSeq(subs, maps.Values(s.DependentSchemas))
	for _, d := range s.Dependencies {
		if sub, ok := d.(*jsonschema.Schema); ok {
			subs = append(subs, sub)
		}
	}
	return slices.DeleteFunc(subs, func(s *jsonschema.Schema) bool { return s == nil })
}

// memberSchemas returns the subschemas of s that may apply to the member of an object. Some may be nil.
func memberSchemas(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	subs := slices.AppendSeq([]*jsonschema.Schema{s.UnevaluatedProperties}, maps.Values(s.PatternProperties))
	if sub, named := s.Properties[name]; named {
		return append(subs, sub)
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return append(subs, additional)
}

// elementSchemas returns the subschemas of s that may apply to an element of an array. Some may be nil.
func elementSchemas(s *jsonschema.Schema, i int) []*jsonschema.Schema {
	tuple, rest := s.PrefixItems, s.Items2020
	if items, ok := s.Items.([]*jsonschema.Schema); ok {
		tuple = items
	}
	for _, v := range []any{s.Items, s.AdditionalItems} {
		if sub, ok := v.(*jsonschema.Schema); ok {
			rest = sub
		}
	}
	if i < len(tuple) {
		rest = tuple[i]
	}
	return []*jsonschema.Schema{rest, s.Contains, s.UnevaluatedItems}
}

// charge charges the application of s to v without its subschemas.
func (b *budget) charge(s *jsonschema.Schema, v any) {
	cost := int64(10)
	if s.Const != nil {
		cost += weight(*s.Const)
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			cost += weight(value)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		cost += int64(len(v)*4 + len(s.Required) + len(s.Dependencies) + len(s.DependentRequired))
		for re := range s.PatternProperties {
			for name := range v {
				cost += matching(len(name), programSize(re))
			}
		}
	case []any:
		cost += int64(len(v) * 2)
		if s.UniqueItems {
			n := int64(len(v))
			cost += n*n/2 + min(n, 20)*weight(v)
		}
	case string:
		cost += int64(len(v) / 16)
		if s.Pattern != nil {
			cost += matching(len(v), programSize(s.Pattern))
		}
	case json.Number:
		cost += 30 // rational arithmetic
	}
	*b -= budget(cost)
}

func matching(length int, program int64) int64 { return 1 + int64(length)*program/4 }

func programSize(re jsonschema.Regexp) int64 {
	if p, ok := re.(*expression.Pattern); ok {
		return int64(p.Size)
	}
	return maxPrograms
}

// weight is the cost of comparing a value with another.
func weight(v any) int64 {
	switch v := v.(type) {
	case map[string]any:
		sum := int64(4)
		for name, part := range v {
			sum += 2 + int64(len(name)/64) + weight(part)
		}
		return sum
	case []any:
		sum := int64(1)
		for _, part := range v {
			sum += weight(part)
		}
		return sum
	case string:
		return 1 + int64(len(v)/64)
	case json.Number:
		return 30
	}
	return 1
}
