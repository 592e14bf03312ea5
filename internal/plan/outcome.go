package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Outcome is the result of one step, or of one call of a loop.
type Outcome struct {
	Step     Step              // with references as written in the plan
	Sent     json.RawMessage   // the arguments after substitution; nil if the step never ran
	Value    json.RawMessage   // see ValueOf; nil on failure
	Blocks   []json.RawMessage // content blocks that are not text: images, audio, resource links, resources
	Err      *Error            // nil on success
	Skipped  bool              // not run: its When, or that of a step it depends on, was false
	Elements []Outcome         // of a step that loops: one per element of its list
	Index    int               // of an element, from 0
	Attempts int               // calls made, 0 if the step never ran
	Tries    []Try             // the timed attempts
	Started  time.Duration     // since the query began
	Duration time.Duration
}

// Try is one attempt of a call.
type Try struct {
	Started  time.Duration // since the query began
	Duration time.Duration
	Reason   string // why it failed; empty if it was answered
}

// OK reports whether the step succeeded. A loop succeeds unless all its calls failed; a skipped step does not.
func (o Outcome) OK() bool { return o.Err == nil && !o.Skipped }

// Failed reports whether the step failed.
func (o Outcome) Failed() bool { return o.Err != nil }

// PartialFailure returns the failures of a loop that otherwise succeeded, as the outcome of a separate step that names
// the elements.
func (o Outcome) PartialFailure() (Outcome, bool) {
	const most = 20
	var first *Error
	var places []string
	failed := 0
	for _, c := range o.Elements {
		if c.Err == nil {
			continue
		}
		if failed++; failed <= most {
			places = append(places, strconv.Itoa(c.Index))
		}
		first = cmp.Or(first, c.Err)
	}
	if o.Err != nil || failed == 0 {
		return Outcome{}, false
	}
	if failed > most {
		places = append(places, fmt.Sprintf("%d more", failed-most))
	}
	part := Outcome{Step: o.Step, Attempts: o.Attempts, Started: o.Started, Duration: o.Duration}
	part.Err = &Error{first.Reason, fmt.Sprintf("failed for %d of %d elements (%s); the first time: %s",
		failed, len(o.Elements), strings.Join(places, ", "), first.Message)}
	part.Step.ID += "-failed"
	return part, true
}

// Calls returns the outcomes of a loop's calls, else the outcome itself.
func (o Outcome) Calls() []Outcome {
	if len(o.Elements) > 0 {
		return o.Elements
	}
	return []Outcome{o}
}

// MayHaveActed reports whether the step failed and its call may have done its work.
func (o Outcome) MayHaveActed() bool {
	if o.Err == nil || o.Attempts == 0 {
		return false
	}
	switch o.Err.Reason {
	case reason.InvalidArguments: // an error in Pick, after the call
		return true
	case reason.OutcomeUnknown, reason.Timeout, reason.Cancelled, reason.Disconnected, reason.TooLarge,
		reason.Protocol, reason.Internal:
		return true
	}
	return false
}

// Reached reports whether the call of the step may have reached its server. The reason unavailable means that it
// certainly has not.
func (o Outcome) Reached() bool {
	return o.Attempts > 0 && (o.Err == nil || o.Err.Reason != reason.Unavailable)
}

// Shown returns the parts of an outcome that users see: its value, or for a failure the text "Error: …", and the
// failure. Both are cut to limit bytes each, like Cut does; cut reports whether anything is missing. A limit of 0
// leaves them whole.
func (o Outcome) Shown(limit int) (value json.RawMessage, failure *Error, cut bool) {
	value, failure = o.Value, o.Err
	if failure != nil {
		value = appendQuoted(nil, "Error: "+failure.Message)
	}
	if limit == 0 {
		return value, failure, false
	}
	value, cut = Cut(value, limit)
	if failure != nil && len(failure.Message) > limit {
		failure = &Error{Reason: failure.Reason, Message: texts.Cut(failure.Message, limit)}
		cut = true
	}
	return value, failure, cut
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

// List joins the values of a loop's calls. Failed ones are null, skipped ones are left out.
func List(calls []Outcome) json.RawMessage {
	list := []byte{'['}
	for _, o := range calls {
		switch {
		case o.Skipped:
			continue
		case len(list) > 1:
			list = append(list, ',')
		}
		if o.OK() && o.Value != nil {
			list = append(list, o.Value...)
		} else {
			list = append(list, "null"...)
		}
	}
	return append(list, ']')
}
