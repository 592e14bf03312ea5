package plan

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// maxCost limits the work of one validation, in units of some tens of nanoseconds.
const maxCost = 4_000_000

// A node is the cost of validation with one subschema, and the subschemas that it applies. Subschemas that apply to
// the same value multiply: 25 levels of anyOf with two branches each are 33 million evaluations. So a count of how
// often each subschema is applied to each value precedes validation. It assumes that no branch ends early.
type node struct {
	schema  *jsonschema.Schema
	inPlace map[*node]int64 // how often each subschema, including this one, applies to the same value
	height  int             // length of the longest chain of these subschemas
	data    int64           // cost of comparing with const and enum
	regexps int64           // instructions of patternProperties
}

// analyse returns the node of every subschema. It fails if a subschema applies recursively to the same value, or if
// the numbers exceed their limits.
func analyse(root *jsonschema.Schema) (map[*jsonschema.Schema]*node, error) {
	nodes := map[*jsonschema.Schema]*node{root: newNode(root)}
	for queue := []*jsonschema.Schema{root}; len(queue) > 0; {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if s.RecursiveRef != nil || s.DynamicRef != nil {
			return nil, errors.New("dynamic references are not followed")
		}
		for _, sub := range slices.Concat(sameValue(s), partValue(s)) {
			if nodes[sub] == nil {
				nodes[sub] = newNode(sub)
				queue = append(queue, sub)
			}
		}
	}
	pairs := 0
	for _, n := range nodes {
		if err := closeOver(n, nodes, &pairs, 0); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func newNode(s *jsonschema.Schema) *node {
	n := &node{schema: s}
	if s.Const != nil {
		n.data += weight(*s.Const)
	}
	if s.Enum != nil {
		for _, v := range s.Enum.Values {
			n.data += weight(v)
		}
	}
	for re := range s.PatternProperties {
		n.regexps += programSize(re)
	}
	return n
}

// closeOver computes n.inPlace. above is the depth of the recursion.
func closeOver(n *node, nodes map[*jsonschema.Schema]*node, pairs *int, above int) error {
	if n.height > 0 {
		return nil
	}
	if above > maxInPlace { // a chain too long, or endless
		return errBounds
	}
	inPlace := map[*node]int64{n: 1}
	for _, s := range sameValue(n.schema) {
		sub := nodes[s]
		if err := closeOver(sub, nodes, pairs, above+1); err != nil {
			return err
		}
		n.height = max(n.height, sub.height)
		for m, times := range sub.inPlace {
			inPlace[m] = add(inPlace[m], times)
		}
		if *pairs += len(sub.inPlace); *pairs > maxClosure {
			return errBounds
		}
	}
	n.inPlace = inPlace
	n.height++
	return nil
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

// partValue returns the subschemas that apply to parts of the value that s applies to.
func partValue(s *jsonschema.Schema) []*jsonschema.Schema {
	subs := slices.Concat(s.PrefixItems, []*jsonschema.Schema{
		s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems,
	})
	subs = slices.AppendSeq(subs, maps.Values(s.Properties))
	subs = slices.AppendSeq(subs, maps.Values(s.PatternProperties))
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			subs = append(subs, v)
		case []*jsonschema.Schema:
			subs = append(subs, v...)
		}
	}
	return slices.DeleteFunc(subs, func(s *jsonschema.Schema) bool { return s == nil })
}

// affordable reports whether validating instance stays within maxCost.
func (s *compiledSchema) affordable(instance any) bool {
	b := budget{nodes: s.nodes, left: maxCost}
	b.spend(instance, map[*node]int64{s.nodes[s.compiled]: 1})
	return b.left > 0
}

type budget struct {
	nodes map[*jsonschema.Schema]*node
	left  int64
}

func (b *budget) charge(times, cost int64) { b.left -= min(multiply(times, cost), maxCost+1) }

// spend charges the validation of v and its parts. applied has how often each schema applies to v.
func (b *budget) spend(v any, applied map[*node]int64) {
	all := make(map[*node]int64, len(applied))
	for n, times := range applied {
		for m, more := range n.inPlace {
			all[m] = add(all[m], multiply(times, more))
		}
	}
	for n, times := range all {
		b.charge(times, n.cost(v))
	}
	descend := func(part any, subs func(*jsonschema.Schema) []*jsonschema.Schema) {
		if b.left <= 0 {
			return
		}
		next := make(map[*node]int64)
		for n, times := range all {
			for _, sub := range subs(n.schema) {
				if sub != nil {
					next[b.nodes[sub]] = add(next[b.nodes[sub]], times)
				}
			}
		}
		if len(next) > 0 {
			b.spend(part, next)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			descend(part, func(s *jsonschema.Schema) []*jsonschema.Schema { return memberSchemas(s, name) })
			descend(name, func(s *jsonschema.Schema) []*jsonschema.Schema { return []*jsonschema.Schema{s.PropertyNames} })
		}
	case []any:
		for i, part := range v {
			descend(part, func(s *jsonschema.Schema) []*jsonschema.Schema { return elementSchemas(s, i) })
		}
	}
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

// cost returns the cost of applying n to v without its subschemas.
func (n *node) cost(v any) int64 {
	s := n.schema
	c := 10 + n.data
	switch v := v.(type) {
	case map[string]any:
		c += int64(len(v)*4 + len(s.Required) + len(s.Dependencies) + len(s.DependentRequired))
		if n.regexps > 0 {
			for name := range v {
				c += matching(len(name), n.regexps)
			}
		}
	case []any:
		c += int64(len(v) * 2)
		if s.UniqueItems {
			c = add(c, multiply(int64(len(v)), int64(len(v)))/2)
			if len(v) <= 20 {
				c = add(c, multiply(int64(len(v)), weight(v)))
			} else {
				c = add(c, 2*weight(v))
			}
		}
	case string:
		c += int64(len(v) / 16)
		if s.Pattern != nil {
			c += matching(len(v), programSize(s.Pattern))
		}
	case json.Number:
		c += 30 // rational arithmetic
	}
	return c
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

// add and multiply saturate instead of wrapping.

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func multiply(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
