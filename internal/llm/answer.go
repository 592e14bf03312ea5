package llm

import (
	"slices"
	"strings"
)

// maxCalls limits the calls of one response.
const maxCalls = 200

// answer collects the pieces of a response within limits.
type answer struct {
	text          strings.Builder
	calls         []*call
	size          int    // bytes of the text and the calls
	refused       string // text of the model's refusal
	input, output int    // tokens
	started       bool   // a piece of the text or of a call has arrived
	ended         bool   // the response is one document, or its stream ended with doneMark
	onDelta       func(string)
}

// call is an incomplete call.
type call struct {
	index     int
	id, name  string
	arguments strings.Builder
	input     string // arguments given at the start, used if none follow
}

func (a *answer) grow(n int) error {
	a.started = true
	if a.size += n; a.size > maxText {
		return tooLarge(maxText)
	}
	return nil
}

// add adds a piece of the text.
func (a *answer) add(piece string) error {
	if piece == "" {
		return nil
	}
	if err := a.grow(len(piece)); err != nil {
		return err
	}
	a.text.WriteString(piece)
	if a.onDelta != nil {
		a.onDelta(piece)
	}
	return nil
}

// call returns the call that a piece of a stream belongs to, by its index. If an endpoint gives all calls the same
// index, their ids distinguish them.
func (a *answer) call(index int, id string) (*call, error) {
	for _, known := range slices.Backward(a.calls) {
		if known.index == index {
			if id == "" || id == known.id {
				return known, nil
			}
			break
		}
	}
	if len(a.calls) == maxCalls {
		return nil, failure(Invalid, "the answer has more than %d calls", maxCalls)
	}
	a.calls = append(a.calls, &call{index: index, id: id})
	return a.calls[len(a.calls)-1], nil
}

// addCall adds a piece of a call.
func (a *answer) addCall(index int, id, name, arguments string) error {
	c, err := a.call(index, id)
	if err != nil {
		return err
	}
	c.name += name
	c.arguments.WriteString(arguments)
	return a.grow(len(name) + len(arguments))
}

// startCall adds a call whose arguments may follow or be its input.
func (a *answer) startCall(index int, id, name, input string) error {
	c, err := a.call(index, id)
	if err == nil && input != "null" {
		c.input = input
		err = a.grow(len(input))
	}
	if err != nil {
		return err
	}
	return a.addCall(index, id, name, "")
}

// complete returns an error if a response that ended properly has no content.
func (a *answer) complete() error {
	switch empty := a.text.Len() == 0 && len(a.calls) == 0; {
	case empty && a.refused != "":
		return refusal(a.refused)
	case empty:
		return failure(Empty, "the model wrote nothing")
	}
	return nil
}

// response returns the text and the calls of a complete answer.
func (a *answer) response() (text string, calls []Call) {
	for _, c := range a.calls {
		arguments := c.arguments.String()
		if text := strings.TrimSpace(arguments); c.input != "" && (text == "" || text == "{}") {
			arguments = c.input
		}
		calls = append(calls, Call{c.name, arguments})
	}
	return a.text.String(), calls
}
