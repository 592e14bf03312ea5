package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

var validateTests = []struct {
	name, schema, arguments, want string // "" = fine
}{
	{"fine", `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`, `{"q":"x"}`, ""},
	{"type", `{"properties":{"limit":{"type":"integer"}}}`, `{"limit":"5"}`, `arguments.limit: got string, want integer`},
	{"missing", `{"required":["query"]}`, `{}`, `arguments: missing property "query"`},
	{"several missing", `{"required":["a","b"]}`, `{}`, `arguments: missing properties "a", "b"`},
	{"unknown", `{"properties":{"a":{}},"additionalProperties":false}`, `{"c":1,"b":2,"a":3}`, `arguments: unknown properties "b", "c"`},
	{"nested", `{"properties":{"items":{"items":{"properties":{"n":{"type":"number"}}}}}}`, `{"items":[{"n":1},{"n":null}]}`, `arguments.items[1].n: got null, want number`},
	{"odd names", `{"properties":{"a b":{"properties":{"0":{"type":"null"}}}}}`, `{"a b":{"0":1}}`, `arguments["a b"].0: got number, want null`},
	{"several", `{"properties":{"b":{"type":"string"},"a":{"type":"string"}}}`, `{"b":1,"a":2}`, `arguments.a: got number, want string; arguments.b: got number, want string`},
	{"enum", `{"properties":{"u":{"enum":["c","f",1]}}}`, `{"u":"k"}`, `arguments.u: got "k", want one of "c", "f", 1`},
	{"const", `{"properties":{"u":{"const":"c"}}}`, `{"u":"k"}`, `arguments.u: got "k", want "c"`},
	{"pattern", `{"properties":{"u":{"pattern":"^a"}}}`, `{"u":"k\nl"}`, `arguments.u: got "k\nl", want a match of "^a"`},
	{"minimum", `{"properties":{"n":{"minimum":3}}}`, `{"n":2}`, `arguments.n: minimum: got 2, want 3`},
	{"optional", `{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"n":"x"}`, `arguments.n: got string, want integer or null`},
	{"alternatives", `{"properties":{"n":{"anyOf":[{"type":"null"},{"type":"object","required":["x"]}]}}}`, `{"n":{}}`, `arguments.n: missing property "x"`},
	{"one of two", `{"properties":{"n":{"oneOf":[{"type":"integer"},{"minimum":0}]}}}`, `{"n":3}`, `arguments.n: fits several alternatives, want exactly one`},
	{"not", `{"properties":{"n":{"not":{"type":"null"}}}}`, `{"n":null}`, `arguments.n: has a form that is not allowed`},
	{"false", `{"properties":{"n":false}}`, `{"n":null}`, `arguments.n: not allowed`},
	{"names", `{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A":1}`, `arguments: property "A" has a name that is not allowed`},
	{"exact numbers", `{"properties":{"n":{"maximum":9007199254740992}}}`, `{"n":9007199254740993}`, `arguments.n: maximum`},
	{"whole float is an integer", `{"properties":{"n":{"type":"integer"}}}`, `{"n":1.0}`, ""},
	{"reference", `{"$defs":{"id":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/id"}}}`, `{"n":""}`, `arguments.n: got string, want integer`},
	{"recursion", `{"$defs":{"t":{"properties":{"kids":{"items":{"$ref":"#/$defs/t"}},"v":{"type":"integer"}}}},"$ref":"#/$defs/t"}`, `{"kids":[{"kids":[{"v":""}]}]}`, `arguments.kids[0].kids[0].v: got string, want integer`},
	{"embedded resource", `{"$id":"https://x.test/a","$defs":{"b":{"$id":"b","type":"integer"}},"properties":{"n":{"$ref":"b"}}}`, `{"n":""}`, `arguments.n: got string, want integer`},
	{"format is no assertion", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"d":{"format":"date"},"format":{"type":"string"}}}`, `{"d":"tomorrow","format":1}`, `arguments.format: got number, want string`},
	{"tuple of draft-07", `{"properties":{"p":{"items":[{"type":"integer"}]}}}`, `{"p":["x"]}`, `arguments.p[0]: got string, want integer`},
	{"boolean exclusiveMinimum of draft-04", `{"properties":{"p":{"minimum":1,"exclusiveMinimum":true}}}`, `{"p":1}`, `arguments.p: exclusiveMinimum: got 1, want 1`},
	{"draft-04 by name", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"p":{"type":"integer"}}}`, `{"p":""}`, `arguments.p: got string, want integer`},
	{"foreign pattern", `{"properties":{"a":{"type":"string","pattern":"^(?=x)"}}}`, `{"a":1}`, `arguments.a: got number, want string`},
	{"foreign pattern passes", `{"properties":{"a":{"type":"string","pattern":"^(?=x)"}}}`, `{"a":"y"}`, ``},
	{"foreign patternProperties", `{"properties":{"a":{"type":"string"}},"patternProperties":{"^(?=x)":{"type":"null"}},"additionalProperties":false}`, `{"xx":1,"a":2}`, `arguments.a: got number, want string`},
	{"unique items", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,1.0]}`, `arguments.a: items at 0 and 1 are equal`},
	{"many findings", `{"additionalProperties":{"type":"null"}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, `arguments.e: got number, want null; and 2 more`},
	{"types by other names", `{"type":"Object","properties":{"a":{"type":"String"},"b":{"type":"int"},"c":{"type":"Date (yyyy)"},"type":{"type":"bool"}}}`, `{"a":1,"b":"x","c":1,"type":2}`, `arguments.a: got number, want string; arguments.b: got string, want integer; arguments.type: got number, want boolean`},
	{"enum and required that are no lists", `{"properties":{"a":{"type":"integer","enum":"1-100"},"b":{"required":true,"type":"string"},"enum":{"type":"string"}}}`, `{"a":"x","enum":1}`, `arguments.a: got string, want integer; arguments.enum: got number, want string`},
	{"no schema", ``, `{"a":1}`, ``},
	{"schema true", `true`, `{"a":1}`, ``},
	{"schema false", `false`, `{"a":1}`, `arguments: not allowed`},
	{"not an object", `{}`, `[1]`, `arguments: got array, want object`},
	{"nothing", `{}`, ``, `arguments: got nothing, want object`},
	{"broken", `{}`, `{"a":`, `arguments: the text ends inside a JSON value`},
	{"large exponent", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1e700}`, ""},
	{"huge exponent", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1e999999999}`, `arguments: a number has too many digits`},
	{"many digits", `{}`, `{"a":` + strings.Repeat("1", 5000) + `}`, `arguments: a number has too many digits`},
	{"too deep", `{}`, `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, `arguments: nested deeper than 130 levels`},
}

func TestValidate(t *testing.T) {
	v := plan.NewValidator()
	for _, tt := range validateTests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // compiled, and from the cache
				err := v.Validate(json.RawMessage(tt.schema), json.RawMessage(tt.arguments))
				switch {
				case tt.want == "":
					if err != nil {
						t.Errorf("got %v, want nil", err)
					}
				case err == nil || !strings.Contains(err.Message, tt.want):
					t.Errorf("got %v, want %s", err, tt.want)
				case err.Reason != reason.InvalidArguments || strings.ContainsAny(err.Message, "\n\r"):
					t.Errorf("got %q (%s), want one line and %s", err.Message, err.Reason, reason.InvalidArguments)
				}
			}
		})
	}
}

// nest builds a schema of n levels around the innermost one.
func nest(n int, before, inner, after string) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

func hostileSchemas(t testing.TB) map[string]string {
	file := filepath.Join(t.TempDir(), "refuses.json")
	if err := os.WriteFile(file, []byte("false"), 0o600); err != nil {
		t.Fatal(err)
	}
	doubling := func(n int) string { // each level applies the next one twice
		var defs []string
		for i := range n {
			defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
		}
		return `{"$defs":{` + strings.Join(defs, ",") + fmt.Sprintf(`,"d%d":false},"$ref":"#/$defs/d0"}`, n)
	}
	list := func(n int, item func(int) string) string {
		var items []string
		for i := range n {
			items = append(items, item(i))
		}
		return strings.Join(items, ",")
	}
	return map[string]string{
		"self":                 `{"$ref":"#"}`,
		"loop":                 `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}`,
		"loop in alternatives": `{"anyOf":[{"$ref":"#"},{"not":{"$ref":"#"}}]}`,
		"loop in conditions":   `{"if":{"$ref":"#"},"then":{"$ref":"#"}}`,
		"dynamic loop":         `{"$dynamicAnchor":"x","$dynamicRef":"#x"}`,
		"recursive loop":       `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"allOf":[{"$recursiveRef":"#"}]}`,
		"file":                 `{"$ref":"file://` + file + `"}`,
		"path":                 `{"$ref":"` + file + `"}`,
		"relative path":        `{"$id":"file://` + filepath.Dir(file) + `/x.json","$ref":"refuses.json"}`,
		"file as metaschema":   `{"$schema":"file://` + file + `"}`,
		"http":                 `{"$ref":"http://127.0.0.1:1/schema.json"}`,
		"unknown metaschema":   `{"$schema":"https://x.test/schema","type":"null"}`,
		"own metaschema":       `{"$schema":"urn:tool:schema","type":"null"}`,
		"missing":              `{"$ref":"#/$defs/nowhere"}`,
		"into a word":          `{"title":"x","$ref":"#/title"}`,
		"bad pointer":          `{"$ref":"#/~2"}`,
		"bad URL":              `{"$ref":"%zz"}`,
		"deep anyOf":           nest(25, `{"anyOf":[{"type":"null"},`, `false`, `]}`),
		"doubling anyOf":       doubling(25),
		"doubling anyOf 60":    doubling(60),
		"doubling by depth":    `{"$defs":{"a":{"items":{"$ref":"#/$defs/a"},"contains":{"$ref":"#/$defs/a"},"unevaluatedItems":false}},"additionalProperties":{"$ref":"#/$defs/a"}}`,
		"chain":                `{"$defs":{` + list(1000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) }) + `,"d1000":{}},"$ref":"#/$defs/d0"}`,
		"too deep":             nest(500, `{"properties":{"a":`, `false`, `}}`),
		"arrays":               strings.Repeat("[", 100_000),
		"too large":            `{"description":"` + strings.Repeat("x", 300<<10) + `","type":"null"}`,
		"many subschemas":      `{"properties":{` + list(3900, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `},"type":"null"}`,
		"too many subschemas":  `{"properties":{` + list(20_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `},"type":"null"}`,
		"many resources":       `{"$defs":{` + list(3000, func(i int) string { return fmt.Sprintf(`"p%d":{"$id":"i%d"}`, i, i) }) + `},"type":"null"}`,
		"many references":      `{"x":{` + list(1900, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `},"allOf":[` + list(1900, func(i int) string { return fmt.Sprintf(`{"$ref":"#/x/p%d"}`, i) }) + `]}`,
		"wide":                 `{"allOf":[` + list(1000, func(int) string { return `{"$ref":"#/$defs/a"}` }) + `],"$defs":{"a":{"allOf":[` + list(1000, func(int) string { return `{}` }) + `]}}}`,
		"long names":           `{"properties":{"` + strings.Repeat("x", 100<<10) + `":{"allOf":[` + list(3000, func(int) string { return `{}` }) + `]}}}`,
		"huge enum":            `{"properties":{"a":{"enum":[` + list(20_000, strconv.Itoa) + `]}}}`,
		"huge enum of items":   `{"properties":{"list":{"items":{"enum":[` + list(20_000, strconv.Itoa) + `]}}}}`,
		"huge number":          `{"properties":{"n":{"minimum":1e1000000000}}}`,
		"tiny number":          `{"properties":{"n":{"multipleOf":1e-1000000000}}}`,
		"long number":          `{"properties":{"n":{"const":` + strings.Repeat("9", 100_000) + `}}}`,
		"zero multipleOf":      `{"properties":{"n":{"multipleOf":0}}}`,
		"pattern":              `{"properties":{"s":{"pattern":"("}}}`,
		"repetition":           `{"properties":{"s":{"pattern":"((a{1000}){1000}){1000}"}}}`,
		"long pattern":         `{"properties":{"s":{"pattern":"` + strings.Repeat("a?", 10_000) + `"}}}`,
		"many patterns":        `{"properties":{` + list(500, func(i int) string { return fmt.Sprintf(`"p%d":{"pattern":"%da{1000}b{1000}"}`, i, i) }) + `}}`,
		"slow pattern":         `{"properties":{"s":{"pattern":"(a?){900}(.*x){90}$"}}}`,
		"slow names":           `{"patternProperties":{"(a?){900}(.*x){90}$":{}}}`,
		"unique":               `{"properties":{"list":{"uniqueItems":true}}}`,
		"wrong types":          `{"type":5,"properties":[],"required":true,"enum":{}}`,
		"text":                 `"schema"`,
		"number":               `5`,
		"null":                 `null`,
		"trailing":             `{} {}`,
		"broken":               `{"type":`,
		"vocabulary":           `{"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{"https://x.test":true}}`,
		"metaschema":           `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		"old metaschema":       `{"$ref":"http://json-schema.org/draft-07/schema"}`,
		"embedded files":       `{"$ref":"http://json-schema.org/../../../etc/passwd"}`,
	}
}

// Arguments that the hostile schemas are hostile to. Nothing in them is refused by a schema that can be
// used, so any refusal means that a schema had an effect that it must not have.
func hostileArguments() map[string]string {
	nested := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	numbers := strings.TrimSuffix(strings.Repeat("1,", 5_000), ",")
	var distinct []string
	for i := range 5_000 {
		distinct = append(distinct, strconv.Itoa(i))
	}
	return map[string]string{
		"plain":    `{"n":4,"s":"aaaa","b":true,"z":null}`,
		"nested":   `{"deep":` + nested + `}`,
		"numbers":  `{"list":[` + numbers + `]}`,
		"distinct": `{"list":[` + strings.Join(distinct, ",") + `]}`,
		"long":     `{"s":"` + strings.Repeat("a", 1<<16) + `"}`,
		"name":     `{"` + strings.Repeat("a", 1<<16) + `":1}`,
	}
}

func TestValidateHostile(t *testing.T) {
	refuses := map[string]bool{ // schemas that are usable after all, and right to refuse
		"many subschemas": true, "deep anyOf": true, "huge enum of items": true, "many resources": true, "unique": true,
		"slow pattern": true, "old metaschema": true,
	}
	arguments := hostileArguments()
	for name, schema := range hostileSchemas(t) {
		t.Run(name, func(t *testing.T) {
			v := plan.NewValidator()
			for kind, a := range arguments {
				start := time.Now()
				err := v.Validate(json.RawMessage(schema), json.RawMessage(a))
				d := time.Since(start)
				if d > 100*time.Millisecond {
					t.Logf("%s took %v", kind, d)
				}
				if d > time.Minute { // generous: the race detector and busy machines; what has no bound takes hours
					t.Errorf("%s took %v", kind, d)
				}
				if err != nil && !refuses[name] {
					t.Errorf("%s: got %v, want nothing refused", kind, err)
				}
				if err := v.Validate(json.RawMessage(schema), json.RawMessage(`[]`)); err == nil {
					t.Errorf("got nil for a list, want arguments to be an object whatever the schema")
				}
			}
		})
	}
}

func TestValidatorIsBounded(t *testing.T) {
	v := plan.NewValidator()
	want := `arguments.x: got string, want integer`
	for i := range 1100 { // more than it keeps
		schema := fmt.Sprintf(`{"title":"%d","properties":{"x":{"type":"integer"}}}`, i)
		if err := v.Validate(json.RawMessage(schema), json.RawMessage(`{"x":""}`)); err == nil || err.Message != want {
			t.Fatalf("schema %d: got %v, want %s", i, err, want)
		}
	}
	if n := v.Len(); n > 1024 {
		t.Errorf("got %d schemas kept, want at most 1024", n)
	}
	pad := strings.Repeat("x", 200<<10)
	for i := range 25 {
		v.Validate(json.RawMessage(fmt.Sprintf(`{"title":"%d%s"}`, i, pad)), json.RawMessage(`{}`))
	}
	if n := v.Len(); n > 21 {
		t.Errorf("got %d schemas of 200 KiB kept, want at most 21", n)
	}
}

func TestValidatorConcurrently(t *testing.T) {
	v := plan.NewValidator()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 50 {
				schema := fmt.Sprintf(`{"properties":{"x":{"enum":[%d]}}}`, (i+j)%7)
				got := v.Validate(json.RawMessage(schema), json.RawMessage(fmt.Sprintf(`{"x":%d}`, j%7)))
				if ok := (i+j)%7 == j%7; ok != (got == nil) {
					t.Errorf("schema %s, x %d: got %v", schema, j%7, got)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzValidate(f *testing.F) {
	for _, tt := range validateTests {
		f.Add(tt.schema, tt.arguments)
	}
	for _, schema := range hostileSchemas(f) {
		if len(schema) < 4000 {
			f.Add(schema, `{"n":4,"s":"aaaa","list":[1,2,2],"deep":[[[[[[]]]]]]}`)
		}
	}
	v := plan.NewValidator()
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		start := time.Now()
		err := v.Validate(json.RawMessage(schema), json.RawMessage(arguments))
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("took %v", d)
		}
		if err == nil {
			var object map[string]json.RawMessage
			if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
				t.Errorf("got nil for %s, want an object asked for", arguments)
			}
			return
		}
		if err.Reason != reason.InvalidArguments || strings.ContainsAny(err.Message, "\n\r") || !strings.HasPrefix(err.Message, "arguments") {
			t.Errorf("got %s: %q", err.Reason, err.Message)
		}
	})
}
