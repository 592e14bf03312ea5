package plan

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// WithoutRepeats removes the steps of a later round whose call an earlier round has made, with any outcome, and equal
// steps that an earlier round has skipped. Two calls may be repeated under a new id: one that reads, to see a change,
// and one that never reached its server. References to a removed step then refer to the earlier step.
func WithoutRepeats(p *Plan, done []Outcome, reads func(Step) bool) {
	isNew := func(id string) bool { return outcomeOf(done, id) == nil }
	isStep := func(id string) bool { return p.Step(id) != nil || !isNew(id) }
	for i := 0; i < len(p.Steps); {
		id := p.Steps[i].ID
		earlier, value := repeated(p.Steps[i], done)
		repeatable := reads(p.Steps[i]) || earlier != nil && earlier.Err != nil && earlier.Err.Reason == reason.Unavailable
		declined := earlier != nil && earlier.Err != nil && earlier.Err.Reason == reason.Declined // is not asked again
		if earlier == nil || !declined && isNew(id) && repeatable || id != value && usedInExpressions(p, id, isStep) {
			i++
			continue
		}
		for j := range p.Steps {
			s := &p.Steps[j]
			s.Arguments = rename(s.Arguments, s.outside(isStep), id, value)
			s.Each = renameIn(s.Each, isStep, id, value)
			s.After = slices.Clone(s.After)
			for k := range s.After {
				if s.After[k] == id {
					s.After[k] = earlier.Step.ID
				}
			}
		}
		p.Steps = slices.Delete(p.Steps, i, i+1)
		i = 0 // steps before it may have become repeats by the new references
	}
}

// RepeatedWrites reports the steps that repeat a call of an earlier step of the plan, with a tool that is Cumulative.
// If the user wants both, the user must say so.
func RepeatedWrites(p *Plan, lookup Lookup) (problems []Problem) {
	for i, s := range p.Steps {
		twin := slices.IndexFunc(p.Steps[:i], func(o Step) bool { return sameCall(o, s) })
		if tool, unknown := lookup(s.Tool); twin >= 0 && unknown == nil && tool.Cumulative() {
			problems = append(problems, Problem{Step: s.ID, Error: Error{reason.NeedsApproval, fmt.Sprintf(
				"makes the very call of step %s; leave it out unless the user asks for both", quoteShort(p.Steps[twin].ID))}})
		}
	}
	return problems
}

// outcomeOf returns the outcome of the step with that id, nil if there is none.
func outcomeOf(done []Outcome, id string) *Outcome {
	for i := range done {
		if done[i].Step.ID == id {
			return &done[i]
		}
	}
	return nil
}

// usedInExpressions reports whether an expression refers to a step. Expressions are not rewritten: such a step stays,
// and the executor detects the repeated call.
func usedInExpressions(p *Plan, id string, isStep func(string) bool) bool {
	return slices.Contains(p.condition().names(), id) || slices.ContainsFunc(p.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.expressions(isStep), func(f formula) bool { return slices.Contains(f.names(), id) })
	})
}

// repeated returns the outcome of the same call in an earlier round, preferring a successful one, and the reference to
// its value; nil if there is none. A step that refers to steps that have not run repeats nothing, and a loop repeats
// only the same loop.
func repeated(s Step, done []Outcome) (best *Outcome, value string) {
	known := func(id string) bool { return outcomeOf(done, id) != nil }
	arguments, err := Substitute(s.Arguments, known, func(id string) (json.RawMessage, bool) {
		if o := outcomeOf(done, id); o != nil && o.OK() {
			return o.Value, o.Value != nil
		}
		return nil, false
	})
	if err != nil {
		arguments = s.Arguments
	}
	note := func(o *Outcome, reference string) {
		if best == nil || o.OK() && !best.OK() {
			best, value = o, reference
		}
	}
	for i := range done {
		o := &done[i]
		same := sameCall(o.Step, s)
		switch {
		case o.Step.Tool != s.Tool || o.Step.Server != s.Server:
			continue
		case s.Computes():
		case o.Skipped:
			same = same && o.Step.ID == s.ID // its condition is still false
		case !s.loops() && !o.Step.loops():
			sent := o.Sent
			if sent == nil {
				sent = o.Step.Arguments
			}
			same = sameJSON(sent, arguments) || sameJSON(o.Step.Arguments, s.Arguments)
		}
		if same {
			note(o, o.Step.ID)
		}
		place := 0 // in the loop's value
		for k := range o.Elements {
			c := &o.Elements[k]
			if c.Skipped {
				continue
			}
			if !s.loops() && sameJSON(c.Sent, arguments) {
				note(c, o.Step.ID+"."+strconv.Itoa(place))
			}
			place++
		}
	}
	return best, value
}

// CallKey returns a key that calls of the same tool share if their arguments are equal as JSON.
func CallKey(server, tool string, arguments json.RawMessage) [sha256.Size]byte {
	text, ok := canonical(arguments)
	if !ok {
		text = string(arguments)
	}
	return sha256.Sum256([]byte(server + "\x00" + tool + "\x00" + text))
}

// sameJSON reports whether two values are equal as JSON.
func sameJSON(a, b json.RawMessage) bool {
	x, ok := canonical(a)
	y, also := canonical(b)
	return ok && also && x == y
}

// canonical returns a text that is the same for equal values: white space, member order, string escapes and number
// formats do not matter. Numbers are compared exactly: as float64, 9007199254740993 would equal its neighbours. A
// number that is too long for exact arithmetic equals only the same text. ok is false for invalid JSON.
func canonical(value json.RawMessage) (string, bool) {
	v := jsontext.Value(slices.Clone(value))
	if v.Compact(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false)) != nil {
		return "", false
	}
	var out []byte
	for d := newDecoder(v); ; {
		t, err := d.ReadToken()
		if err != nil {
			return string(out), errors.Is(err, io.EOF)
		}
		switch text := t.String(); {
		case t.Kind() == '"':
			out = strconv.AppendQuote(out, text)
		case t.Kind() == '0' && cheapNumber(text):
			n, _ := new(big.Rat).SetString(text)
			out = append(append(out, n.RatString()...), ',')
		case t.Kind() == '0':
			out = append(append(out, text...), ',')
		default:
			out = append(out, byte(t.Kind()))
		}
	}
}

// Pending returns the remaining steps of a plan that has run in part, such that running them later repeats no write:
// all steps except writes whose calls may have reached their servers, and steps that computed from them. References to
// these are replaced by their values, and what they carry is kept in Carries. left are the steps that need more of them
// than a value, and all steps that depend on such steps: they cannot run later.
func (p *Plan) Pending(done []Outcome, reads func(Step) bool) (steps, left []Step) {
	made, values, computed := map[string]bool{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, o := range done {
		if o.Step.Computes() && o.OK() {
			computed[o.Step.ID] = o.Value
		}
		if !reads(o.Step) && slices.ContainsFunc(o.Calls(), Outcome.Reached) {
			made[o.Step.ID] = true
			if o.OK() && o.Value != nil {
				values[o.Step.ID] = o.Value
			}
		}
	}
	flows := p.Flows()
	gone := map[string]bool{} // ids of left
	for before := -1; before < len(gone)+len(made); {
		before, steps, left = len(gone)+len(made), nil, nil
		for _, s := range p.Steps {
			switch rest, ok := s.without(p, made, values); {
			case made[s.ID]:
			case ok && !slices.ContainsFunc(s.Needs(p.has), func(id string) bool { return gone[id] }):
				if slices.ContainsFunc(s.Needs(p.has), func(id string) bool { return made[id] }) {
					rest.Carries = flows[s.ID] // its references no longer tell
				}
				steps = append(steps, rest)
			case computed[s.ID] != nil: // from a write
				made[s.ID], values[s.ID] = true, computed[s.ID]
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
