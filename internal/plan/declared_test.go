package plan_test

import (
	"encoding/json"
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
		"elsewhere":   `{"type":"object","properties":{"a":{}},"allOf":[{"$ref":"https://example.org/x"}]}`,
		"conditional": `{"type":"object","properties":{"a":{}},"if":{},"then":{"properties":{"b":{}}}}`,
		"wide":        `{"type":"object","properties":{` + strings.Repeat(`"f":{},`, 5000) + `"g":{}}}`,
		"text":        `{"type":"object","properties":{"content":{"type":"string"}}}`,
		"foreign":     `{"type":"json","properties":{"x":{"type":"json"}},"additionalProperties":true}`,
		"send":        `{"type":"object","properties":{"id":{"type":"string"}}}`,
	}
	output, ok := outputs[name]
	if !ok {
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool, Message: "Unknown tool: " + name}
	}
	return plan.Tool{Name: name, Server: "shop", Tool: name, InputSchema: json.RawMessage(number), OutputSchema: json.RawMessage(output)}, nil
}

// References of a model that do not match a declared result are found before the plan runs. A client's plan is its own.
func TestCheck_DeclaredResults(t *testing.T) {
	for _, row := range []struct{ steps, want string }{
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.count","text":"$s1.lines.0.sku","any":"$s1.price"}}`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines[0].parent.sku"}}`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.nope"}}`, `missing_reference: reference "$s1.nope": "nope" is not in "$s1", which "order" declares as object with "id", "count", "price"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"is ${s1.nope.x}"}}`, `"nope" is not in "$s1"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.id.x"}}`, `"x" is not in "$s1.id", which "order" declares as string`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines.sku"}}`, `"sku" is not in "$s1.lines", which "order" declares as array`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines.0.nope"}}`, `declares as object with "sku", "parent"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.result.id"}}`, `"result" is not in "$s1"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1"}}`, `invalid_arguments: arguments.text: the result of "$s1" is declared as object, want string`},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.id"}}`, `declared as string, want integer`},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.price"}}`, ""},                                 // a number may be an integer
		{`{"id":"s2","tool":"send","arguments":{"tags":"$s1.lines"}}`, `declared as array, want array`}, // the empty list is both
		{`{"id":"s2","tool":"send","arguments":{"tags":["$s1.id","$s1.count"]}}`, `arguments.tags.1: the result of "$s1.count" is declared as integer, want string`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.pair.0","n":"$s1.pair.1"}}`, ""},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.pair.0"}}`, `declared as string, want integer`}, // it may be no list
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.either.a","n":"$s1.either.b"}}`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.either.c"}}`, `"c" is not in "$s1.either"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.extra.any","any":"$s1.free.x.y","tags":"$s1.open.z"}}`, ""},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.extra.any"}}`, `declared as string, want integer`},
		{`{"id":"s2","tool":"send","each":"$s1.lines","arguments":{"text":"$item.sku","n":"$index"}}`, ""},
		{`{"id":"s2","tool":"send","each":"$s1.lines","arguments":{"text":"$item.name"}}`, `"name" is not in "$item", which "order" declares as object with "sku", "parent"`},
		{`{"id":"s2","tool":"send","each":"$s1.count","arguments":{}}`, `each: "$s1.count" is declared as integer, want array`},
		{`{"id":"s2","tool":"send","each":"$s1","arguments":{}}`, `each: "$s1" is declared as object, want array`},
		{`{"id":"s2","tool":"order","each":"$s1.lines"},{"id":"s3","tool":"send","arguments":{"text":"$s2.0.id","n":"$s2.1.count"}}`, ""},
		{`{"id":"s2","tool":"order","each":"$s1.lines"},{"id":"s3","tool":"send","arguments":{"text":"$s2.id"}}`, `"id" is not in "$s2", which "order" declares as array`},
		{`{"id":"s2","tool":"order","pick":"value.id"},{"id":"s3","tool":"send","arguments":{"text":"$s2","n":"$s2.any"}}`, ""},
		{`{"id":"s2","tool":"beside"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a","any":"$s2.c"}}`, ""},
		{`{"id":"s2","tool":"beside"},{"id":"s3","tool":"send","arguments":{"n":"$s2.c"}}`, `declared as string, want integer`},
		{`{"id":"s2","tool":"closed"},{"id":"s3","tool":"send","arguments":{"text":"$s2.b"}}`, ""},
		{`{"id":"s2","tool":"unevaluated"},{"id":"s3","tool":"send","arguments":{"text":"$s2.c"}}`, ""},
		{`{"id":"s2","tool":"complete"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a","any":"$s2.b"}}`, ""},
		{`{"id":"s2","tool":"complete"},{"id":"s3","tool":"send","arguments":{"text":"$s2.c"}}`, `"c" is not in "$s2"`},
		{`{"id":"s2","tool":"text"},{"id":"s3","tool":"send","each":"$s2.lines","arguments":{"text":"$item","tags":"$s2.content.lines","any":"$s2.a.0","n":"$s2.content.b"}}`, ""},
		{`{"id":"s2","tool":"text"},{"id":"s3","tool":"send","each":"$s2.content","arguments":{"tags":"$s1.id.lines"}}`, ""},
		{`{"id":"s2","tool":"text"},{"id":"s3","tool":"send","arguments":{"text":"$s2.content.lines"}}`, `declared as array, want string`},
		{`{"id":"s2","tool":"foreign"},{"id":"s3","tool":"send","arguments":{"text":"$s2.x.y","any":"$s2.z"}}`, ""},
		{`{"id":"s2","tool":"elsewhere"},{"id":"s3","tool":"conditional"},{"id":"s4","tool":"wide"},{"id":"s5","tool":"send","arguments":{"text":"$s2.x ${s3.b} ${s4.z}","any":"$s2.x"}}`, ""},
		{`{"id":"s2","tool":"loose"},{"id":"s3","tool":"send","arguments":{"text":"$s2.yes","any":"$s2.x"}}`, ""},
		{`{"id":"s2","tool":"silent"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a.b","n":"$s2"}}`, ""},
		{`{"id":"s2","tool":"broken"},{"id":"s3","tool":"send","arguments":{"text":"$s2.a.b"}}`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s9.id"}}`, `missing_reference: reference "$s9.id": there is no step "s9"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"as ${s12} says"}}`, `there is no step "s12"`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$2500 or $x9 ${HOME} $s3 cash","any":"$t1.x"}}`, ""},
	} {
		p, err := plan.Parse(`{"steps":[{"id":"s1","tool":"order"},` + row.steps + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, problem := range plan.Check(&p, plan.NewValidator(), shop, nil) {
			got = append(got, problem.Error.Reason+": "+problem.Error.Message)
		}
		if text := strings.Join(got, "\n"); row.want == "" && text != "" || !strings.Contains(text, row.want) || strings.Contains(text, "\n") {
			t.Errorf("%s: got %q, want %q", row.steps, text, row.want)
		}
		p.Source = plan.SourceGiven
		if problems := plan.Check(&p, plan.NewValidator(), shop, nil); len(problems) > 0 {
			t.Errorf("%s from a client: got %v, want no problems", row.steps, problems)
		}
	}
}
