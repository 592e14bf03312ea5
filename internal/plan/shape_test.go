package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
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
		"send": `{"type":"object","properties":{"id":{"type":"string"}}}`,
	}
	output, ok := outputs[name]
	if !ok {
		return plan.Tool{}, &plan.Error{Reason: plan.ReasonUnknownTool, Message: "Unknown tool: " + name}
	}
	return plan.Tool{Name: name, Server: "shop", Tool: name, InputSchema: json.RawMessage(number), OutputSchema: json.RawMessage(output)}, nil
}

// TestCheckShapes: what a declared result excludes is found before the plan runs, and nothing else is.
func TestCheckShapes(t *testing.T) {
	for _, row := range []struct{ steps, want, given string }{
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.count","text":"$s1.lines.0.sku","any":"$s1.price"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines[0].parent.sku"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.nope"}}`, `missing_reference: reference "$s1.nope": "nope" is not in "$s1", which "order" declares as object with "id", "count"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"is ${s1.nope.x}"}}`, `"nope" is not in "$s1"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.id.x"}}`, `"x" is not in "$s1.id", which "order" declares as string`, `declares as string`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines.sku"}}`, `"sku" is not in "$s1.lines", which "order" declares as array`, `declares as array`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.lines.0.nope"}}`, `declares as object with "sku", "parent"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.result.id"}}`, `"result" is not in "$s1"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1"}}`, `invalid_arguments: arguments.text: the result of "$s1" is declared as object, want string`, `declared as object`},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.id"}}`, `declared as string, want integer`, `want integer`},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.price"}}`, "", ""}, // a number may be an integer
		{`{"id":"s2","tool":"send","arguments":{"tags":"$s1.lines"}}`, `declared as array, want array`, `want array`},
		{`{"id":"s2","tool":"send","arguments":{"tags":["$s1.id","$s1.count"]}}`, `arguments.tags.1: the result of "$s1.count" is declared as integer, want string`, `want string`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.pair.0","n":"$s1.pair.1"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.pair.0"}}`, `declared as string, want integer`, `want integer`},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.either.a","n":"$s1.either.b"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.either.c"}}`, `"c" is not in "$s1.either"`, ""},
		{`{"id":"s2","tool":"send","arguments":{"text":"$s1.extra.any","any":"$s1.free.x.y","tags":"$s1.open.z"}}`, "", ""},
		{`{"id":"s2","tool":"send","arguments":{"n":"$s1.extra.any"}}`, `declared as string, want integer`, `want integer`},
		{`{"id":"s2","tool":"send","each":"$s1.lines","arguments":{"text":"$item.sku","n":"$index"}}`, "", ""},
		{`{"id":"s2","tool":"send","each":"$s1.lines","arguments":{"text":"$item.name"}}`, `"name" is not in "$item"`, ""},
		{`{"id":"s2","tool":"send","each":"$s1.count","arguments":{}}`, `each: "$s1.count" is declared as integer, want array`, `want array`},
		{`{"id":"s2","tool":"send","each":"$s1","arguments":{}}`, `each: "$s1" is declared as object, want array`, `want array`},
		{`{"id":"s2","tool":"order","each":"$s1.lines"},{"id":"s3","tool":"send","arguments":{"text":"$s2.0.id","n":"$s2.1.count"}}`, "", ""},
		{`{"id":"s2","tool":"order","each":"$s1.lines"},{"id":"s3","tool":"send","arguments":{"text":"$s2.id"}}`, `"id" is not in "$s2", which "order" declares as array`, `declares as array`},
		{`{"id":"s2","tool":"order","pick":"value.id"},{"id":"s3","tool":"send","arguments":{"text":"$s2","n":"$s2.any"}}`, "", ""},
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
		return plan.Tool{}, &plan.Error{Reason: plan.ReasonUnknownTool}
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
