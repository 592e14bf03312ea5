package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// graphs is a set of tasks with known graphs.
type graphs struct {
	file  string // beside which catalogs are
	tasks []task
}

// publicGraphs reads the files that the pattern EVAL_GRAPHS names.
func publicGraphs(t *testing.T) []graphs {
	t.Helper()
	files, err := filepath.Glob(os.Getenv("EVAL_GRAPHS"))
	if err != nil {
		t.Fatal(err)
	}
	var all []graphs
	for _, file := range files {
		tasks, err := readLines[task](file)
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks[0].Nodes) > 0 {
			all = append(all, graphs{file, tasks})
		}
	}
	return all
}

// allGraphs are generated graphs and the public ones.
func allGraphs(t *testing.T) []graphs {
	t.Helper()
	all := append([]graphs{{write(t, "generated.jsonl", ""), generatedGraphs()}}, publicGraphs(t)...)
	for _, g := range all {
		for i := range g.tasks {
			withQuestion(&g.tasks[i])
		}
	}
	return all
}

// withQuestion gives a task without question or catalog its own.
func withQuestion(t *task) {
	if t.Query == "" {
		t.Query = "Run the graph " + t.ID + " as you know it."
	}
	if t.Catalog != "" || len(t.Tools) > 0 {
		return
	}
	inputs := map[string]map[string]any{}
	for _, n := range t.Nodes {
		_, name, _ := strings.Cut(n.Tool, "::")
		if inputs[name] == nil {
			inputs[name] = map[string]any{}
		}
		var arguments map[string]any
		_ = json.Unmarshal(n.Arguments, &arguments)
		for a := range arguments {
			inputs[name][a] = map[string]any{}
		}
	}
	for name, properties := range inputs {
		schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties})
		t.Tools = append(t.Tools, Tool{Server: "mock", Name: name, InputSchema: schema, Outputs: []string{"out"}})
	}
}

// shops are the tools of the generated graphs. Odd ones write.
var shops = []Tool{
	{Name: "get_order", InputSchema: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"},"name":{"type":"string"}},"required":["number"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"}}}}}}`)},
	{Name: "send_note", InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"number":{"type":"integer"},"kind":{"enum":["note","bill"]}},"required":["name"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}}}`)},
	{Name: "find_item", InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"number":{"type":"integer"}},"required":["name","number"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}}}`)},
	{Name: "delete_item", InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"number":{"type":"integer"}},"required":["name"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}}}`)},
}

// generatedGraphs makes layered graphs of 1 to 50 nodes, the same ones every time.
func generatedGraphs() []task {
	r := rand.New(rand.NewPCG(1, 2))
	var all []task
	for g := range 40 {
		t := task{ID: fmt.Sprint("gen-", g), Query: fmt.Sprintf("Work through order %d of the generated kind.", 1000+g), Tools: shops}
		n := 1 + g*g/64 + 25*(g/39) // the last one has 50
		for i := range n {
			tool := shops[r.IntN(len(shops))].Name
			arguments := map[string]any{"name": fmt.Sprintf("name %d, $%d", i, i), "number": i}
			var needs []string
			if i > 0 && r.IntN(4) > 0 {
				from := fmt.Sprint("s", 1+r.IntN(i))
				arguments["name"], needs = "$"+from+".name", append(needs, from)
				if from = fmt.Sprint("s", 1+r.IntN(i)); r.IntN(2) == 0 {
					arguments["number"] = "$" + from + ".count"
					if !slices.Contains(needs, from) {
						needs = append(needs, from)
					}
				}
			}
			raw, _ := json.Marshal(arguments)
			t.Nodes = append(t.Nodes, node{ID: fmt.Sprint("s", i+1), Tool: "shop::" + tool, Arguments: raw, DependsOn: needs})
		}
		all = append(all, t)
	}
	return all
}

// gold is the right plan of a task.
func gold(t task) []llmtest.GoldStep {
	var steps []llmtest.GoldStep
	for _, n := range t.Nodes {
		_, name, _ := strings.Cut(n.Tool, "::")
		step := llmtest.GoldStep{ID: n.ID, Tool: name, Arguments: n.Arguments}
		if step.Arguments == nil {
			step.Arguments = json.RawMessage(`{}`)
		}
		refers := plan.References(step.Arguments, func(string) bool { return true })
		for _, id := range n.DependsOn {
			if !slices.Contains(refers, id) {
				step.After = append(step.After, id)
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// wantGraph fails unless the plan is the known graph, with its arguments.
func wantGraph(t *testing.T, p plan.Plan, want task) {
	t.Helper()
	got := graphOf(p)
	same := len(got) == len(want.Nodes)
	for i := 0; same && i < len(got); i++ {
		a, b := got[i], want.Nodes[i]
		needs, depends := slices.Sorted(slices.Values(a.DependsOn)), slices.Sorted(slices.Values(b.DependsOn))
		same = a.ID == b.ID && strings.HasSuffix(b.Tool, "::"+a.Tool) && slices.Equal(needs, depends) && compact(a.Arguments) == compact(b.Arguments)
	}
	if !same {
		t.Errorf("%s: got %.200s, want %.200s", want.ID, fmt.Sprint(got), fmt.Sprint(want.Nodes))
	}
}

// compact is a JSON object on one line; none is empty.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "{}"
	}
	return b.String()
}

// inconsistent reports whether a node refers to another one than it says to depend on.
func inconsistent(t task) bool {
	isNode := func(id string) bool { return slices.ContainsFunc(t.Nodes, func(n node) bool { return n.ID == id }) }
	return slices.ContainsFunc(t.Nodes, func(n node) bool {
		return slices.ContainsFunc(plan.References(n.Arguments, isNode), func(id string) bool { return !slices.Contains(n.DependsOn, id) })
	})
}

// TestOracle: a model that knows the right plans gets all of them through the planner.
func TestOracle(t *testing.T) {
	for _, g := range allGraphs(t) {
		known := map[string][]llmtest.GoldStep{}
		tasks := slices.DeleteFunc(g.tasks, inconsistent)
		for _, task := range tasks {
			known[task.Query] = gold(task)
		}
		t.Logf("%s: %d of %d graphs", filepath.Base(g.file), len(tasks), len(g.tasks))
		for name, seek := range map[string]func(string) string{"plans at once": nil, "searches first": inWords} {
			e := effortOf(t, g.file, tasks, llmtest.Oracle{Plans: known, Seek: seek})
			t.Logf("%s, an oracle that %s: %+v", filepath.Base(g.file), name, e)
		}
	}
}

// effort is what planning the tasks with an oracle takes.
func effortOf(t *testing.T, file string, tasks []task, o llmtest.Oracle) (e effort) {
	t.Helper()
	with := newOracle(t, o)
	err := plans(t.Context(), file, tasks, with.plan, func(task task, p planned) error {
		e.add(with, task.tools())
		wantGraph(t, p.plan, task)
		return p.err
	})
	if err != nil {
		t.Fatal(err)
	}
	e.mean()
	return e
}

// inWords is the name of a tool in words.
func inWords(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '_' || r == '-' || r == '.':
			r = ' '
		case unicode.IsUpper(r):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// TestOracleSearches: tools that the first prompt has no room for are there once the model has searched for them.
func TestOracleSearches(t *testing.T) {
	tools := slices.Clone(shops)
	for i := range 900 {
		tools = append(tools, Tool{Server: "other", Name: fmt.Sprintf("get_chart_of_all_the_numbers_%d", i), Description: "Charts the order of the kind.", InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	one := task{ID: "a", Query: "Chart the order of the kind.", Tools: tools, Nodes: []node{{ID: "s1", Tool: "shop::send_note", Arguments: json.RawMessage(`{"name":"x"}`)}}}
	plans := map[string][]llmtest.GoldStep{one.Query: gold(one)}
	first := effortOf(t, "", []task{one}, llmtest.Oracle{Plans: plans})
	then := effortOf(t, "", []task{one}, llmtest.Oracle{Plans: plans, Seek: inWords})
	if first.First != 0 || first.End != 0 || first.Turns != 1 || then.First != 0 || then.End != 1 || then.Turns != 2 || then.Input <= first.Input {
		t.Errorf("got %+v at once and %+v with a search, want the tool visible after the search alone", first, then)
	}
}
