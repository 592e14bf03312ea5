package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// shop has tools that declare their results: order does in full, loose leaves it open, and silent says nothing.
func shop(name string) (plan.Tool, *plan.Error) {
	const number = `{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"any":{}}}`
	outputs := map[string]string{
		"order": `{"type":"object","properties":{"id":{"type":"string"},"count":{"type":"integer"},"price":{"type":["number","null"]},
			"lines":{"type":"array","items":{"$ref":"#/$defs/line"}},"pair":{"prefixItems":[{"type":"string"},{"type":"integer"}]},
			"either":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"integer"}}}]},
			"extra":{"type":"object","additionalProperties":{"type":"string"}},"free":{"type":"object"},"open":{"type":"object","properties":{"x":{}},"additionalProperties":true}},
			"$defs":{"line":{"type":"object","properties":{"sku":{"type":"string"},"parent":{"$ref":"#/$defs/line"}}}}}`,
		"loose":  `{"type":"object","properties":{"x":{"type":"string"}},"patternProperties":{"^y":{}}}`,
		"silent": ``, "broken": `[`,
		"beside":      `{"type":"object","anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}],"additionalProperties":{"type":"string"}}`,
		"closed":      `{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false,"oneOf":[{"required":["a"]},{"properties":{"c":{}},"required":["b"]}]}`,
		"unevaluated": `{"type":"object","properties":{"a":{}},"unevaluatedProperties":{"type":"string"}}`,
		"complete":    `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{}}}],"unevaluatedProperties":false}`,
		"foreign":     `{"type":"json","properties":{"x":{"type":"json"}},"additionalProperties":true}`,
		"send":        `{"type":"object","properties":{"id":{"type":"string"}}}`,
	}
	output, ok := outputs[name]
	if !ok {
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + name}
	}
	return plan.Tool{Name: name, Server: "shop", Tool: name, InputSchema: json.RawMessage(number), OutputSchema: json.RawMessage(output)}, nil
}

// TestCheckShapes: what a declared result excludes is found before the plan runs, and nothing else is.
func TestCheckShapes(t *testing.T) {
	for _, row := range []struct{ steps, want, given string }{
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.count","text":"$s1.lines.0.sku","any":"$s1.price"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines[0].parent.sku"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.nope"}}`, `missing_reference: reference "$s1.nope": "nope" is not in "$s1", which "order" declares as object with "count", "either", "extra", "free", "id"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"is ${s1.nope.x}"}}`, `"nope" is not in "$s1"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.id.x"}}`, `"x" is not in "$s1.id", which "order" declares as string`, `declares as string`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines.sku"}}`, `"sku" is not in "$s1.lines", which "order" declares as array`, `declares as array`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines.0.nope"}}`, `declares as object with "parent", "sku"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.result.id"}}`, `"result" is not in "$s1"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1"}}`, `invalid_arguments: arguments.text: the result of "$s1" is declared as object, want string`, `declared as object`},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.id"}}`, `declared as string, want integer`, `want integer`},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.price"}}`, "", ""},                                 // a number may be an integer
		{`{"id":"s2","tool":"send","arguments":{"tags":"$s1.lines"}}`, `declared as array, want array`, ""}, // the empty list is both
		{`{"id":"s2","tool":"send","arguments":{"tags":["$s1.id","$s1.count"]}}`, `arguments.tags.1: the result of "$s1.count" is declared as integer, want string`, `want string`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.pair.0","n":"$s1.pair.1"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.pair.0"}}`, `declared as string, want integer`, ""}, // it may be no list
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.either.a","n":"$s1.either.b"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.either.c"}}`, `"c" is not in "$s1.either"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.extra.any","any":"$s1.free.x.y","tags":"$s1.open.z"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.extra.any"}}`, `declared as string, want integer`, `want integer`},
		{`{"id":"s2","tool":"send","each":"$s1.lines","arguments":{"text":"$item.sku","n":"$index"}}`, "", ""},
		{`{"id":"s2","tool":"send","each":"$s1.lines","arguments":{"text":"$item.name"}}`, `"name" is not in "$item", which "order" declares as object with "parent", "sku"`, ""},
		{`{"id":"s2","tool":"send","each":"$s1.count","arguments":{}}`, `each: "$s1.count" is declared as integer, want array`, `want array`},
		{`{"id":"s2","tool":"send","each":"$s1","arguments":{}}`, `each: "$s1" is declared as object, want array`, `want array`},
		{`{"id":"s2","tool":"order","each":"$s1.lines"},{"id":"s3","tool":"send","arguments":{"text":"$s2.0.id","n":"$s2.1.count"}}`, "", ""},
		{`{"id":"s2","tool":"order","each":"$s1.lines"},{"id":"s3","tool":"send","arguments":{"text":"$s2.id"}}`, `"id" is not in "$s2", which "order" declares as array`, `declares as array`},
		{`{"id":"s2","tool":"order","pick":"value.id"},{"id":"s3","tool":"send","arguments":{"text":"$s2","n":"$s2.any"}}`, "", ""},
		{`{"id":"s2","tool":"beside"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a","any":"$s2.c"}}`, "", ""},
		{`{"id":"s2","tool":"beside"},{"id":"s3","tool":"send","arguments":{"n":"$s2.c"}}`, `declared as string, want integer`, `want integer`},
		{`{"id":"s2","tool":"closed"},{"id":"s3","tool":"send","arguments":{"text":"$s2.b"}}`, "", ""},
		{`{"id":"s2","tool":"closed"},{"id":"s3","tool":"send","arguments":{"text":"$s2.c"}}`, `"c" is not in "$s2", which "closed" declares as object with "a", "b"`, `"c" is not in "$s2"`},
		{`{"id":"s2","tool":"unevaluated"},{"id":"s3","tool":"send","arguments":{"text":"$s2.c"}}`, "", ""},
		{`{"id":"s2","tool":"complete"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a","any":"$s2.b"}}`, "", ""},
		{`{"id":"s2","tool":"complete"},{"id":"s3","tool":"send","arguments":{"text":"$s2.c"}}`, `"c" is not in "$s2"`, ""},
		{`{"id":"s2","tool":"foreign"},{"id":"s3","tool":"send","arguments":{"text":"$s2.x.y","any":"$s2.z"}}`, "", ""},
		{`{"id":"s2","tool":"loose"},{"id":"s3","tool":"send","arguments":{"text":"$s2.yes","any":"$s2.x"}}`, "", ""},
		{`{"id":"s2","tool":"silent"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a.b","n":"$s2"}}`, "", ""},
		{`{"id":"s2","tool":"broken"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a.b"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s9.id"}}`, `missing_reference: reference "$s9.id": there is no step "s9"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"as ${s12} says"}}`, `there is no step "s12"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$2500 or $x9 ${HOME} $s3 cash","any":"$t1.x"}}`, "", ""},
	} {
		for source, want := range map[string]string{"": row.want, plan.SourceGiven: row.given} {
			p, err := plan.Parse(`{"steps":[{"id":"s1","tool":"order"},` + row.steps + `]}`)
			if err != nil {
				t.Fatal(err)
			}
			p.Source = source
			var got []string
			for _, problem := range plan.Check(&p, plan.NewValidator(), shop, nil) {
				got = append(got, problem.Error.Reason+": "+problem.Error.Message)
			}
			if text := strings.Join(got, "\n"); want == "" && text != "" || !strings.Contains(text, want) || strings.Contains(text, "\n") {
				t.Errorf("%s from %q: got %q, want %q", row.steps, source, text, want)
			}
		}
	}
}

// TestCheckShapesOfHostileSchemas: schemas beyond the bounds declare nothing, and cost little.
func TestCheckShapesOfHostileSchemas(t *testing.T) {
	wide := make([]string, 5000)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"f%d":{"type":"string"}`, i)
	}
	for name, output := range map[string]string{
		"too many fields": `{"type":"object","properties":{` + strings.Join(wide, ",") + `}}`,
		"from elsewhere":  `{"type":"object","properties":{"a":{}},"allOf":[{"$ref":"https://example.org/x"}]}`,
		"conditional":     `{"type":"object","properties":{"a":{}},"if":{},"then":{"properties":{"b":{}}}}`,
	} {
		p, err := plan.Parse(`{"steps":[{"id":"s1","tool":"x"},{"id":"s2","tool":"x","arguments":{"q":"$s1.f4999","r":"$s1.nope"}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		problems := plan.Check(&p, plan.NewValidator(), func(string) (plan.Tool, *plan.Error) {
			return plan.Tool{Name: "x", OutputSchema: json.RawMessage(output)}, nil
		}, nil)
		if len(problems) > 0 {
			t.Errorf("%s: got %v, want no problems", name, problems)
		}
	}
}

// FuzzCheckShapes: a reference to a part that a valid result has is never refused, and what is there fits an argument of
// its own type.
func FuzzCheckShapes(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := schemaMaker{rand.New(rand.NewPCG(seed, 1))}
		output := marshal(t, r.schema(3))
		v := plan.NewValidator()
		for range 20 {
			value := map[string]any{"a": r.value(3), "b": r.value(2)}
			if v.Validate(output, marshal(t, value)) == nil {
				r.checkParts(t, v, output, value, "$s1")
			}
		}
	})
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// schemaMaker makes schemas and values that often fit each other.
type schemaMaker struct{ *rand.Rand }

func (r schemaMaker) name() string { return []string{"a", "b", "c", "0"}[r.IntN(4)] }

// schema makes a schema of a few keywords, nested to a depth.
func (r schemaMaker) schema(depth int) any {
	if depth == 0 || r.IntN(8) == 0 {
		return r.IntN(6) > 0
	}
	inner := func() any { return r.schema(depth - 1) }
	several := func() any { return []any{inner(), inner()} }
	s := map[string]any{}
	for range 1 + r.IntN(4) {
		switch r.IntN(14) {
		case 0:
			s["type"] = []any{"object", "array", "string", "integer", "number", "json", []any{"object", "null"}, []any{"array", "object"}}[r.IntN(8)]
		case 1, 2:
			s["properties"] = map[string]any{r.name(): inner(), r.name(): inner()}
		case 3:
			s["additionalProperties"] = inner()
		case 4:
			s["unevaluatedProperties"] = inner()
		case 5:
			s["patternProperties"] = map[string]any{"^[ab]$": inner()}
		case 6:
			s["anyOf"] = several()
		case 7:
			s["oneOf"] = several()
		case 8:
			s["allOf"] = several()
		case 9:
			s["items"] = inner()
		case 10:
			s["prefixItems"] = several()
		case 11:
			s["$defs"], s["$ref"] = map[string]any{"d": inner()}, "#/$defs/d" // of the root, if there is one
		case 12:
			s["if"], s["then"], s["else"] = inner(), inner(), inner()
		case 13:
			s["enum"] = []any{"x", 1, map[string]any{"a": "x"}, []any{1}, nil}
		}
	}
	return s
}

func (r schemaMaker) value(depth int) any {
	switch n := r.IntN(8); {
	case n < 3 && depth > 0:
		return map[string]any{r.name(): r.value(depth - 1), r.name(): r.value(depth - 1)}
	case n < 5 && depth > 0:
		return []any{r.value(depth - 1), r.value(depth - 1)}[:r.IntN(3)]
	}
	return []any{"x", 1, 1.5, true, nil}[r.IntN(5)]
}

// checkParts checks references to a value and to all of its parts.
func (r schemaMaker) checkParts(t *testing.T, v *plan.Validator, output json.RawMessage, value any, at string) {
	t.Helper()
	kind := ""
	switch value := value.(type) {
	case map[string]any:
		kind = "object"
		for name, part := range value {
			r.checkParts(t, v, output, part, at+"."+name)
		}
	case []any:
		kind = "array"
		for i, part := range value {
			r.checkParts(t, v, output, part, fmt.Sprintf("%s.%d", at, i))
		}
	case string:
		kind = "string"
	case int:
		kind = "integer"
	case float64:
		kind = "number"
	case bool:
		kind = "boolean"
	case nil:
		kind = "null"
	}
	p := plan.Plan{Source: plan.SourceGiven, Steps: []plan.Step{{ID: "s1", Tool: "x", Arguments: json.RawMessage(`{}`)},
		{ID: "s2", Tool: "x", Arguments: marshal(t, map[string]any{"v": at})}}}
	problems := plan.Check(&p, v, func(string) (plan.Tool, *plan.Error) {
		return plan.Tool{Name: "x", InputSchema: json.RawMessage(`{"properties":{"v":{"type":"` + kind + `"}}}`), OutputSchema: output}, nil
	}, nil)
	if len(problems) > 0 {
		t.Errorf("%s with %s: got %v, want no problems", at, output, problems)
	}
}

// TestTwins: the second of two equal calls is reported where the tool surely writes.
func TestTwins(t *testing.T) {
	yes, no := true, false
	tools := map[string]plan.Tool{
		"send_mail": {Tool: "send_mail"}, "get_mail": {Tool: "get_mail"}, "frob": {Tool: "frob"}, "notes": {Tool: "notes", Description: "Creates a note"},
		"put": {Tool: "set_x", Annotations: plan.Annotations{IdempotentHint: &yes}}, "says": {Tool: "frob", Annotations: plan.Annotations{ReadOnlyHint: &no}},
	}
	lookup := func(name string) (plan.Tool, *plan.Error) {
		if tool, ok := tools[name]; ok {
			return tool, nil
		}
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool}
	}
	for _, row := range []struct{ steps, want string }{
		{`{"id":"a","tool":"send_mail","arguments":{"to":"x","n":1}},{"id":"b","tool":"send_mail","arguments":{"n":1.0,"to":"\u0078"},"after":["a"]}`, "b"},
		{`{"id":"a","tool":"send_mail","arguments":{"to":"x"}},{"id":"b","tool":"send_mail","arguments":{"to":"y"}}`, ""},
		{`{"id":"a","tool":"send_mail","arguments":{"to":"x"}},{"id":"b","tool":"notes","arguments":{"to":"x"}}`, ""},
		{`{"id":"a","tool":"notes"},{"id":"b","tool":"notes"},{"id":"c","tool":"notes"}`, "bc"},
		{`{"id":"a","tool":"says"},{"id":"b","tool":"says"}`, "b"},
		{`{"id":"a","tool":"get_mail"},{"id":"b","tool":"get_mail"}`, ""},
		{`{"id":"a","tool":"frob"},{"id":"b","tool":"frob"}`, ""},
		{`{"id":"a","tool":"put"},{"id":"b","tool":"put"}`, ""},
		{`{"id":"a","tool":"none"},{"id":"b","tool":"none"}`, ""},
		{`{"id":"a","tool":"send_mail","when":"true"},{"id":"b","tool":"send_mail"}`, ""},
	} {
		p, err := plan.Parse(`{"steps":[` + row.steps + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, problem := range plan.Twins(&p, lookup) {
			got += problem.Step
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.steps, got, row.want)
		}
	}
}
