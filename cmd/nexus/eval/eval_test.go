package eval

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

const catalog = `{"id":"s::get_weather","server":"s","name":"get_weather","description":"Get the weather of a city.","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"outputs":["temperature"]}
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

// lines decodes what was written for each id.
func lines(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for line := range strings.Lines(string(raw)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		out[v["id"].(string)] = v
	}
	return out
}

func TestRetrieval(t *testing.T) {
	queries := write(t, "q.jsonl", `{"id":"a","query":"what is the weather","relevant":[["s::get_weather"]]}
{"id":"b","query":"mail the temperature","relevant":[["m::send_mail"],["s::convert_temperature","s::none"]]}
{"id":"c","query":"xyzzy","relevant":[]}
`)
	out := filepath.Join(t.TempDir(), "p.jsonl")
	var last [2]int
	sum, err := Retrieval(t.Context(), RetrievalOptions{
		Catalog: write(t, "c.jsonl", catalog), Queries: queries, Out: out, Progress: func(done, total int) { last = [2]int{done, total} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tools != 3 || sum.Queries != 3 || sum.Judged != 2 || sum.Recall10 != 1 || sum.Hit1 != 1 || sum.Complete10 != 1 || sum.NDCG10 < 0.8 ||
		sum.Visible != 1 || sum.Named != 1 {
		t.Errorf("summary: got %+v", sum)
	}
	if last != [2]int{3, 3} {
		t.Errorf("progress: got %v, want 3 of 3", last)
	}
	got := lines(t, out)
	if r := got["a"]["ranked"].([]any); r[0] != "s::get_weather" {
		t.Errorf("ranked: got %v", r)
	}
	if r := got["c"]["ranked"].([]any); len(r) != 0 {
		t.Errorf("unknown words: got %v, want nothing", r)
	}
}

func TestRetrievalByMeaning(t *testing.T) {
	queries := write(t, "q.jsonl", `{"id":"a","query":"mail the weather","relevant":[["s::get_weather"]]}`+"\n")
	m := llmtest.New(t)
	o := RetrievalOptions{Catalog: write(t, "c.jsonl", catalog), Queries: queries, Out: filepath.Join(t.TempDir(), "p.jsonl"),
		Embedder: llm.NewEmbeddings(llm.EmbeddingsConfig{BaseURL: m.BaseURL, Model: "stub"}, nil)}
	first := func() string { return lines(t, o.Out)["a"]["ranked"].([]any)[0].(string) }
	for _, word := range []string{"send_mail", "get_weather"} {
		m.Reset()
		m.Answer(llmtest.Reply{Embed: func(text string) []float32 {
			if strings.Contains(text, word) || strings.HasPrefix(text, "mail the") {
				return []float32{1, 0}
			}
			return []float32{0, 1}
		}})
		if _, err := Retrieval(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := first(); !strings.HasSuffix(got, word) {
			t.Errorf("the model likes %s: got %s first", word, got)
		}
	}
	m.Reset()
	if _, err := Retrieval(t.Context(), o); err == nil || !strings.Contains(err.Error(), "question a") {
		t.Errorf("a model that fails: got %v, want an error that names the question", err)
	}
}

func TestPlanning(t *testing.T) {
	tasks := write(t, "t.jsonl", `{"id":"a","query":"What is the weather in Paris?","catalog":"c.jsonl","expected":[{"name":"get_weather"}]}
{"id":"b","query":"Sing me a song","catalog":"c.jsonl","expected":[]}
{"id":"c","query":"What is the weather in Rome?","tools":[{"name":"get.weather","description":"Get the weather of a city.","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}],"expected":[{"name":"get.weather"}]}
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(tasks), "c.jsonl"), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "p.jsonl")
	sum, err := Planning(t.Context(), PlanningOptions{Tasks: tasks, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tasks != 3 || sum.Expecting != 2 || sum.ToolChoice != 1 || sum.ExpectNone != 1 || sum.FalsePositive != 0 || sum.Abstained != 1 {
		t.Errorf("summary: got %+v", sum)
	}
	call := lines(t, out)["a"]["calls"].([]any)[0].(map[string]any)
	if call["name"] != "get_weather" || call["arguments"].(map[string]any)["city"] != "Paris" {
		t.Errorf("call: got %v", call)
	}
}

func TestPlanningCountsFailures(t *testing.T) {
	tasks := write(t, "t.jsonl", `{"id":"a","query":"q","tools":[],"expected":[{"name":"x"}]}`+"\n")
	sum, err := Planning(t.Context(), PlanningOptions{Tasks: tasks, Plan: func(context.Context, string, rules.Catalog) (plan.Plan, error) {
		return plan.Plan{}, errors.New("no model")
	}})
	if err != nil || sum.Failed != 1 || sum.ToolChoice != 0 {
		t.Errorf("got %+v, %v; want one failure", sum, err)
	}
}

func TestPlanningWithAModel(t *testing.T) {
	server := llmtest.New(t)
	server.When(llmtest.Contains("Paris"), llmtest.Reply{Text: `[{"tool":"get_weather","arguments":{"city":"Paris"}}]`})
	server.Answer(llmtest.Reply{Text: "no plan here"})
	tools := `"tools":[` + strings.Split(catalog, "\n")[0] + `]`
	tasks := write(t, "t.jsonl", `{"id":"a","query":"What is the weather in Paris?",`+tools+`,"expected":[{"name":"get_weather"}]}
{"id":"b","query":"What is the weather in Rome?",`+tools+`,"expected":[{"name":"get_weather"}]}
{"id":"c","query":"xyzzy",`+tools+`,"expected":[]}
`)
	model := llm.New(llm.Config{BaseURL: server.BaseURL, Model: "scripted"}, llm.Options{})
	sum, err := Planning(t.Context(), PlanningOptions{Tasks: tasks, Model: NewModel(model, planner.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Calls != 1 || sum.Failed != 2 || sum.ToolChoice != 0.5 || sum.FalsePositive != 0 {
		t.Errorf("got %+v, want one right call and two failures", sum)
	}
}

func TestDAG(t *testing.T) {
	tasks := write(t, "t.jsonl", `{"id":"a","query":"Get the weather in Paris, then convert the temperature to kelvin.","catalog":"c.jsonl","nodes":[{"id":"s1","tool":"s::get_weather","depends_on":[],"latency_ms":20},{"id":"s2","tool":"s::convert_temperature","depends_on":["s1"],"latency_ms":20}],"critical_path_ms":40,"sequential_ms":40}
{"id":"b","query":"","nodes":[{"id":"s1","tool":"m::a","depends_on":[],"latency_ms":30},{"id":"s2","tool":"m::b","depends_on":[],"latency_ms":30}],"critical_path_ms":30,"sequential_ms":60}
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(tasks), "c.jsonl"), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "p.jsonl")
	sum, err := DAG(t.Context(), DAGOptions{Tasks: tasks, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tasks != 2 || sum.Planned != 1 || sum.Timed != 2 || sum.NodeF1 != 1 || sum.EdgeF1 != 1 || sum.Critical < 1 {
		t.Errorf("summary: got %+v", sum)
	}
	got := lines(t, out)
	if _, ok := got["b"]["nodes"]; ok {
		t.Errorf("a graph without a question has predicted nodes: %v", got["b"])
	}
	if wall := got["a"]["wall_ms"].(float64); wall < 40 {
		t.Errorf("wall time of two steps of 20 ms, one after the other: got %v ms", wall)
	}
	if wall := got["b"]["wall_ms"].(float64); wall < 30 {
		t.Errorf("wall time of two steps of 30 ms side by side: got %v ms", wall)
	}
}

// TestDAGInVirtualTime: where nothing but the steps takes time, every graph takes its critical path. The variable
// EVAL_GRAPHS is a pattern of other files with graphs.
func TestDAGInVirtualTime(t *testing.T) {
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
			sum, err := DAG(t.Context(), DAGOptions{Tasks: file})
			if err != nil {
				t.Fatal(err)
			}
			if sum.Worst > 1.000001 || sum.Critical > 1.000001 {
				t.Errorf("%s: got %.4f of the critical path in the mean and %.4f at worst, want 1", filepath.Base(file), sum.Critical, sum.Worst)
			}
			t.Logf("%s: %d graphs, worst %.4f", filepath.Base(file), sum.Timed, sum.Worst)
		})
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	good := write(t, "c.jsonl", catalog)
	bad := write(t, "bad.jsonl", "{}\n{")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tasks := write(t, "t.jsonl", `{"id":"a","query":"q","catalog":"missing.jsonl"}`+"\n")
	for name, tc := range map[string]struct {
		run  func() error
		want string
	}{
		"no catalog": {func() error {
			_, err := Retrieval(t.Context(), RetrievalOptions{Catalog: "none", Queries: good})
			return err
		}, "none"},
		"bad line": {func() error {
			_, err := Retrieval(t.Context(), RetrievalOptions{Catalog: good, Queries: bad})
			return err
		}, "line 2"},
		"no output": {func() error {
			_, err := Retrieval(t.Context(), RetrievalOptions{Catalog: good, Queries: good, Out: "/none/p"})
			return err
		}, "/none/p"},
		"cancelled": {func() error {
			_, err := Retrieval(cancelled, RetrievalOptions{Catalog: good, Queries: good})
			return err
		}, "cancel"},
		"task catalog": {func() error { _, err := Planning(t.Context(), PlanningOptions{Tasks: tasks}); return err }, "missing.jsonl"},
		"graph tasks":  {func() error { _, err := DAG(t.Context(), DAGOptions{Tasks: bad}); return err }, "line 2"},
	} {
		if err := tc.run(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, tc.want)
		}
	}
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	if err := WriteTable(&b, DAGSummary{Tasks: 3, NodeF1: 0.25}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tasks                3\n", "node_f1              0.250\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("table misses %q:\n%s", want, b.String())
		}
	}
}
