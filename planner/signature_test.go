package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/planner/plan"
)

func TestSignature(t *testing.T) {
	readOnly := true
	for _, row := range []struct {
		name, schema, output, want string
	}{
		{"nothing", ``, ``, "t() [read-only]\n  About."},
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
		{"result", `{}`, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, "t() -> {n: integer} [read-only]\n  About."},
		{"wrong kinds", `{"properties":7,"required":"a","type":[],"enum":{}}`, ``, "t() [read-only]\n  About."},
		{"wrong unions", `{"properties":{"a":{"anyOf":7},"b":{"enum":[]},"c":{"type":"string","format":7,"description":[]},"d":7}}`, ``,
			"t(a?: any, b?: any, c?: string, d?: any) [read-only]\n  About."},
	} {
		t.Run(row.name, func(t *testing.T) {
			tool := plan.Tool{Name: "t", Title: "About.", InputSchema: json.RawMessage(row.schema), OutputSchema: json.RawMessage(row.output),
				Annotations: plan.Annotations{ReadOnlyHint: &readOnly}}
			if got := signature(tool, 1000); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"type":"string"}]}},"required":["a"]}`), "text", 200)
	f.Add([]byte(`{"properties":{"a":{"items":{"enum":[1,[2]]}}}}`), "a\nb", 50)
	f.Fuzz(func(t *testing.T, schema []byte, about string, limit int) {
		if limit < 20 || limit > maxTool {
			return
		}
		got := signature(plan.Tool{Name: about, Description: about, InputSchema: schema, OutputSchema: schema}, limit)
		if marks := 2 * (1 + strings.Count(got, "\n")); len(got)+marks > limit+4 {
			t.Errorf("got %d bytes and %d of marks, want at most %d", len(got), marks, limit)
		}
		if strings.Count(got, "\n") != strings.Count(got, "\n  ") {
			t.Errorf("got a line that a server made: %q", got)
		}
	})
}
