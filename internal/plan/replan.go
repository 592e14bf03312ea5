package plan

import (
	"bytes"
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
		earlier, ok := repeated(p.Steps[i], done)
		unreached := earlier.Err != nil && earlier.Err.Reason == reason.Unavailable
		if !ok || isNew(p.Steps[i].ID) && (reads(p.Steps[i]) || unreached) ||
			usedInExpressions(p.Steps, p.Steps[i].ID, earlier) {
			i++
			continue
		}
		gone := p.Steps[i].ID
		if value := earlier.place(); gone != value {
			for j := range p.Steps {
				s := &p.Steps[j]
				s.Arguments = rename(s.Arguments, s.outside(isStep), gone, value)
				s.Each = renameIn(s.Each, isStep, gone, value)
				s.After = slices.Clone(s.After)
				for k, id := range s.After {
					if id == gone {
						s.After[k] = earlier.Step.ID
					}
				}
			}
		}
		p.Steps = slices.Delete(p.Steps, i, i+1)
		i = 0 // steps before it may have become repeats by the new references
	}
}

// Twins reports the steps that repeat a call of an earlier step of the plan, with a tool that is Cumulative. If the
// user wants both, the user must say so.
func Twins(p *Plan, lookup Lookup) (problems []Problem) {
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

// call is the outcome of a call that an earlier round has made.
type call struct {
	Outcome
	element bool // of a loop
}

// place returns the reference to the value of the call.
func (c call) place() string {
	if c.element {
		return c.Step.ID + "." + strconv.Itoa(c.Index)
	}
	return c.Step.ID
}

// usedInExpressions reports whether an expression refers to a step whose id would change. Expressions are not
// rewritten: such a step stays, and the executor detects the repeated call.
func usedInExpressions(steps []Step, gone string, earlier call) bool {
	return gone != earlier.place() && slices.ContainsFunc(steps, func(s Step) bool {
		when, pick := s.names()
		return slices.Contains(when, gone) || slices.Contains(pick, gone)
	})
}

// repeated returns the outcome of the same call in an earlier round, preferring a successful one. A step that refers
// to steps that have not run repeats nothing, and a loop repeats only the same loop.
func repeated(s Step, done []Outcome) (call, bool) {
	known := func(id string) bool { return outcomeOf(done, id) != nil }
	value := func(id string) (json.RawMessage, bool) {
		if o := outcomeOf(done, id); o != nil && o.OK() {
			return o.Value, o.Value != nil
		}
		return nil, false
	}
	arguments, err := Substitute(s.Arguments, known, value)
	if err != nil {
		arguments = s.Arguments
	}
	var best call
	found := false
	note := func(o Outcome, element bool) {
		if !found || o.OK() && !best.OK() {
			best, found = call{o, element}, true
		}
	}
	for _, o := range done {
		switch {
		case o.Step.Tool != s.Tool || o.Step.Server != s.Server:
		case o.Skipped:
			if o.Step.ID == s.ID && sameCall(o.Step, s) { // its condition is still false
				note(o, false)
			}
		case s.loops() || o.Step.loops():
			if sameCall(o.Step, s) {
				note(o, false)
			}
			for _, c := range o.Elements {
				if !s.loops() && !c.Skipped && sameJSON(c.Sent, arguments) {
					note(c, true)
				}
			}
		default:
			sent := o.Sent
			if sent == nil {
				sent = o.Step.Arguments
			}
			if sameJSON(sent, arguments) || sameJSON(o.Step.Arguments, s.Arguments) {
				note(o, false)
			}
		}
	}
	return best, found
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

// Empty reports whether a step succeeded without finding anything. Its value is null, an empty text, list or object,
// or an object of only those, zeros and arguments of the call, such as {"query": "x", "count": 0, "results": []}.
func (o Outcome) Empty() bool {
	if !o.OK() || len(o.Blocks) > 0 || len(o.Elements) > 0 {
		return false
	}
	v := jsontext.Value(o.Value)
	if v.Kind() != '{' {
		return isEmpty(v)
	}
	nothing, something := len(bytes.TrimSpace(v)) == len("{}"), false
	for _, member := range memberSeq(v) {
		switch {
		case isEmpty(member):
			nothing = true
		case string(member) == "0", member.Kind() == 'f', bytes.Contains(o.Sent, member):
		default:
			something = true
		}
	}
	return nothing && !something
}

// isEmpty reports whether a value is null or an empty text, list or object.
func isEmpty(v jsontext.Value) bool {
	switch v.Kind() {
	case 'n':
		return true
	case '"':
		return len(bytes.TrimSpace([]byte(unquote(v)))) == 0
	case '[', '{':
		return len(bytes.TrimSpace(v[1:len(v)-1])) == 0
	}
	return len(v) == 0
}
