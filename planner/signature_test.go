package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// composed is a schema whose properties stand behind a root reference, in allOf.
const composed = `{"$ref":"#/$defs/Stay","$defs":{"Place":{"properties":{"city":{"$ref":"#/$defs/City"}},"required":["city"]},` +
	`"City":{"type":"string","description":"Town to sleep in","minLength":2},` +
	`"Stay":{"type":"object","allOf":[{"$ref":"#/$defs/Place"},{"properties":{"nights":{"type":"integer","minimum":1},` +
	`"class":{"oneOf":[{"const":"low","title":"Cheap"},{"const":"high","title":"Luxury"}]},"note":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["nights"]}]}}}`

func TestSignature(t *testing.T) {
	readOnly := true
	for _, row := range []struct {
		name, schema, output, want string
	}{
		{"nothing", ``, ``, "t(arguments unknown) [read-only]\n  About."},
		{"any object", `{"type":"object"}`, ``, "t(arguments unknown) [read-only]\n  About."},
		{"no arguments", `{"type":"object","properties":{}}`, ``, "t() [read-only]\n  About."},
		{"no others", `{"type":"object","additionalProperties":false}`, ``, "t() [read-only]\n  About."},
		{"names repeated", `{"properties":{"userId":{"description":"The user ID"},"q":{"description":"A q of more"}}}`, ``, "t(userId?: any, q?: any) [read-only]\n  About.\n  q: A q of more"},
		{"required first, then as declared", `{"properties":{"c":{"type":"string"},"b":{"type":"number"},"a":{"type":"boolean"}},"required":["a"]}`, ``,
			"t(a: boolean, c?: string, b?: number) [read-only]\n  About."},
		{"explained", `{"properties":{"a":{"type":"string","description":"the\n first"}}}`, ``, "t(a?: string) [read-only]\n  About.\n  a: the first"},
		{"choices", `{"properties":{"a":{"enum":["x",1,null]},"b":{"const":"y"},"c":{"type":["string","null"]},"d":{"oneOf":[{"type":"string"},{"type":"string"},{"type":"array","items":{}}]}}}`, ``,
			`t(a?: "x" | 1 | null, b?: "y", c?: string | null, d?: string | any[]) [read-only]` + "\n  About."},
		{"bounds and formats", `{"properties":{"a":{"type":"integer","minimum":1},"b":{"type":"number","maximum":2.5},"c":{"type":"string","format":"date"},"d":{"type":"string","default":"x"}}}`, ``,
			`t(a?: integer 1.., b?: number ..2.5, c?: string<date>, d?: string = "x") [read-only]` + "\n  About."},
		{"nested", `{"properties":{"a":{"type":"array","items":{"enum":["x","y"]}},"b":{"properties":{"c":{"type":"string"}},"required":["c"]},"d":{"type":"array"},"e":{"type":"object"}}}`, ``,
			`t(a?: ("x" | "y")[], b?: {c: string}, d?: any[], e?: object) [read-only]` + "\n  About."},
		{"references", `{"properties":{"a":{"$ref":"#/$defs/x~1y"},"b":{"$ref":"#/$defs/none"},"c":{"$ref":"http://x/y"}},"$defs":{"x/y":{"type":"string"}}}`, ``,
			"t(a?: string, b?: any, c?: any) [read-only]\n  About."},
		{"result", `{}`, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, "t(arguments unknown) -> {n: integer} [read-only]\n  About."},
		{"root reference", composed, composed, `t(city: string 2.. characters, nights: integer 1.., class?: "low" | "high", note?: string | null)` +
			` -> {city: string 2.. characters, nights: integer 1.., class?: "low" | "high", note?: string | null} [read-only]` + "\n  About.\n  city: Town to sleep in"},
		{"alternatives", `{"anyOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"},"at":{"anyOf":[{"properties":{"x":{}}},{"required":["y"]}]}}}]}`, ``,
			`t(id?: integer, name?: string, at?: {x?: any} | any) [read-only]` + "\n  About."},
		{"more bounds", `{"properties":{"a":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"b":{"type":"integer","multipleOf":5},"c":{"type":"string","pattern":"^x","maxLength":3},` +
			`"d":{"type":"array","items":{"type":"integer","minimum":1},"minItems":1,"maxItems":2}}}`, ``,
			`t(a?: number >0..<1, b?: integer step 5, c?: string /^x/ ..3 characters, d?: (integer 1..)[] 1..2 items) [read-only]` + "\n  About."},
		{"maps and tuples", `{"properties":{"a":{"type":"object","additionalProperties":{"type":"number"}},"b":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}]},` +
			`"c":{"type":["array","null"],"items":{"type":"string"}}}}`, ``,
			`t(a?: {[name]: number}, b?: [number, string], c?: string[] | null) [read-only]` + "\n  About."},
		{"contains itself", `{"properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#"}}}}`, ``,
			`t(name?: string, parts?: any[]) [read-only]` + "\n  About."},
		{"wrong kinds", `{"properties":7,"required":"a","type":[],"enum":{}}`, ``, "t(arguments unknown) [read-only]\n  About."},
		{"wrong unions", `{"properties":{"a":{"anyOf":7},"b":{"enum":[]},"c":{"type":"string","format":7,"description":[]},"d":7}}`, ``,
			"t(a?: any, b?: any, c?: string, d?: any) [read-only]\n  About."},
	} {
		t.Run(row.name, func(t *testing.T) {
			tool := plan.Tool{Name: "t", Title: "About.", InputSchema: json.RawMessage(row.schema), OutputSchema: json.RawMessage(row.output),
				Annotations: plan.Annotations{ReadOnlyHint: &readOnly}}
			if got := newSignature(&tool).long(1000); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestSignature_Large: a tool cannot hide its marks, nor the names of its required arguments, behind a large schema.
func TestSignature_Large(t *testing.T) {
	destroys, wide := true, `{"type":"string","enum":["`+strings.Repeat("x", 150)+`","y"]}`
	tool := plan.Tool{Name: "t", Title: "About.", Annotations: plan.Annotations{DestructiveHint: &destroys},
		InputSchema: json.RawMessage(`{"properties":{"a":` + wide + `,"b":` + wide + `,"c":` + wide + `},"required":["b","a"]}`)}
	s := newSignature(&tool)
	s.mark = needsApproval
	if got, want := s.long(400), "t(a, b, …) [destructive] [needs approval]\n  About."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.required = []string{strings.Repeat("a", 500)}
	if got, want := s.long(400), "…"+hints(tool.Annotations)+needsApproval; !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want it to end with %s", got, want)
	}
}

// TestSignature_Learned: what was learned is shown where the tool does not say it, and changes with it.
func TestSignature_Learned(t *testing.T) {
	result, names := "{n: integer}", []string{"q", "limit"}
	p := New(Options{Learned: func(*plan.Tool) (string, []string) { return result, names }})
	silent := &plan.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}
	says := &plan.Tool{Name: "t", InputSchema: json.RawMessage(`{"properties":{"a":{}}}`), OutputSchema: json.RawMessage(`{"type":"integer"}`)}
	text := &plan.Tool{Name: "t", InputSchema: silent.InputSchema, OutputSchema: json.RawMessage(`{"properties":{"content":{"type":"string"}},"required":["content"]}`)}
	for range 2 {
		if got, want := p.signatureOf(silent).long(1000), "t(accepted before: q, limit) -> {n: integer} (seen)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := p.signatureOf(says).long(1000), "t(a?: any) -> integer"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	result, names = `{content: string of lines like "[x] x"}`, nil
	if got, want := p.signatureOf(text).long(1000), "t(arguments unknown) -> "+result+" (seen)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	result = "object"
	if got, want := p.signatureOf(text).long(1000), "t(arguments unknown) -> {content: string}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	result, names = "string", nil
	if got, want := p.signatureOf(silent).long(1000), "t(arguments unknown) -> string (seen)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"type":"string"}]}},"required":["a"]}`), "text", 200)
	f.Add([]byte(`{"properties":{"a":{"items":{"enum":[1,[2]]}}}}`), "a\nb", 50)
	f.Fuzz(func(t *testing.T, schema []byte, about string, limit int) {
		if limit < 20 || limit > maxTool {
			return
		}
		sign := newSignature(&plan.Tool{Name: about, Description: about, InputSchema: schema, OutputSchema: schema})
		line, _ := sign.short()
		if len(line) > maxCall+maxName || strings.ContainsAny(line, "\n\r") {
			t.Errorf("got %q, want a line of at most %d bytes", line, maxCall+maxName)
		}
		got := sign.long(limit)
		if marks := 2 * (1 + strings.Count(got, "\n")); len(got)+marks > limit+4 {
			t.Errorf("got %d bytes and %d of marks, want at most %d", len(got), marks, limit)
		}
		if strings.Count(got, "\n") != strings.Count(got, "\n  ") {
			t.Errorf("got a line that a server made: %q", got)
		}
	})
}
