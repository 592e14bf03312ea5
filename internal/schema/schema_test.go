package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// brief writes what a schema says of a value: {name!: string [2..], …}, with ! after what is required.
func brief(s *Schema) string {
	if s == nil {
		return "-"
	}
	var b strings.Builder
	b.WriteString(strings.Join(s.Types, "+"))
	if s.Nullable {
		b.WriteString("+null")
	}
	for _, text := range []string{s.Title, s.Description, s.Format, s.Pattern} {
		if text != "" {
			fmt.Fprintf(&b, " %q", text)
		}
	}
	if s.Enum != nil {
		fmt.Fprintf(&b, " of %s", join(s.Enum))
	}
	if s.Default != nil {
		fmt.Fprintf(&b, " default %s", s.Default)
	}
	if s.Examples != nil {
		fmt.Fprintf(&b, " such as %s", join(s.Examples))
	}
	if len(s.Bounds) > 0 {
		bounds, _ := json.Marshal(s.Bounds)
		b.Write(bounds)
	}
	if s.Items != nil {
		fmt.Fprintf(&b, "[%s]", brief(s.Items))
	}
	for _, p := range s.PrefixItems {
		fmt.Fprintf(&b, "<%s>", brief(p))
	}
	if len(s.Fields) > 0 {
		b.WriteString("{")
		for i, p := range s.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(p.Name)
			if p.Required {
				b.WriteString("!")
			}
			b.WriteString(": " + brief(p.Schema))
		}
		b.WriteString("}")
	}
	if s.Additional != nil {
		fmt.Fprintf(&b, "{*: %s}", brief(s.Additional))
	}
	for _, a := range s.Alternatives {
		fmt.Fprintf(&b, " | %s", brief(a))
	}
	return b.String()
}

func join(values []json.RawMessage) string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return strings.Join(out, ",")
}

func TestRead(t *testing.T) {
	for _, row := range []struct{ name, schema, want string }{
		{"nothing", ``, ``},
		{"anything", `true`, ``},
		{"order and required", `{"type":"object","properties":{"b":{},"a":{},"c":true},"required":["a",7,"x","a"]}`, `object{b: , a!: , c: }`},
		{"texts", `{"title":"T","description":"D","format":"F","pattern":"P"}`, ` "T" "D" "F" "P"`},
		{"values", `{"type":"string","default":"x","examples":["y", "z"],"enum":["x", "y"]}`, `string of "x","y" default "x" such as "y","z"`},
		{"choices of two parts", `{"enum":["a"],"allOf":[{"enum":["b"]}]}`, `string of "a"`},
		{"choices that are no list", `{"enum":{"a":"b"},"examples":{"a":"b"}}`, ``},
		{"choices that alternatives repeat", `{"properties":{"k":{"enum":["a"]}},"anyOf":[{"properties":{"k":{"enum":["b"]}}},{"properties":{"k":{"enum":["c"]}}}]}`,
			`object{k: string of "a"} | object{k: string of "b"} | object{k: string of "c"}`},
		{"constant", `{"const":null}`, ` of null`},
		{"type of choices", `{"enum":["a","b"]}`, `string of "a","b"`},
		{"bounds", `{"minimum":1,"maximum":2.50,"exclusiveMinimum":0,"exclusiveMaximum":9,"multipleOf":0.5,"minLength":1,"maxLength":2,"minItems":3,"maxItems":4}`,
			`{"exclusiveMaximum":9,"exclusiveMinimum":0,"maxItems":4,"maxLength":2,"maximum":2.50,"minItems":3,"minLength":1,"minimum":1,"multipleOf":0.5}`},
		{"types", `{"type":["null","string","number"]}`, `string+number+null`},
		{"types of languages", `{"properties":{"a":{"type":"Str"},"b":{"type":"dict"},"c":{"type":"any"},"d":{"type":"int","nullable":true}}}`, `object{a: string, b: object, c: , d: integer+null}`},
		{"array", `{"items":{"type":"array","prefixItems":[{"type":"string"},{"type":"null"}]}}`, `array[array<string><null>]`},
		{"tuple of older drafts", `{"items":[{"type":"string"}]}`, `array<string>`},
		{"map", `{"type":"object","additionalProperties":{"type":"number"}}`, `object{*: number}`},
		{"closed", `{"type":"object","additionalProperties":false}`, `object`},

		{"root reference", `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"a":{"$ref":"#/$defs/u"}},"required":["a"]},"u":{"type":"string"}}}`, `object{a!: string}`},
		{"definitions", `{"properties":{"a":{"$ref":"#/definitions/t"}},"definitions":{"t":{"type":"string"}}}`, `object{a: string}`},
		{"pointer", `{"properties":{"a":{"$ref":"#/x~1y/~0%20z/1"}},"x/y":{"~ z":[{},{"type":"string"}]}}`, `object{a: string}`},
		{"beside a reference", `{"properties":{"a":{"$ref":"#/$defs/t","description":"own"}},"$defs":{"t":{"type":"string","description":"other"}}}`, `object{a: string "own"}`},
		{"references that lead nowhere", `{"properties":{"a":{"$ref":"#/$defs/t"},"b":{"$ref":"http://x/y"},"c":{"$ref":7},"d":{"$ref":"#anchor"},"e":{"$ref":"#/properties/e/9"}}}`, `object{a: , b: , c: , d: , e: }`},
		{"contains itself", `{"type":"object","title":"T","properties":{"a":{"type":"string"},"next":{"$ref":"#"},"all":{"items":{"$ref":"#"}}},"required":["a"]}`,
			`object "T"{a!: string, next: object "T", all: array[object "T"]}`},
		{"refers to itself", `{"$ref":"#","properties":{"a":{"$ref":"#/properties/a"},"b":{"allOf":[{"$ref":"#/properties/c"}]},"c":{"$ref":"#/properties/b"}}}`, `object{a: , b: , c: }`},

		{"all of", `{"properties":{"a":{"type":"string"}},"required":["a"],"allOf":[{"properties":{"b":{"type":"number"},"a":{"description":"A"}}},{"properties":{"c":{}},"required":["c"]}]}`,
			`object{a!: string "A", b: number, c!: }`},
		{"alternatives that refer to their base", `{"$ref":"#/$defs/pet","$defs":{"pet":{"properties":{"name":{"type":"string"}},"required":["name"],"oneOf":[{"$ref":"#/$defs/dog"},{"$ref":"#/$defs/cat"}]},` +
			`"dog":{"allOf":[{"$ref":"#/$defs/pet"},{"properties":{"bark":{}}}]},"cat":{"allOf":[{"$ref":"#/$defs/pet"},{"properties":{"purr":{}}}]}}}`,
			`object{name!: string, bark: , purr: } | object{bark: } | object{purr: }`},
		{"all of a reference first", `{"allOf":[{"$ref":"#/$defs/t"},{"properties":{"c":{}}}],"$defs":{"t":{"properties":{"b":{}},"allOf":[{"properties":{"a":{}}}]}}}`, `object{b: , a: , c: }`},
		{"one that may be null", `{"properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}],"description":"A"},"b":{"oneOf":[{"const":null},{"$ref":"#/$defs/t"}]}},"$defs":{"t":{"enum":["x"]}}}`,
			`object{a: string+null "A" "date", b: string+null of "x"}`},
		{"alternatives", `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"null"}]}`, `+null | string | array[string]`},
		{"titled constants", `{"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, `string of "a","b" | string "A" of "a" | string "B" of "b"`},
		{"alternatives of objects", `{"type":"object","properties":{"n":{"type":"number"}},"oneOf":[` +
			`{"properties":{"kind":{"const":"x"},"x":{"type":"string"}},"required":["kind","x"]},{"properties":{"kind":{"const":"y"}},"required":["kind"]}]}`,
			`object{n: number, kind!: string of "x","y", x: string} | object{kind!: string of "x", x!: string} | object{kind!: string of "y"}`},
		{"alternatives of what is required", `{"properties":{"a":{},"b":{},"c":{}},"anyOf":[{"required":["a","c"]},{"required":["c","b"]}]}`,
			`object{a: , b: , c!: } | object | object`},
		{"not null alone", `{"anyOf":[{"type":"null"}]}`, `+null`},

		{"wrong kinds", `{"title":7,"type":{},"enum":{},"examples":"x","required":"a","properties":[1],"items":7,"minimum":"1","maximum":1e999,"anyOf":{},"allOf":[7,null],"default":null}`, ` default null`},
		{"properties of wrong kinds", `{"properties":{"a":7,"":null,"b":[],"c":"x"}}`, `object{a: , : , b: , c: }`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := Read(json.RawMessage(row.schema))
			if err != nil {
				t.Fatal(err)
			}
			if got := brief(s); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{`{`, `null`, `[]`, `"x"`, `{} {}`, `{"a":` + strings.Repeat(" ", maxBytes) + `1}`} {
		if s, err := Read(json.RawMessage(text)); err == nil || s != nil {
			t.Errorf("%.20q: got a schema, want an error", text)
		}
	}
}

// hostile schemas are small, and large once their references are followed.
func hostile() map[string]string {
	repeat := func(n int, format string) string {
		var parts []string
		for i := range n {
			parts = append(parts, strings.NewReplacer("%", fmt.Sprint(i), "^", fmt.Sprint(i+1)).Replace(format))
		}
		return strings.Join(parts, ",")
	}
	long := strings.Repeat("x ", maxBytes/4)
	return map[string]string{
		"doubling":           `{"$ref":"#/$defs/t0","$defs":{` + repeat(15, `"t%":{"properties":{"a":{"$ref":"#/$defs/t^"},"b":{"$ref":"#/$defs/t^"},"c":{"$ref":"#/$defs/t^"}}}`) + `}}`,
		"long text":          `{"properties":{` + repeat(5000, `"p%":{"$ref":"#/$defs/t"}`) + `},"$defs":{"t":{"description":"` + long + `"}}}`,
		"wide enumeration":   `{"anyOf":[` + repeat(150, `{"$ref":"#/$defs/t"}`) + `],"$defs":{"t":{"enum":[` + repeat(60_000, "%") + `]}}}`,
		"deep":               `{"properties":{"a":` + strings.Repeat(`{"properties":{"a":`, 4000) + `{}` + strings.Repeat(`}}`, 4000) + `}}`,
		"many properties":    `{"properties":{` + repeat(50_000, `"p%":{}`) + `}}`,
		"many references":    `{"properties":{` + repeat(4000, `"p%":{"$ref":"#/$defs/t%"}`) + `},"$defs":{` + repeat(30_000, `"t%":{}`) + `}}`,
		"chain":              `{"$ref":"#/$defs/t0","$defs":{` + repeat(9000, `"t%":{"allOf":[{"$ref":"#/$defs/t^"},{"$ref":"#/$defs/t^0"}]}`) + `}}`,
		"nested alternative": strings.Repeat(`{"anyOf":[{"enum":[1,2]},{"required":["a"]},`, 500) + `{}` + strings.Repeat(`]}`, 500),
	}
}

func TestReadIsBounded(t *testing.T) {
	for name, text := range hostile() {
		s, err := Read(json.RawMessage(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if schemas, bytes := size(s, 0); schemas > 3*maxSchemas || bytes > 2*maxEffort {
			t.Errorf("%s: got %d schemas of %d bytes, want at most %d of %d", name, schemas, bytes, 3*maxSchemas, 2*maxEffort)
		}
	}
}

// size counts the schemas inside s and the bytes of their texts.
func size(s *Schema, depth int) (schemas, bytes int) {
	if s == nil || depth > maxDepth {
		return 0, 0
	}
	schemas, bytes = 1, len(s.Title)+len(s.Description)+len(s.Format)+len(s.Pattern)+8*len(s.Enum)
	inside := append([]*Schema{s.Items, s.Additional}, s.PrefixItems...)
	for _, p := range s.Properties {
		inside = append(inside, p.Schema)
		bytes += len(p.Name)
	}
	for _, i := range append(inside, s.Alternatives...) {
		n, b := size(i, depth+1)
		schemas, bytes = schemas+n, bytes+b
	}
	return schemas, bytes
}

func TestReadIsBoundedInDepth(t *testing.T) {
	s, err := Read(json.RawMessage(strings.Repeat(`{"properties":{"a":`, 3*maxDepth) + `{}` + strings.Repeat(`}}`, 3*maxDepth)))
	if err != nil {
		t.Fatal(err)
	}
	depth := 0
	for s = s.Field("a"); s != nil; s = s.Field("a") {
		depth++
	}
	if depth != maxDepth {
		t.Errorf("got %d levels, want %d", depth, maxDepth)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"$ref":"#/$defs/t","$defs":{"t":{"allOf":[{"$ref":"#"},{"properties":{"a":{"type":["string","null"],"enum":["x"]}},"required":["a"]}]}}}`))
	f.Add([]byte(`{"oneOf":[{"properties":{"kind":{"const":"x"}}},{"properties":{"kind":{"const":"y"},"a":{"items":[{}]}}}],"minimum":1}`))
	f.Add([]byte(`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}},"additionalProperties":{"$ref":"#"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(text)
		if (s == nil) != (err != nil) {
			t.Fatalf("got %v and error %v", s, err)
		}
		if err != nil {
			return
		}
		if schemas, _ := size(s, 0); schemas > maxSchemas {
			t.Errorf("got %d schemas, want at most %d", schemas, maxSchemas)
		}
		names := make(map[string]bool)
		for _, p := range s.Fields {
			if names[p.Name] || p.Schema == nil {
				t.Errorf("got %q twice or without a schema", p.Name)
			}
			names[p.Name] = true
		}
	})
}
