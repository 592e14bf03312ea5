package planner

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// The two forms of a plan. They name no tools and are the same for every question, because endpoints compile a strict
// schema when they first see it. Strict modes do not support open objects, so arguments are then a text; plan.Parse
// reads both forms. Models write members in the order of the schema.
var (
	strictForm = formOfPlan(`{"type":"string","description":"the arguments as a JSON object, written as a string"}`,
		`"required":["id","tool","arguments","after","each","when","pick"],"additionalProperties":false`,
		`"required":["steps","more","unmet","missing"],"additionalProperties":false`)
	looseForm = formOfPlan(`{"type":"object"}`, `"required":["id","tool","arguments"]`, `"required":["steps"]`)
)

// formOfPlan returns the schema of a plan with further keywords for steps and for the whole.
func formOfPlan(arguments, ofSteps, ofWhole string) json.RawMessage {
	const texts, expression = `{"type":"array","items":{"type":"string"}}`, `{"type":["string","null"]}`
	return json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{` +
		`"id":{"type":"string"},"tool":{"type":"string"},"arguments":` + arguments + `,"after":` + texts +
		`,"each":` + expression + `,"when":` + expression + `,"pick":` + expression + `},` + ofSteps + `}},` +
		`"more":` + expression + `,"unmet":` + texts + `,"missing":{"type":"array","items":{"type":"object","properties":{` +
		`"tool":{"type":"string"},"names":` + texts + `},"required":["tool","names"],"additionalProperties":false}}},` + ofWhole + `}`)
}

var planSchema = sync.OnceValue(func() *llm.Schema {
	return &llm.Schema{Name: "plan", Strict: strictForm, Loose: looseForm, System: systemIn(strictForm)}
})

// system returns the system prompt for the loose form.
var system = sync.OnceValue(func() string { return systemIn(looseForm) })

// systemIn returns the system prompt for a form. It is the same for every question, so that providers can cache it.
func systemIn(form json.RawMessage) string {
	s, err := schema.Read(form)
	if err != nil {
		panic(err)
	}
	return prompts.Render("plan_system", struct {
		MaxSteps  int
		Text      bool   // arguments are a text
		Functions string // of expressions
		Example   string
	}{maxSteps, isText(s.Field("steps").Items.Field("arguments")), strings.Join(expression.Functions(), " "),
		string(inForm(s, json.RawMessage(example)))})
}

// example is the plan in the system prompt, without the members that a form adds.
const example = `{"steps":[{"id":"s1","tool":"parcels","arguments":{"to":"ACME"}},` +
	`{"id":"s2","tool":"track","arguments":{"id":"$item.id"},"each":"$s1.parcels","when":"item.sent","pick":"value.place"},` +
	`{"id":"s3","tool":"message","arguments":{"to":"ACME","text":"You have ${s1.total} parcels."},"after":["s2"]}],` +
	`"unmet":["ring them"]}`

func isText(s *schema.Schema) bool { return slices.Contains(s.Types, "string") }

// inForm writes a value in the form of a schema: with all members that it requires, in its order, and with texts for
// objects where it wants texts. The value must be valid JSON.
func inForm(s *schema.Schema, value json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	switch {
	case value == nil && s.Nullable:
		return json.RawMessage("null")
	case value == nil:
		return json.RawMessage("[]")
	case value[0] == '{' && isText(s):
		return toJSON(string(value))
	case value[0] == '{' && len(s.Fields) > 0 && json.Unmarshal(value, &members) == nil:
		out := json.RawMessage("{")
		for _, f := range s.Fields {
			if v := members[f.Name]; v != nil || f.Required {
				out = append(append(append(out, toJSON(f.Name)...), ':'), inForm(f.Schema, v)...)
				out = append(out, ',')
			}
		}
		return append(out[:len(out)-1], '}')
	case value[0] == '[' && json.Unmarshal(value, &elements) == nil:
		for i := range elements {
			elements[i] = inForm(s.Items, elements[i])
		}
		return toJSON(elements)
	}
	return value
}
