package expression_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/builtin"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// eval computes an expression over the members of a JSON object and returns JSON, or the error.
func eval(t testing.TB, source, values string) string {
	t.Helper()
	e, err := expression.Parse(source)
	if err != nil {
		return "parse: " + err.Error()
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(values), &members); err != nil {
		t.Fatal(err)
	}
	env := map[string]any{}
	for name, raw := range members {
		if env[name], err = expression.Decode(raw); err != nil {
			t.Fatal(err)
		}
	}
	v, err := e.Eval(t.Context(), env)
	if err != nil {
		return "eval: " + err.Error()
	}
	raw, err := expression.Encode(v)
	if err != nil {
		return "encode: " + err.Error()
	}
	return string(raw)
}

func TestEval(t *testing.T) {
	const values = `{"s1": {"items": [{"name": "a.txt", "size": 120}, {"name": "b.log", "size": 7}], "total": 2, "price": 9.5, "id": 12345678901234567890}, "empty": []}`
	tests := []struct{ source, want string }{
		{`s1.total > 1`, `true`},
		{`$s1.total > 1`, `true`},
		{`s1.items[0].name`, `"a.txt"`},
		{`map(s1.items, .name)`, `["a.txt","b.log"]`},
		{`filter(s1.items, .size > 100)`, `[{"name":"a.txt","size":120}]`},
		{`sum(s1.items, .size)`, `127`},
		{`sum(map(s1.items, .size)) / s1.total`, `63.5`},
		{`reduce(s1.items, #acc + .size, 0)`, `127`},
		{`max(map(s1.items, .size))`, `120`},
		{`sortBy(s1.items, .size)[0].name`, `"b.log"`},
		{`groupBy(s1.items, .size > 100)`, `{"false":[{"name":"b.log","size":7}],"true":[{"name":"a.txt","size":120}]}`},
		{`let n = s1.total; n * 2`, `4`},
		{`{"n": s1.total, "names": join(map(s1.items, .name), ", ")}`, `{"n":2,"names":"a.txt, b.log"}`},
		{`s1.items[0].name matches "^a.*[.]txt$"`, `true`},
		{`s1.items[1].name endsWith ".txt" or "b.log" in map(s1.items, .name)`, `true`},
		{`replace(s1.items[0].name, ".txt", ".md") + "!"`, `"a.md!"`},
		{`uniq([1, 2, 2, 1])`, `[1,2]`},
		{`repeat("ab", 2)`, `"abab"`},
		{`upper(s1.items[0].name) | trimSuffix(".TXT")`, `"A"`},
		{`len(empty) == 0 ? "nothing" : "something"`, `"nothing"`},
		{`s1.missing == nil`, `true`},
		{`s1.missing?.deep ?? "default"`, `"default"`},
		{`s1.id`, `12345678901234567890`},
		{`s1.price * 2`, `19`},
		{`not (s1.total in 1..3)`, `false`},
		{`fromJSON("[1]")[0]`, `1`},
		{`toJSON([1])`, `"[\n  1\n]"`},
		{`keys({"a": 1})`, `["a"]`},
		{`flatten([[1, [2]], nil, []])`, `[1,2,null]`},
		{`map(filter(s1.items, .size < 9), [.name, [.size]]) | flatten()`, `["b.log",7]`},
		{`"<b> & more"`, `"<b> & more"`},
		{`nil`, `null`},
		{`s1.items.name`, "eval: invalid operation: int(string) at character 10"},
		{`s1.missing.deep`, `eval: cannot fetch deep from <nil> at character 12`},
		{`1 +`, `parse: unexpected token EOF at character 3`},
		{`map(s1.items, {"n": .name})`, `parse: unexpected token Operator(":") at character 19; in a function such as map an object stands in parentheses: map(s1, ({"id": .id}))`},
		{`map(s1.items, ({"n": .size}))[0].n`, `120`},
		{` `, `parse: the expression is empty`},
		{`system("ls")`, `parse: unknown function system`},
		{`s1.items.Len()`, `parse: values have no methods`},
		{`$env`, `parse: $env cannot be used: name the values`},
		{`$env["s1"]`, `parse: $env cannot be used: name the values`},
		{`1.0 / 0`, `encode: the value is +Inf, which JSON cannot express`},
		{`"a" matches "("`, "eval: matches: error parsing regexp: missing closing ): `(`"},
		{`filter(s1.items, .name)`, "eval: a value is string, not bool"},
		{`replace(1, 2, 3)`, `eval: replace: wrong arguments`},
	}
	for _, test := range tests {
		if got := eval(t, test.source, values); got != test.want {
			t.Errorf("%s: got %s, want %s", test.source, got, test.want)
		}
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		source string
		want   []string
	}{
		{`s1.items[s2] > item.n and index == 0`, []string{"index", "item", "s1", "s2"}},
		{`let x = $s1; filter(x, .a == s3 && #.b > value)`, []string{"s1", "s3", "value"}},
		{`1 + 1`, []string{}},
	}
	for _, test := range tests {
		e, err := expression.Parse(test.source)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Names(); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.source, got, test.want)
		}
	}
}

// TestWorkIsBounded has expressions that would take hours or all memory.
func TestWorkIsBounded(t *testing.T) {
	list := "[" + strings.Repeat("1,", 5_000) + "1]"
	text := `"` + strings.Repeat("a", 1<<20) + `"`
	sources := []string{
		`count(a, count(a, count(a, true) > 0) > 0)`,
		`count(1..1000, count(1..1000, count(1..1000, true) > 0) > 0)`,
		`reduce(1..1000, #acc + #acc, "x")`,
		`reduce(1..1000, [#acc, #acc], 1)`,
		`reduce(1..1000, ({"a": #acc, "b": #acc}), 1)`,
		`toJSON(reduce(1..60, [#acc, #acc], 1))`,
		`replace(t, "", t)`,
		`repeat(t, 1000000)`,
		`repeat(repeat("x", 1000000), 1000000)`,
		`join(map(a, "x"), t)`,
		`uniq(a)`,
		`all(a, # in a)`,
		`any(a, t contains "ab")`,
		`any(a, t matches "(a{1,500}){1,2}b")`,
		`t matches "(((a{1,10}){1,10}){1,10})*b"`,
		`map(a, a)`,
		`flatten(map(1..1000, a))`,
		`reduce(1..3000, concat(#acc, [#]), [])`,
		`all(a, a == a)`,
		`1..100000000`,
		`map(1..1000, sum(a))`,
		`map(1..1000, sort(a))`,
		`reduce(1..500, [#acc], 1)`,
		`split(repeat(t, 100), "")`,
		`count(1..900000, len(t) > 0)`,
		`count(1..900000, t <= t)`,
		`repeat("x", 1000000) + repeat("y", 1000000) + repeat("z", 10000000)`,
		`toJSON(map(1..100000, [[[[[[#]]]]]]))`,
		`fromJSON("[" + repeat("1,", 1000000) + "1]")`,
		`trim(repeat("é", 400000), repeat("ñ", 900000) + "é")`,
	}
	for _, source := range sources {
		start := time.Now()
		got := eval(t, source, `{"a": `+list+`, "t": `+text+`}`)
		if !strings.HasPrefix(got, "eval: ") || strings.Contains(got, "\n") {
			t.Errorf("%s: got %.100s, want an error", source, got)
		}
		t.Log(source, time.Since(start).Round(time.Millisecond), got[:min(len(got), 100)])
	}
	for name, source := range map[string]string{
		"long": strings.Repeat("1+", expression.MaxLength) + "1", "deep": strings.Repeat("(", 4000), "nodes": strings.Repeat("1+", 1500) + "1",
	} {
		if _, err := expression.Parse(source); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got error %v, want one line", name, err)
		}
	}
}

// TestFunctions holds that docs/queries.md names the functions of the language, each once.
func TestFunctions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| functions | |")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for i, name := range strings.Split(table, "`") {
		if i%2 == 1 {
			named = append(named, name)
		}
	}
	functions := slices.Clone(builtin.Names)
	slices.Sort(functions)
	if slices.Sort(named); !slices.Equal(named, functions) {
		t.Errorf("docs/queries.md: got the functions %q, want %q", named, functions)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`filter(a, .x > 1)`, `reduce(a, #acc + #, 0)`, `let x = a; x[0]?.b ?? "c"`, `a matches "b"`, `{"a": [1, nil]}`, `flatten([a, [[a]]])`, `a[0:2] | map({#}) | concat(a)`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := expression.Parse(source)
		if err != nil {
			return
		}
		v, err := e.Eval(t.Context(), map[string]any{"a": []any{1, "b", nil, map[string]any{"x": 2.5}}})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error has several lines: %v", source, err)
			}
			return
		}
		if raw, err := expression.Encode(v); err == nil && !json.Valid(raw) {
			t.Errorf("%q: got %s, want JSON", source, raw)
		}
	})
}
