package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The fields of a case.
var caseFields = []string{
	"id", "query", "context", "servers", "plan", "vars", "tags",
	"timeout_seconds", "max_rounds", "expect",
}

// maxID bounds an id, in characters.
const maxID = 200

// decoder reads one case. It records each problem and continues.
type decoder struct {
	problem func(format string, args ...any)
}

type fields map[string]jsontext.Value

// object returns the members of a JSON object whose names are known.
func (d *decoder) object(where string, raw []byte, known []string) (members fields, ok bool) {
	if err := strict.Unmarshal(raw, &members); err != nil || members == nil {
		d.problem("%swant a JSON object%s", prefix(where), why(raw, err))
		return nil, false
	}
	for name := range members {
		if !slices.Contains(known, name) {
			d.problem("%sunknown %s %q; known: %s", prefix(where), kindOfName(where), shown(name), strings.Join(known, ", "))
		}
	}
	return members, true
}

// why explains briefly why text is not a JSON object.
func why(raw []byte, err error) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case err == nil || len(raw) == 0:
		return ""
	case raw[0] != '{' && json.Valid(raw):
		return ", got " + shown(string(raw))
	}
	var v any
	if broken := json.Unmarshal(raw, &v); broken != nil {
		return ": " + broken.Error()
	}
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	if _, after, ok := strings.Cut(text, "jsontext: "); ok {
		text = after
	}
	return ": " + text
}

func prefix(where string) string {
	if where == "" {
		return ""
	}
	return where + ": "
}

func kindOfName(where string) string {
	if where == "expect" {
		return "check"
	}
	return "field"
}

// read decodes a member into v, if it is given. want says in words what it must be.
func (d *decoder) read(members fields, where, name, want string, v any) (given bool) {
	raw, given := members[name]
	if !given || string(raw) == "null" {
		return false
	}
	if err := strict.Unmarshal(raw, v); err != nil {
		d.problem("%s must be %s, got %s", strings.TrimPrefix(where+"."+name, "."), want, shown(string(raw)))
		return false
	}
	return true
}

// decode reads a case. A missing id is empty.
func (d *decoder) decode(raw []byte) Case {
	c := Case{Definition: digest(raw)}
	members, ok := d.object("", raw, caseFields)
	if !ok {
		return c
	}
	c.ID = d.id(members)
	if !d.read(members, "", "query", "text", &c.Query) && members["query"] == nil {
		d.problem("query is missing")
	}
	c.Query = d.replace(members, c.Query)
	d.read(members, "", "servers", "a list of names", &c.Servers)
	d.read(members, "", "tags", "a list of texts", &c.Tags)
	if d.read(members, "", "timeout_seconds", "a number", &c.Timeout) && c.Timeout <= 0 {
		d.problem("timeout_seconds must be above 0")
	}
	if d.read(members, "", "max_rounds", "a whole number", &c.MaxRounds) && (c.MaxRounds < 1 || c.MaxRounds > 10) {
		d.problem("max_rounds must be from 1 to 10")
	}
	c.Context = d.context(members)
	c.Plan = d.plan(members)
	if raw, given := members["expect"]; given && string(raw) != "null" {
		c.Expect = d.expect(raw)
	}
	return c
}

func (d *decoder) id(members fields) string {
	raw, given := members["id"]
	switch {
	case !given:
		d.problem("id is missing")
		return ""
	case raw.Kind() == '0':
		return string(raw) // as YAML reads 17
	}
	var id string
	if err := strict.Unmarshal(raw, &id); err != nil {
		d.problem("id must be text, got %s", shown(string(raw)))
		return ""
	}
	id = strings.TrimSpace(id)
	if id == "" || utf8.RuneCountInString(id) > maxID {
		d.problem("id must have 1 to %d characters", maxID)
		return ""
	}
	return id
}

// context returns text or messages as they are.
func (d *decoder) context(members fields) json.RawMessage {
	raw := members["context"]
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	if raw.Kind() != '"' && strict.Unmarshal(raw, &messages) != nil {
		d.problem("context must be text or a list of {role, content}, got %s", shown(string(raw)))
		return nil
	}
	return json.RawMessage(raw)
}

// plan returns a plan in any form that process_query accepts.
func (d *decoder) plan(members fields) json.RawMessage {
	raw := members["plan"]
	switch {
	case raw == nil || string(raw) == "null":
		return nil
	case raw.Kind() != '{' && raw.Kind() != '[':
		d.problem("plan must be a list of steps or an object with steps, got %s", shown(string(raw)))
		return nil
	}
	return json.RawMessage(raw)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)

// replace replaces the variables in the query. Without vars it changes nothing.
func (d *decoder) replace(members fields, query string) string {
	var vars map[string]any
	if !d.read(members, "", "vars", "an object", &vars) {
		return query
	}
	return variable.ReplaceAllStringFunc(query, func(found string) string {
		name := found[2 : len(found)-1]
		switch v := vars[name].(type) {
		case nil:
			d.problem("query: ${%s} is not in vars", name)
		case string:
			return v
		default:
			text, err := json.Marshal(v)
			if err == nil {
				return string(text)
			}
			d.problem("vars.%s: %v", name, err)
		}
		return found
	})
}

// texts reads a list of texts. A single text counts as a list.
func (d *decoder) texts(members fields, where, name string) (list []string) {
	raw := members[name]
	if raw.Kind() == '"' {
		var one string
		d.read(members, where, name, "text", &one)
		return []string{one}
	}
	d.read(members, where, name, "a list of texts", &list)
	return list
}

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
