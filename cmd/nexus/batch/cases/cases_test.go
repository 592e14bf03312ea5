package cases_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
)

// load reads a file of that name and text.
func load(t *testing.T, name, text string) (all []cases.Case, problems []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := cases.Load(path, nil)
	var mistakes *cases.Error
	if errors.As(err, &mistakes) {
		for line := range strings.Lines(mistakes.Error()) {
			problems = append(problems, strings.TrimSpace(strings.Replace(line, path, name, 1)))
		}
		return nil, problems
	}
	if err != nil {
		t.Fatal(err)
	}
	return all, nil
}

// The same two cases in every format.
func TestFormats(t *testing.T) {
	for name, text := range map[string]string{
		"a.jsonl": `{"id":"one","query":"add ${n}","vars":{"n":2},"tags":["x","y"],"expect":{"answer_contains":["2"],"degraded":false}}` + "\n\n" +
			`{"id":"two","query":"hi","plan":[{"tool":"t","arguments":{}}],"expect":{"tools":{"includes":["t"]},"max_steps":1}}`,
		"a.json": "[\n" + `{"id":"one","query":"add ${n}","vars":{"n":2},"tags":["x","y"],"expect":{"answer_contains":"2","degraded":false}},` + "\n" +
			`{"id":"two","query":"hi","plan":[{"tool":"t","arguments":{}}],"expect":{"tools":{"includes":["t"]},"max_steps":1}}]`,
		"a.csv": "\ufeffid,query,vars.n,tags,plan,expect.answer_contains,expect.degraded,expect.tools.includes,expect.max_steps\r\n" +
			"one,add ${n},2,x; y,,2,FALSE,,\r\n" + `two,hi,,,"[{""tool"":""t"",""arguments"":{}}]",,,t,1` + "\r\n",
		"objects.csv": "id,query,vars.n,tags,plan,expect.answer_contains,expect.degraded,expect.tools,expect.max_steps\n" +
			"one,add ${n},2,x; y,,2,false,,\n" + `two,hi,,,"[{""tool"":""t"",""arguments"":{}}]",,,"{""includes"": [""t""]}",1`,
		"a.yaml": "# two\n- id: one\n  query: add ${n}\n  vars: {n: 2}\n  tags: [x, y]\n  expect: {answer_contains: ['2'], degraded: false}\n" +
			"- id: two\n  query: hi\n  plan:\n    - {tool: t, arguments: {}}\n  expect:\n    tools: {includes: [t]}\n    max_steps: 1\n",
		"text": `{"id":"one","query":"add ${n}","vars":{"n":2},"tags":["x","y"],"expect":{"answer_contains":["2"],"degraded":false}}` + "\n" +
			`{"id":"two","query":"hi","plan":[{"tool":"t","arguments":{}}],"expect":{"tools":{"includes":["t"]},"max_steps":1}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			all, problems := load(t, name, text)
			if len(problems) > 0 || len(all) != 2 {
				t.Fatalf("got %d cases and %q, want 2", len(all), problems)
			}
			one, two := all[0], all[1]
			if one.ID != "one" || one.Query != "add 2" || !slices.Equal(one.Tags, []string{"x", "y"}) {
				t.Errorf("got %+v", one)
			}
			if e := one.Expect; !slices.Equal(e.AnswerContains, []string{"2"}) || e.Degraded == nil || *e.Degraded {
				t.Errorf("got %+v", e)
			}
			if e := two.Expect; two.Plan == nil || e.Tools.How != cases.ToolsIncludes || e.Tools.Names[0] != "t" || *e.MaxSteps != 1 {
				t.Errorf("got %+v, %+v", two, e)
			}
			if one.Definition == two.Definition || one.Definition == "" {
				t.Error("got the same definition twice")
			}
		})
	}
}

// Every mistake is one line with the place where it is.
func TestMistakes(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{"a.jsonl", "{\"id\":\"a\",\"query\":\"q\"}\n{broken\n{\"id\":\"b\"}", []string{"a.jsonl:2: want a JSON object: ", "a.jsonl:3: query is missing"}},
		{"a.jsonl", `{"query":"q"}`, []string{"a.jsonl:1: id is missing"}},
		{"a.jsonl", `{"id":"","query":"q"}`, []string{"a.jsonl:1: id must have 1 to 200 characters"}},
		{"a.jsonl", `{"id":"a","query":"q","query":"r"}`, []string{`a.jsonl:1: want a JSON object: duplicate object member name "query"`}},
		{"a.jsonl", `["id"]`, []string{`a.jsonl:1: want a JSON object, got ["id"]`}},
		{"a.jsonl", `{"id":"a","query":"${x}","vars":{"y":1}}`, []string{"a.jsonl:1: query: ${x} is not in vars"}},
		{"a.jsonl", `{"id":"a","query":"q","timeout_seconds":-1,"max_rounds":99,"plan":5,"context":5}`, []string{
			"a.jsonl:1: timeout_seconds must be above 0", "a.jsonl:1: max_rounds must be from 1 to 10",
			"a.jsonl:1: context must be text or a list of {role, content}, got 5", "a.jsonl:1: plan must be a list of steps",
		}},
		{"a.jsonl", `{"id":"a","query":"q","expect":{"tools":{"includes":["a"],"sequence":["a"]},"judge":" ","max_steps":"3","degraded":1,"json_schema":{"$ref":"http://x/y"}}}`, []string{
			"a.jsonl:1: expect.tools: want a list, or either includes or sequence", "a.jsonl:1: expect.json_schema: ",
			"a.jsonl:1: expect.max_steps must be a whole number, got \"3\"", "a.jsonl:1: expect.degraded must be true or false, got 1",
			"a.jsonl:1: expect.judge must say what a good answer is",
		}},
		{"a.json", "[\n{\"id\":\"a\",\"query\":\"q\"},\n{\"id\":\"a\",\"query\":\"q\"}\n]", []string{`a.json:3: id "a" is already used by the case in line 2`}},
		{"a.json", "[\n{\"id\":\"a\",\n\"query\":\"q\",,}]", []string{"a.json:3: invalid YAML: "}},
		{"a.json", "[{\"id\":\"a\",\"query\":\"q\"}", []string{"a.json:1: invalid YAML: "}},
		{"a.json", "[{\"id\":\"a\",\"query\":\"q\"}]\nx", []string{"a.json:2: invalid YAML: "}},
		{"a.csv", "id,query,colour\na,b,c\n", []string{`a.csv:1: unknown column "colour"; known: id, query`}},
		{"a.csv", "id,query\na,\"x\ny\"\nb,c,d\n", []string{"a.csv:4: has 3 columns, and the first row has 2"}},
		{"a.csv", "id,query,plan\na,b,{\n", []string{"a.csv:2: plan: want JSON"}},
		{"a.csv", "id,query,expect.tools\na,b,{t}\n", []string{"a.csv:2: expect.tools: want JSON, or a list of tools"}},
		{"a.csv", "id,query\na,\"b\n", []string{"a.csv:2: invalid CSV: extraneous or missing"}},
		{"a.yaml", "- id: a\n  query: q\n- id: a\n  query: r\n", []string{`a.yaml:3: id "a" is already used by the case in line 1`}},
		{"a.yaml", "id: a\n", []string{"a.yaml:1: want a list of cases"}},
		{"a.yaml", "- id: a\n  query: [\n", []string{"invalid YAML: "}},
		{"a.yaml", "", []string{"a.yaml: has no cases"}},
		{"a.yaml", "- id: a\n  plan: " + strings.Repeat("[", 100_000), []string{"a.yaml:2: nests deeper than 1000"}},
		{"a.yaml", strings.Repeat("- [ # x\n", 100_000), []string{"a.yaml:1000: nests deeper than 1000"}},
		{"a.yaml", strings.Repeat("- {a:\n\n", 100_000), []string{"nests deeper than 1000"}},
		{"a.yaml", strings.Repeat("- ", 100_000), []string{"a.yaml:1: nests deeper than 1000"}},
		{"a.yaml", "- id: a\n  query: &q q\n- id: b\n  query: *q\n", []string{"a.yaml:4: aliases are not supported; write the value itself"}},
	} {
		_, problems := load(t, row.name, row.text)
		if len(problems) != len(row.want) {
			t.Errorf("%s: got %q, want %d lines", row.text, problems, len(row.want))
			continue
		}
		for i, want := range row.want {
			if !strings.Contains(problems[i], want) {
				t.Errorf("%s: got %q, want %q in it", row.text, problems[i], want)
			}
		}
	}
}

func TestMistakesAreBounded(t *testing.T) {
	_, problems := load(t, "a.jsonl", strings.Repeat("{}\n", 100))
	if len(problems) != 51 || problems[50] != "a.jsonl: 150 more mistakes" {
		t.Errorf("got %d lines, the last %q", len(problems), problems[len(problems)-1])
	}
}

// Columns of JSON objects and those of their members go together.
func TestCSVObjects(t *testing.T) {
	for _, text := range []string{
		"id,query,vars,vars.b,expect,expect.degraded\na,${a} ${b},\"{\"\"a\"\":1}\",2,\"{\"\"max_steps\"\":3}\",true\n",
		"id,query,vars.b,vars,expect.degraded,expect\na,${a} ${b},2,\"{\"\"a\"\":1}\",true,\"{\"\"max_steps\"\":3}\"\n",
	} {
		all, problems := load(t, "a.csv", text)
		if len(problems) > 0 || all[0].Query != "1 2" || all[0].Expect.MaxSteps == nil || all[0].Expect.Degraded == nil {
			t.Errorf("%s: got %+v, %q", text, all, problems)
		}
	}
}

func TestFilter(t *testing.T) {
	all, _ := load(t, "a.jsonl", `{"id":"a1","query":"q","tags":["x"]}`+"\n"+`{"id":"b2","query":"q","expect":{"unmet":true}}`)
	for expression, want := range map[string]int{`"x" in tags`: 1, `expect`: 1, `id startsWith "b"`: 1, `true`: 2, `plan`: 0} {
		kept, err := cases.Filter(t.Context(), all, expression)
		if err != nil || len(kept) != want {
			t.Errorf("%s: got %d cases and %v, want %d", expression, len(kept), err, want)
		}
	}
	for _, expression := range []string{"id", "colour == 1", "(", "all(1..100000000, {# > 0})"} {
		if _, err := cases.Filter(t.Context(), all, expression); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got error %v, want one line", expression, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("a.jsonl", []byte(`{"id":"a","query":"q"}`))
	f.Add("a.csv", []byte("id,query\na,b\n"))
	f.Add("a.csv", []byte("id,query\n\"000"))
	f.Add("a.yaml", []byte("- id: a\n  query: q\n"))
	f.Add("a.json", []byte(`[{"id":"a","query":"q"}]`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		path := filepath.Join(t.TempDir(), "cases"+filepath.Ext(filepath.Base(name)))
		if strings.ContainsAny(path, "\x00") || os.WriteFile(path, text, 0o600) != nil {
			t.Skip()
		}
		all, err := cases.Load(path, nil)
		if err == nil && len(all) == 0 {
			t.Error("got neither cases nor an error")
		}
	})
}
