package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// Tool is a tool that a model may call.
type Tool struct {
	Name        string          // 1 to MaxToolName letters, digits, "_" and "-"
	Description string          // may be empty
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	Plain       string          // the description for endpoints that refuse schemas; "" = Description
}

// MaxToolName is the length of the longest tool name that all endpoints accept.
const MaxToolName = 64

// Call is a tool call requested by a model. It is not validated.
type Call struct {
	Name      string
	Arguments string // as written by the model; should be a JSON object
}

// maxCalls limits the calls of one response.
const maxCalls = 200

// toolList encodes tools for an API. An endpoint that refuses a schema gets open schemas and the plain descriptions.
func toolList(api string, tools []Tool, d dialect) json.RawMessage {
	list := make([]object, len(tools))
	for i, t := range tools {
		schema, description := t.Schema, t.Description
		if d.openTools {
			schema = json.RawMessage(`{"type":"object"}`)
			if t.Plain != "" {
				description = t.Plain
			}
		}
		tool := object{"name": t.Name, "description": description}
		switch api {
		case APIAnthropic:
			tool["input_schema"] = schema
		case APIResponses:
			tool["type"], tool["parameters"], tool["strict"] = "function", schema, false
		default:
			tool["parameters"] = schema
			tool = object{"type": "function", "function": tool}
		}
		list[i] = tool
	}
	raw, _ := json.Marshal(list) // valid schemas always marshal
	return raw
}

// calls collects the calls of a response.
type calls struct {
	list []*call
}

// call is an incomplete call.
type call struct {
	index     int
	id, name  string
	arguments strings.Builder
	input     string // arguments given at the start, used if none follow
}

// at returns the call that a piece of a stream belongs to, by its index. If an endpoint gives all calls the same
// index, their ids distinguish them.
func (c *calls) at(index int, id string) (*call, error) {
	for _, known := range slices.Backward(c.list) {
		if known.index == index {
			if id == "" || id == known.id {
				return known, nil
			}
			break
		}
	}
	if len(c.list) == maxCalls {
		return nil, failure(Invalid, "the answer has more than %d calls", maxCalls)
	}
	c.list = append(c.list, &call{index: index, id: id})
	return c.list[len(c.list)-1], nil
}

// addCall adds a piece of a call.
func (t *transcript) addCall(index int, id, name, arguments string) error {
	c, err := t.calls.at(index, id)
	if err != nil {
		return err
	}
	c.name += name
	c.arguments.WriteString(arguments)
	t.guard.started = true
	if t.called += len(name) + len(arguments); t.called > maxText {
		return failure(Invalid, "the answer is larger than %d bytes", maxText)
	}
	return nil
}

// startCall adds a call whose arguments may follow or be its input.
func (t *transcript) startCall(index int, id, name, input string) error {
	c, err := t.calls.at(index, id)
	if err != nil {
		return err
	}
	if input != "null" {
		c.input = input
		t.called += len(input)
	}
	return t.addCall(index, id, name, "")
}

// done returns the calls of a complete response.
func (c *calls) done() []Call {
	var out []Call
	for _, call := range c.list {
		arguments := call.arguments.String()
		if text := strings.TrimSpace(arguments); call.input != "" && (text == "" || text == "{}") {
			arguments = call.input
		}
		out = append(out, Call{call.name, arguments})
	}
	return out
}
