package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The checks of expect.
var checkNames = []string{
	"answer_contains", "answer_not_contains", "answer_matches", "answer_equals", "json_schema", "tools", "not_tools",
	"arguments", "max_steps", "max_seconds", "max_tokens", "degraded", "unmet", "judge",
}

// expect reads the checks of a case.
func (d *decoder) expect(raw []byte) *Expect {
	const where = "expect"
	members, ok := d.object(where, raw, checkNames)
	if !ok {
		return nil
	}
	e := &Expect{
		AnswerContains: d.texts(members, where, "answer_contains"), AnswerNotContains: d.texts(members, where, "answer_not_contains"),
		NotTools: d.texts(members, where, "not_tools"), Tools: d.tools(members), Arguments: d.arguments(members),
	}
	var pattern string
	if d.read(members, where, "answer_matches", "a regular expression", &pattern) {
		var err error
		if e.AnswerMatches, err = regexp.Compile(pattern); err != nil {
			d.problem("expect.answer_matches: %v", err)
		}
	}
	d.read(members, where, "answer_equals", "text", &e.AnswerEquals)
	e.JSONSchema = d.schema(members)
	d.read(members, where, "max_steps", "a whole number", &e.MaxSteps)
	d.read(members, where, "max_seconds", "a number", &e.MaxSeconds)
	d.read(members, where, "max_tokens", "a whole number", &e.MaxTokens)
	if below(e.MaxSteps) || below(e.MaxSeconds) || below(e.MaxTokens) {
		d.problem("expect: max_steps, max_seconds and max_tokens must not be below 0")
	}
	d.read(members, where, "degraded", "true or false", &e.Degraded)
	d.read(members, where, "unmet", "true or false", &e.Unmet)
	if d.read(members, where, "judge", "text", &e.Judge) && strings.TrimSpace(e.Judge) == "" {
		d.problem("expect.judge must say what a good answer is")
	}
	return e
}

// below reports whether a bound is given and below 0.
func below[T int | float64](bound *T) bool { return bound != nil && *bound < 0 }

func (d *decoder) tools(members fields) *Tools {
	raw := members["tools"]
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw.Kind() != '{' {
		return &Tools{How: ToolsExactly, Names: d.texts(members, "expect", "tools")}
	}
	inner, ok := d.object("expect.tools", raw, []string{ToolsIncludes, ToolsSequence})
	if !ok {
		return nil
	}
	if len(inner) != 1 {
		d.problem("expect.tools: want a list, or either includes or sequence")
		return nil
	}
	for how := range inner {
		return &Tools{How: how, Names: d.texts(inner, "expect.tools", how)}
	}
	return nil
}

func (d *decoder) arguments(members fields) (all []Arguments) {
	var tools map[string]map[string]json.RawMessage
	d.read(members, "expect", "arguments", "an object of tools, each with values by path", &tools)
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		all = append(all, Arguments{Tool: tool, Values: tools[tool]})
	}
	return all
}

// schema compiles a JSON Schema, which may refer to nothing outside of itself.
func (d *decoder) schema(members fields) *jsonschema.Schema {
	raw := members["json_schema"]
	if raw == nil || string(raw) == "null" {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		d.problem("expect.json_schema: %v", err)
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "case:///schema.json"
	if err := c.AddResource(name, doc); err != nil {
		d.problem("expect.json_schema: %v", err)
		return nil
	}
	s, err := c.Compile(name)
	if err != nil {
		d.problem("expect.json_schema: %v", err)
		return nil
	}
	return s
}

// noLoader refuses schemas elsewhere.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may not refer to another file")
}
