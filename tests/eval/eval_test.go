package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

const weatherTool = `{"id":"s::get_weather","server":"s","name":"get_weather","description":"Get the weather of a city.","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"outputs":["temperature"]}`

const toolsFile = weatherTool + `
{"id":"s::convert_temperature","server":"s","name":"convert_temperature","description":"Convert a temperature to another unit.","inputSchema":{"type":"object","properties":{"temperature":{"type":"number"},"unit":{"type":"string","enum":["kelvin","celsius"]}},"required":["temperature","unit"]}}
{"id":"m::send_mail","server":"m","name":"send_mail","description":"Send a mail.","inputSchema":{"type":"object","properties":{}}}
`

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// evaluate runs the command line and returns the figures and what it wrote to standard error.
func evaluate(t *testing.T, wantCode int, args ...string) (figures map[string]float64, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	if code := run(t.Context(), append(args, "--json"), &out, &errs); code != wantCode {
		t.Fatalf("%v: got exit code %d, want %d: %s", args, code, wantCode, errs.String())
	}
	if out.Len() > 0 {
		if err := json.Unmarshal([]byte(out.String()), &figures); err != nil {
			t.Fatal(err)
		}
	}
	return figures, errs.String()
}

// wantFigures compares the named figures.
func wantFigures(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok || math.Abs(g-w) > 1e-9 {
			t.Errorf("%s: got %v, want %v", name, g, w)
		}
	}
}

// lines decodes predictions by their ids.
func lines(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	all, err := readLines[map[string]any](path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, v := range all {
		out[v["id"].(string)] = v
	}
	return out
}

func TestRetrieval(t *testing.T) {
	out := filepath.Join(t.TempDir(), "p.jsonl")
	got, stderr := evaluate(t, 0, "retrieval", "--out", out, "--catalog", write(t, "c.jsonl", toolsFile), "--queries", write(t, "q.jsonl",
		`{"id":"a","query":"what is the weather","relevant":[["s::get_weather"]]}
{"id":"b","query":"mail the temperature","relevant":[["m::send_mail"],["s::convert_temperature","s::none"]]}
{"id":"c","query":"xyzzy","relevant":[]}
`))
	wantFigures(t, got, map[string]float64{"tools": 3, "queries": 3, "judged": 2, "recall@10": 1, "hit@1": 1, "complete@10": 1,
		"visible@budget": 1, "named@budget": 1})
	if !strings.HasSuffix(stderr, "100% 3 of 3\n") {
		t.Errorf("progress: got %q, want 3 of 3 at the end", stderr)
	}
	predicted := lines(t, out)
	if r := predicted["a"]["ranked"].([]any); r[0] != "s::get_weather" {
		t.Errorf("ranked: got %v", r)
	}
	if r := predicted["c"]["ranked"].([]any); len(r) != 0 {
		t.Errorf("unknown words: got %v, want nothing", r)
	}
}

func TestRetrievalByMeaning(t *testing.T) {
	m := llmtest.New(t)
	out := filepath.Join(t.TempDir(), "p.jsonl")
	args := []string{"retrieval", "--embeddings", "--out", out, "--catalog", write(t, "c.jsonl", toolsFile),
		"--queries", write(t, "q.jsonl", `{"id":"a","query":"mail the weather","relevant":[["s::get_weather"]]}`),
		"--config", write(t, "model.yaml", `llm: {embeddings: {base_url: "`+m.BaseURL+`", model: stub}}`)}
	for _, word := range []string{"send_mail", "get_weather"} {
		m.Reset()
		m.Answer(llmtest.Reply{Embed: func(text string) []float32 {
			if strings.Contains(text, word) || strings.HasPrefix(text, "mail the") {
				return []float32{1, 0}
			}
			return []float32{0, 1}
		}})
		evaluate(t, 0, args...)
		if got := lines(t, out)["a"]["ranked"].([]any)[0].(string); !strings.HasSuffix(got, word) {
			t.Errorf("the model likes %s: got %s first", word, got)
		}
	}
	m.Reset()
	if _, stderr := evaluate(t, 1, args...); !strings.Contains(stderr, "embedding for question a: ") {
		t.Errorf("a model that fails: got %s, want an error that names the question", stderr)
	}
}

// The relevant tools are those that the search puts at certain ranks, so that every figure can be computed by hand.
func TestRetrieval_Figures(t *testing.T) {
	var tools strings.Builder
	for i := range 12 {
		fmt.Fprintf(&tools, `{"id":"s::t%d","server":"s","name":"report_%d","description":"Weather report %s"}`+"\n", i, i, strings.Repeat("of some place ", i))
	}
	catalog := write(t, "c.jsonl", tools.String())
	out := filepath.Join(t.TempDir(), "p.jsonl")
	figures := func(relevance ...string) map[string]float64 {
		var queries strings.Builder
		for i, r := range relevance {
			fmt.Fprintf(&queries, `{"id":"q%d","query":"weather report"%s}`+"\n", i, r)
		}
		got, _ := evaluate(t, 0, "retrieval", "--catalog", catalog, "--queries", write(t, "q.jsonl", queries.String()), "--out", out)
		return got
	}
	wantFigures(t, figures(""), map[string]float64{"judged": 0, "mrr": 0, "ndcg@10": 0, "tools": 12})
	ranked := lines(t, out)["q0"]["ranked"].([]any)
	if len(ranked) != 10 {
		t.Fatalf("got %d tools, want 10", len(ranked))
	}
	at := func(rank int) string { return fmt.Sprintf("%q", ranked[rank-1]) }
	got := figures(
		`,"relevant":[[`+at(3)+`],[`+at(7)+`],["s::none"]]`,
		`,"relevant":[[`+at(1)+`],[`+at(6)+`,`+at(2)+`]],"grades":{`+at(1)+`:1,`+at(6)+`:2,`+at(2)+`:3}`,
		`,"relevant":[[`+at(10)+`],[`+at(5)+`]]`,
		"",
	)
	gain := func(value, rank float64) float64 { return value / math.Log2(rank+1) }
	wantFigures(t, got, map[string]float64{
		"queries": 4, "judged": 3,
		"recall@1":    (0 + 0.5 + 0) / 3,
		"recall@5":    (1.0/3 + 1 + 0.5) / 3,
		"recall@10":   (2.0/3 + 1 + 1) / 3,
		"hit@1":       1.0 / 3,
		"complete@10": 2.0 / 3,
		"mrr":         (1.0/3 + 1 + 1.0/5) / 3,
		"ndcg@10": ((gain(1, 3)+gain(1, 7))/(gain(1, 1)+gain(1, 2)+gain(1, 3)) +
			(gain(1, 1)+gain(3, 2))/(gain(3, 1)+gain(1, 2)) +
			(gain(1, 10)+gain(1, 5))/(gain(1, 1)+gain(1, 2))) / 3,
	})
}

// A catalog is looked for beside the tasks and above.
func TestPlanning(t *testing.T) {
	tasks := write(t, "t.jsonl", `{"id":"a","query":"What is the weather in Paris?","catalog":"c.jsonl","expected":[{"name":"get_weather"}]}
{"id":"b","query":"Sing me a song","catalog":"c.jsonl","expected":[]}
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(tasks)), "c.jsonl"), []byte(toolsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "p.jsonl")
	got, _ := evaluate(t, 0, "planning", "--tasks", tasks, "--out", out)
	wantFigures(t, got, map[string]float64{"tasks": 2, "expecting": 1, "tool_choice": 1, "expect_none": 1, "false_positive": 0, "abstained": 1})
	call := lines(t, out)["a"]["calls"].([]any)[0].(map[string]any)
	if call["name"] != "get_weather" || call["arguments"].(map[string]any)["city"] != "Paris" {
		t.Errorf("call: got %v", call)
	}
}

func TestPlanningWithAModel(t *testing.T) {
	server := llmtest.New(t)
	server.When(llmtest.Contains("Paris"), llmtest.Reply{Text: `[{"tool":"get_weather","arguments":{"city":"Paris"}}]`})
	server.Answer(llmtest.Reply{Text: "no plan here"})
	tasks := write(t, "t.jsonl", `{"id":"a","query":"What is the weather in Paris?","tools":[`+weatherTool+`],"expected":[{"name":"get_weather"}]}
{"id":"b","query":"What is the weather in Rome?","tools":[`+weatherTool+`],"expected":[{"name":"get_weather"}]}
{"id":"c","query":"xyzzy","tools":[`+weatherTool+`],"expected":[]}
`)
	got, stderr := evaluate(t, 3, "planning", "--tasks", tasks, "--model", "--config",
		write(t, "model.yaml", `llm: {planner: {base_url: "`+server.BaseURL+`", model: scripted}}`))
	wantFigures(t, got, map[string]float64{"calls": 1, "failed": 2, "tool_choice": 0.5, "false_positive": 0})
	if !strings.Contains(stderr, "2 of 3 tasks could not be planned") {
		t.Errorf("got %s, want the number of failures", stderr)
	}
}

// A server with most of the tools for a question leaves the model those of others.
func TestPlanningWithAModel_Flood(t *testing.T) {
	server := llmtest.New(t)
	server.Answer(llmtest.Reply{Text: `[{"tool":"get_weather","arguments":{"city":"Paris"}}]`})
	tools := []string{weatherTool}
	for i := range 60 {
		tools = append(tools, fmt.Sprintf(`{"id":"m::%[1]d","server":"m","name":"weather_paris_%[1]d","description":"What is the weather in Paris","inputSchema":{}}`, i))
	}
	tasks := write(t, "t.jsonl", `{"id":"a","query":"What is the weather in Paris?","tools":[`+strings.Join(tools, ",")+`],"expected":[{"name":"get_weather"}]}`)
	got, _ := evaluate(t, 0, "planning", "--tasks", tasks, "--model", "--config", write(t, "model.yaml",
		`{planner: {tool_tokens: 1000}, llm: {planner: {base_url: "`+server.BaseURL+`", model: scripted}}}`))
	wantFigures(t, got, map[string]float64{"calls": 1, "tool_choice": 1, "visible@first": 1})
	if user := server.Requests()[0].Users[0]; !strings.Contains(user, "| get_weather(city: string)") {
		t.Errorf("got\n%s\nwant get_weather in full", user)
	}
}

// TestPlanning_Figures plans in virtual time: question n takes n milliseconds.
func TestPlanning_Figures(t *testing.T) {
	var tasks strings.Builder
	calls := map[string][]string{}
	add := func(expected string, planned ...string) {
		n := len(calls) + 1
		fmt.Fprintf(&tasks, `{"id":"t%d","query":"%d","tools":[]%s}`+"\n", n, n, expected)
		calls[fmt.Sprint(n)] = planned
	}
	add(`,"expected":[{"name":"s::a.b"},{"name":"c"}]`, "c", "a-b") // right, in another order
	add(`,"expected":[{"name":"a"}]`, "a", "a")                     // one too many
	add(`,"expected":[{"name":"a"}]`, "b")                          // wrong
	add(`,"expected":[{"name":"a"}]`)                               // nothing
	add(`,"expected":[]`)                                           // rightly nothing
	add(`,"expected":[]`, "a")                                      // wrongly something
	add("", "a", "b", "c")                                          // not judged
	add(`,"expected":[{"name":"failing"}]`, "failing")              // fails
	for len(calls) < 100 {
		add("", "a")
	}
	c := planning{Tasks: write(t, "t.jsonl", tasks.String())}
	synctest.Test(t, func(t *testing.T) {
		sum, err := c.measure(&env{ctx: t.Context(), stderr: t.Output()}, func(_ context.Context, query string, _ catalog) (p plan.Plan, err error) {
			var n int
			_, _ = fmt.Sscan(query, &n)
			time.Sleep(time.Duration(n) * time.Millisecond)
			for _, name := range calls[query] {
				if name == "failing" {
					return p, errors.New("no plan")
				}
				p.Steps = append(p.Steps, plan.Step{Tool: name})
			}
			return p, nil
		}, nil)
		want := planningSummary{Tasks: 100, Calls: 2 + 2 + 1 + 1 + 3 + 92, Abstained: 3, Failed: 1, Expecting: 5, ToolChoice: 1.0 / 5,
			ExpectNone: 2, FalsePositive: 1.0 / 2, P50: 51, P99: 100}
		if err != nil || sum != want {
			t.Errorf("got %+v, %v, want %+v", sum, err, want)
		}
	})
}

// Of a: the plan has one of two nodes and no edge. The other graphs have no question, no tools or no critical path.
func TestDAG(t *testing.T) {
	out := filepath.Join(t.TempDir(), "p.jsonl")
	got, stderr := evaluate(t, 0, "dag", "--out", out, "--tasks", write(t, "t.jsonl",
		`{"id":"a","query":"What is the weather in Paris?","tools":[`+weatherTool+`],"nodes":[`+
			`{"id":"s1","tool":"s::get_weather","latency_ms":10},{"id":"s2","tool":"m::send_mail","depends_on":["s1"],"latency_ms":20}],`+
			`"critical_path_ms":30,"sequential_ms":30}
{"id":"b","nodes":[{"id":"s1","latency_ms":30},{"id":"s2","latency_ms":30}],"critical_path_ms":30,"sequential_ms":60}
{"id":"c","query":"What is the weather in Rome?","tools":[`+weatherTool+`]}
{"id":"d","query":"Nobody has tools for this"}
{"id":"e","nodes":[{"id":"s1","latency_ms":30}]}
`))
	wantFigures(t, got, map[string]float64{"tasks": 5, "planned": 2, "timed": 2, "exact": 0, "node_f1": 2.0 / 3, "edge_f1": 0})
	if !strings.HasSuffix(stderr, "100% 7 of 7\n") {
		t.Errorf("progress: got %q, want 7 of 7 at the end", stderr)
	}
	predicted := lines(t, out)
	if _, ok := predicted["b"]["nodes"]; ok || predicted["a"]["wall_ms"].(float64) < 30 || len(predicted["c"]["nodes"].([]any)) != 1 {
		t.Errorf("got %v, want nodes where there is a question, and the wall time of both steps", predicted)
	}
}

// Without other load every graph takes its critical path. The variable EVAL_GRAPHS is a pattern of other files with
// graphs.
func TestDAG_VirtualTime(t *testing.T) {
	files := []string{write(t, "t.jsonl", `{"id":"chain","nodes":[{"id":"a","depends_on":[],"latency_ms":5},{"id":"b","depends_on":["a"],"latency_ms":7.5}],"critical_path_ms":12.5,"sequential_ms":12.5}
{"id":"uneven","nodes":[{"id":"a","depends_on":[],"latency_ms":10},{"id":"b","depends_on":[],"latency_ms":1},{"id":"c","depends_on":["b"],"latency_ms":20},{"id":"d","depends_on":["a","b"],"latency_ms":5}],"critical_path_ms":21,"sequential_ms":36}
`)}
	if pattern := os.Getenv("EVAL_GRAPHS"); pattern != "" {
		var err error
		if files, err = filepath.Glob(pattern); err != nil || len(files) == 0 {
			t.Fatalf("got %d files of EVAL_GRAPHS, %v", len(files), err)
		}
	}
	for _, file := range files {
		synctest.Test(t, func(t *testing.T) {
			sum, err := (&dag{Tasks: file}).measure(&env{ctx: t.Context(), stderr: t.Output()}, planByRules(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Worst > 1.000001 || sum.Critical > 1.000001 {
				t.Errorf("%s: got %.4f of the critical path in the mean and %.4f at worst, want 1", filepath.Base(file), sum.Critical, sum.Worst)
			}
			if os.Getenv("EVAL_GRAPHS") == "" && math.Abs(sum.Speedup-48.5/33.5) > 1e-9 {
				t.Errorf("speedup: got %v, want %v", sum.Speedup, 48.5/33.5)
			}
			t.Logf("%s: %d graphs, worst %.4f", filepath.Base(file), sum.Timed, sum.Worst)
		})
	}
}

// Mistakes name what is wrong.
func TestMistakes(t *testing.T) {
	tools, bad := write(t, "c.jsonl", toolsFile), write(t, "bad.jsonl", "{}\n{")
	tasks := write(t, "t.jsonl", `{"id":"a","query":"q","catalog":"missing.jsonl"}`)
	none := write(t, "none.yaml", "log: {level: info}")
	for _, row := range []struct {
		code int
		args string
		want string
	}{
		{2, "retrieval --queries " + tools, "--catalog"},
		{2, "retrieval --catalog none --queries " + tools, "none"},
		{1, "retrieval --catalog " + tools + " --queries " + bad, "bad.jsonl line 2"},
		{1, "retrieval --catalog " + tools + " --queries " + tools + " --out missing/p.jsonl", "creating missing/p.jsonl"},
		{2, "retrieval --embeddings --config " + none + " --catalog " + tools + " --queries " + tools, "llm.embeddings"},
		{2, "planning --tasks " + tasks, "missing.jsonl"},
		{2, "planning --model --config " + none + " --tasks " + tasks, "llm.planner"},
		{1, "dag --tasks " + bad, "bad.jsonl line 2"},
	} {
		if _, stderr := evaluate(t, row.code, strings.Fields(row.args)...); !strings.Contains(stderr, row.want) {
			t.Errorf("%s: got %s, want %q", row.args, stderr, row.want)
		}
	}
}

// Figures without a task that they count are 0, and the table has one line for each.
func TestTable(t *testing.T) {
	var out, errs strings.Builder
	tasks := write(t, "t.jsonl", `{"id":"a","query":"What is the weather?","tools":[]}`)
	if code := run(t.Context(), []string{"planning", "--tasks", tasks}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	for _, want := range []string{"tasks                1\n", "tool_choice          0\n", "p50_ms  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
