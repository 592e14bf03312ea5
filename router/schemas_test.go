package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// portable are the keywords that clients, and the models behind them, are known to take in arguments of tools.
var portable = []string{
	"type", "description", "properties", "required", "additionalProperties", "items", "enum", "anyOf",
	"minimum", "maximum", "exclusiveMinimum", "$ref", "$defs",
}

// TestSchemasArePortable checks the rules of the MCP Inspector's portability check for all schemas, and for arguments
// also what strict function calling wants: known keywords, closed objects, items of arrays, descriptions.
func TestSchemasArePortable(t *testing.T) {
	for name := range presentations {
		tool := define(name)
		if tool.Title == "" || tool.Annotations.Title != tool.Title || tool.Description == "" {
			t.Errorf("%s: got title %q, annotated %q and description %q, want all of them", name, tool.Title, tool.Annotations.Title, tool.Description)
		}
		for kind, raw := range map[string]json.RawMessage{"in": tool.RawInputSchema, "out": tool.RawOutputSchema} {
			if raw == nil && name == ToolRun {
				continue // its result is that of the tool
			}
			var schema map[string]any
			if err := json.Unmarshal(raw, &schema); err != nil {
				t.Fatalf("%s.%s: %v", name, kind, err)
			}
			if schema["type"] != "object" || schema["properties"] == nil || kind == "in" && schema["additionalProperties"] != false {
				t.Errorf("%s.%s: want a closed object with properties at the root", name, kind)
			}
			lint(name+"."+kind, schema, kind == "in", func(path, problem string) { t.Errorf("%s: %s", path, problem) })
		}
	}
}

// lint reports what is wrong with a schema and those inside it.
func lint(path string, schema any, strict bool, report func(path, problem string)) {
	s, ok := schema.(map[string]any)
	if !ok {
		report(path, fmt.Sprintf("got %v, want an object: true and false are no portable schemas", schema))
		return
	}
	ref, isRef := s["$ref"].(string)
	switch {
	case isRef && (len(ref) < 2 || ref[:2] != "#/"):
		report(path, "a $ref points elsewhere")
	case isRef && len(s) > 1:
		report(path, "a $ref has neighbours")
	}
	if _, isText := s["type"].(string); s["type"] != nil && !isText {
		report(path, "type is no single text")
	}
	if s["type"] == nil && s["anyOf"] == nil && !isRef {
		report(path, "no type, so anything goes")
	}
	if strict {
		for _, keyword := range slices.Sorted(maps.Keys(s)) {
			if !slices.Contains(portable, keyword) {
				report(path, "keyword "+keyword+" is not portable")
			}
		}
		if s["type"] == "array" && s["items"] == nil {
			report(path, "an array without items")
		}
		if s["type"] == "object" && s["properties"] != nil && s["additionalProperties"] != false {
			report(path, "an object with properties that is not closed")
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if described, _ := p.(map[string]any); strict && described["description"] == nil {
			report(path+"."+name, "no description")
		}
		lint(path+"."+name, p, strict, report)
	}
	definitions, _ := s["$defs"].(map[string]any)
	for name, d := range definitions {
		lint(path+".$defs."+name, d, strict, report)
	}
	if s["items"] != nil {
		lint(path+"[]", s["items"], strict, report)
	}
	branches, _ := s["anyOf"].([]any)
	for i, b := range branches {
		lint(fmt.Sprintf("%s|%d", path, i), b, strict, report)
	}
	if more, isSchema := s["additionalProperties"].(map[string]any); isSchema {
		lint(path+".*", more, strict, report)
	}
}

// TestReadQuery_AllArguments fills in every argument, as strict function calling makes models do: what is optional has
// a value that means that it is not given.
func TestReadQuery_AllArguments(t *testing.T) {
	args := arguments{}
	raw := `{"query":"q","context":"","servers":[],"plan":null,"dry_run":false,"max_rounds":2,"timeout_seconds":55,"detail":"brief"}`
	if err := json.Unmarshal([]byte(raw), &args); err != nil {
		t.Fatal(err)
	}
	q, full, err := readQuery(args)
	if err != nil || full || q.Plan != nil || q.Context != nil || len(q.Servers) > 0 {
		t.Errorf("got %+v, %t, %v, want a plain question", q, full, err)
	}
}

// TestReadQuery_ShortTime reads times that round to none.
func TestReadQuery_ShortTime(t *testing.T) {
	for _, seconds := range []string{"1e-300", "1e-10", "5E-10", "0.000000001"} {
		q, _, err := readQuery(arguments{"query": []byte(`"q"`), "timeout_seconds": []byte(seconds)})
		if err != nil || q.Timeout != 1 {
			t.Errorf("%s: got %+v, %v, want a nanosecond", seconds, q, err)
		}
	}
}

// Whatever the arguments are, reading them ends in a query or in a refusal.
func FuzzReadQuery(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"query":"q"}`, `{"query":"q","context":[{"role":"user","content":"c"}],"servers":["a"],"dry_run":true,"max_rounds":2,"timeout_seconds":1.5,"detail":"full"}`,
		`{"query":7}`, `{"query":"q","max_rounds":1e400}`, `{"query":"q","timeout_seconds":1e-300}`, `{"query":"q","context":{"role":1}}`, `{"query":"q","plan":[null]}`, `[1]`, `null`, `"x"`,
	} {
		f.Add([]byte(seed))
	}
	p := parameters{}
	p.add(ToolProcessQuery, define(ToolProcessQuery).RawInputSchema)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		args, err := p.read(ToolProcessQuery, []byte(`{"arguments":`+string(raw)+`}`))
		var q *Query
		if err == nil {
			q, _, err = readQuery(args)
		}
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) || err == nil && (q.Timeout < 0 || q.MaxRounds < 0 || q.MaxRounds > 10) {
			t.Errorf("%s: got %+v and %v, want a query within bounds or a refusal", raw, q, err)
		}
	})
}
