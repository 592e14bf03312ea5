package plan

import (
	"encoding/json"
	"slices"
)

// Pending returns the remaining steps of a plan that has run in part, such that running them later repeats no write:
// all steps except writes whose calls may have reached their servers. References to these writes are replaced by
// their values. left are the steps that need more of a write than a value, and all steps that depend on them: they
// cannot run later.
func (p *Plan) Pending(done []Outcome, reads func(Step) bool) (steps, left []Step) {
	made, values := map[string]bool{}, map[string]json.RawMessage{}
	for _, o := range done {
		if !reads(o.Step) && slices.ContainsFunc(o.Calls(), Outcome.Reached) {
			made[o.Step.ID] = true
			if o.OK() && o.Value != nil {
				values[o.Step.ID] = o.Value
			}
		}
	}
	gone := map[string]bool{} // ids of left
	for before := -1; before < len(gone); {
		before, steps, left = len(gone), nil, nil
		for _, s := range p.Steps {
			switch rest, ok := s.without(p, made, values); {
			case made[s.ID]:
			case ok && !slices.ContainsFunc(s.Needs(p.has), func(id string) bool { return gone[id] }):
				steps = append(steps, rest)
			default:
				gone[s.ID] = true
				left = append(left, s)
			}
		}
	}
	return steps, left
}

func (p *Plan) has(id string) bool { return p.Step(id) != nil }

// without returns the step with references to executed steps replaced by their values. It reports false if that is
// not possible: a value is missing, a list or an expression refers to such a step, or an inserted text looks like a
// reference.
func (s Step) without(p *Plan, made map[string]bool, values map[string]json.RawMessage) (Step, bool) {
	isMade := func(id string) bool { return made[id] }
	if slices.ContainsFunc(s.loopNeeds(p.has), isMade) || slices.ContainsFunc(s.After, func(id string) bool {
		return made[id] && values[id] == nil
	}) {
		return s, false
	}
	written := func(arguments json.RawMessage) (all []string) {
		for _, value := range referring(arguments, s.outside(p.has)) {
			for _, r := range value.refs {
				if !made[r.step] {
					all = append(all, r.written)
				}
			}
		}
		return all
	}
	before := written(s.Arguments)
	arguments, err := Substitute(s.Arguments, s.outside(isMade), func(id string) (json.RawMessage, bool) {
		v, ok := values[id]
		return v, ok
	})
	if err != nil {
		return s, false
	}
	s.Arguments = arguments
	s.After = slices.DeleteFunc(slices.Clone(s.After), isMade)
	return s, slices.Equal(written(arguments), before) && len(References(arguments, s.outside(isMade))) == 0
}
