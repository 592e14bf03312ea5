package planner

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// planSchema is the schema of a plan. It names no tools and is the same for every question, because endpoints compile a
// strict schema when they first see it. Strict modes do not support open objects, so arguments are then a JSON string;
// plan.Parse reads both forms.
var planSchema = newPlanSchema()

func newPlanSchema() *llm.Schema {
	text := object{"type": "string"}
	optional := object{"type": []string{"string", "null"}}
	step := func(arguments object) object {
		return object{"type": "object", "properties": members{
			{"id", text},
			{"tool", text},
			{"arguments", arguments},
			{"after", object{"type": "array", "items": text}},
			{"each", optional},
			{"when", optional},
			{"pick", optional},
		}}
	}
	whole := func(step object) object {
		return object{"type": "object", "properties": members{
			{"steps", object{"type": "array", "items": step}},
			{"more", object{"type": "boolean"}},
			{"unmet", object{"type": "array", "items": text}},
		}}
	}
	closed := step(object{"type": "string", "description": "the arguments as a JSON object, written as a string"})
	closed["required"], closed["additionalProperties"] = []string{"id", "tool", "arguments", "after", "each", "when",
		"pick"}, false
	strict := whole(closed)
	strict["required"], strict["additionalProperties"] = []string{"steps", "more", "unmet"}, false
	open := step(object{"type": "object"})
	open["required"] = []string{"id", "tool", "arguments"}
	loose := whole(open)
	loose["required"] = []string{"steps"}
	return &llm.Schema{Name: "plan", Strict: toJSON(strict), Loose: toJSON(loose)}
}

type object = map[string]any

// members is an ordered JSON object, because models write members in the order of the schema.
type members []struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, member := range m {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, toJSON(member.name)...), ':')
		out = append(out, toJSON(member.value)...)
	}
	return append(out, '}'), nil
}

// toJSON encodes strings, lists and objects, which cannot fail.
func toJSON(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// searchQuery reads the arguments of findTools.
func searchQuery(arguments json.RawMessage) string {
	var a struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(arguments, &a) != nil {
		return ""
	}
	return short.Text(a.Query, 500)
}
