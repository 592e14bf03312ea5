package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// WithoutRepeats removes the steps of a later round that make a call which an earlier round has made, whatever came of
// it: what is done is not done again. Under a new id a call that reads may be repeated, to look for a change, and one
// that never reached its server. References to a removed step then mean the earlier one.
func WithoutRepeats(p *Plan, done []Outcome, reads func(Step) bool) {
	isStep := func(id string) bool {
		return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.ID == id }) ||
			slices.ContainsFunc(done, func(o Outcome) bool { return o.Step.ID == id })
	}
	isNew := func(id string) bool {
		return !slices.ContainsFunc(done, func(o Outcome) bool { return o.Step.ID == id })
	}
	for i := 0; i < len(p.Steps); {
		earlier, ok := repeated(p.Steps[i], done)
		if !ok || isNew(p.Steps[i].ID) && (reads(p.Steps[i]) || earlier.Err != nil &&
			earlier.Err.Reason == ReasonUnavailable) ||
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

// call is what came of a call that an earlier round has made.
type call struct {
	Outcome
	element bool // of a loop
}

// place is how references name the value of the call.
func (c call) place() string {
	if c.element {
		return c.Step.ID + "." + strconv.Itoa(c.Index)
	}
	return c.Step.ID
}

// usedInExpressions reports whether an expression names a step that would go under another id. It would have to be
// rewritten; the step stays, and whoever runs it sees that it repeats a call.
func usedInExpressions(steps []Step, gone string, earlier call) bool {
	return gone != earlier.place() && slices.ContainsFunc(steps, func(s Step) bool {
		when, pick := s.names()
		return slices.Contains(when, gone) || slices.Contains(pick, gone)
	})
}

// repeated returns the outcome of the very call that a step would make, if an earlier round has made it: one that
// succeeded rather than one that failed. A step that refers to steps yet to run repeats nothing, and a loop repeats
// only the same loop.
func repeated(s Step, done []Outcome) (call, bool) {
	value := func(id string) (json.RawMessage, bool) {
		i := slices.IndexFunc(done, func(o Outcome) bool { return o.Step.ID == id })
		if i < 0 || !done[i].OK() {
			return nil, false
		}
		return done[i].Value, done[i].Value != nil
	}
	known := func(id string) bool {
		return slices.ContainsFunc(done, func(o Outcome) bool { return o.Step.ID == id })
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
		case o.Skipped || o.Step.Tool != s.Tool || o.Step.Server != s.Server:
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

// sameJSON compares two values but for the space between their parts, the order of members and the way in which
// strings are escaped and numbers written.
func sameJSON(a, b json.RawMessage) bool {
	x, y := jsontext.Value(slices.Clone(a)), jsontext.Value(slices.Clone(b))
	plain := []jsontext.Options{jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false)}
	if x.Compact(plain...) != nil || y.Compact(plain...) != nil {
		return false
	}
	dx, dy := newDecoder(x), newDecoder(y)
	for {
		t, err := dx.ReadToken()
		u, uerr := dy.ReadToken()
		switch {
		case err != nil || uerr != nil:
			return errors.Is(err, io.EOF) && errors.Is(uerr, io.EOF)
		case t.Kind() != u.Kind():
			return false
		case t.Kind() == '0':
			if decimal(t.String()) != decimal(u.String()) {
				return false
			}
		case t.String() != u.String():
			return false
		}
	}
}

// number is a JSON number: digits, which neither begin nor end with zeros, × 10^exponent.
type number struct {
	negative bool
	digits   string
	exponent int64
}

// decimal reads a number exactly: no float64 is between 9007199254740993 and its neighbours. One with an exponent
// beyond all measure equals only itself, as it is written.
func decimal(text string) number {
	mantissa, power, scientific := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole, negative := strings.CutPrefix(whole, "-")
	var exponent int64
	if scientific {
		var err error
		if exponent, err = strconv.ParseInt(power, 10, 32); err != nil {
			return number{digits: text}
		}
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return number{}
	}
	significant := strings.TrimRight(digits, "0")
	return number{negative, significant, exponent - int64(len(fraction)) + int64(len(digits)-len(significant))}
}

// Empty reports whether a step that succeeded found nothing: null, an empty text, list or object, or an object of
// nothing but those, zeros and what it was asked with, such as {"query": "x", "count": 0, "results": []}.
func (o Outcome) Empty() bool {
	if !o.OK() || len(o.Blocks) > 0 || len(o.Elements) > 0 {
		return false
	}
	v := jsontext.Value(o.Value)
	if v.Kind() != '{' {
		return hollow(v)
	}
	nothing, something := len(bytes.TrimSpace(v)) == len("{}"), false
	for _, member := range memberSeq(v) {
		switch {
		case hollow(member):
			nothing = true
		case string(member) == "0", member.Kind() == 'f', bytes.Contains(o.Sent, member):
		default:
			something = true
		}
	}
	return nothing && !something
}

// hollow reports whether a value has nothing in it.
func hollow(v jsontext.Value) bool {
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
