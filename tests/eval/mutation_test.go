package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/tests/toolset"
)

// graphs is a set of tasks with known graphs.
type graphs struct {
	file  string // beside which catalogs are
	tasks []task
}

// publicGraphs reads the files that the pattern EVAL_GRAPHS names. It leaves out catalogs and questions without graphs.
func publicGraphs(t *testing.T) []graphs {
	t.Helper()
	files, err := filepath.Glob(os.Getenv("EVAL_GRAPHS"))
	if err != nil {
		t.Fatal(err)
	}
	var all []graphs
	for _, file := range files {
		lines, err := readLines[struct {
			Nodes []json.RawMessage `json:"nodes"`
		}](file)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines[0].Nodes) == 0 {
			continue
		}
		tasks, err := readLines[task](file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, graphs{file, tasks})
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

// mutant is a right plan with one mistake.
type mutant struct {
	steps    []llmtest.GoldStep
	at       string // the step that must not run
	failing  string // a step that answers with the text of an error, though it says that it succeeded
	declared bool   // the mistake shows in the plan and the schemas alone
}

// mutation makes a mistake in a step of a plan; false where it cannot be made there.
type mutation struct {
	name string
	make func(steps []llmtest.GoldStep, i int, tools toolset.List) (mutant, bool)
}

// argument changes the first argument of a step that is of a kind.
func argument(s *llmtest.GoldStep, is func(name string, v any) bool, change func(name string, v any) (string, any)) bool {
	var all map[string]any
	if json.Unmarshal(s.Arguments, &all) != nil {
		return false
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !is(name, all[name]) {
			continue
		}
		other, v := change(name, all[name])
		delete(all, name)
		if other != "" {
			all[other] = v
		}
		s.Arguments, _ = json.Marshal(all)
		return true
	}
	return false
}

// refer changes the first argument that is one reference to another step.
func refer(steps []llmtest.GoldStep, i int, change func(step, path string) string) (source string, ok bool) {
	isStep := func(id string) bool {
		return slices.ContainsFunc(steps, func(s llmtest.GoldStep) bool { return s.ID == id })
	}
	ok = argument(&steps[i], func(_ string, v any) bool {
		text, _ := v.(string)
		step, path, _ := strings.Cut(strings.TrimPrefix(text, "$"), ".")
		return strings.HasPrefix(text, "$") && isStep(step) && path != ""
	}, func(name string, v any) (string, any) {
		step, path, _ := strings.Cut(strings.TrimPrefix(v.(string), "$"), ".")
		source = step
		return name, change(step, path)
	})
	return source, ok
}

func wrongReference(name string, change func(step, path string) string) mutation {
	return mutation{name, func(steps []llmtest.GoldStep, i int, _ toolset.List) (mutant, bool) {
		_, ok := refer(steps, i, change)
		return mutant{steps: steps, at: steps[i].ID, declared: true}, ok
	}}
}

func inputOf(tools toolset.List, s llmtest.GoldStep) *schema.Schema {
	tool, unknown := tools.Lookup(s.Tool)
	read, err := schema.Read(tool.InputSchema)
	if unknown != nil || err != nil {
		return &schema.Schema{}
	}
	return read
}

// mutations are the ten ways in which plans go wrong.
func mutations() []mutation {
	return []mutation{
		{"unknown tool", func(steps []llmtest.GoldStep, i int, _ toolset.List) (mutant, bool) {
			steps[i].Tool += "_now"
			return mutant{steps: steps, at: steps[i].ID, declared: true}, true
		}},
		{"wrong or missing argument", func(steps []llmtest.GoldStep, i int, tools toolset.List) (mutant, bool) {
			input := inputOf(tools, steps[i])
			ok := argument(&steps[i], func(name string, _ any) bool { return slices.Contains(input.Required, name) }, func(name string, v any) (string, any) {
				if i%2 == 0 {
					return "", nil
				}
				return "the_" + name, v
			})
			return mutant{steps: steps, at: steps[i].ID, declared: true}, ok
		}},
		{"wrong type", func(steps []llmtest.GoldStep, i int, tools toolset.List) (mutant, bool) {
			input := inputOf(tools, steps[i])
			ok := argument(&steps[i], func(name string, v any) bool {
				text, _ := v.(string)
				f := input.Field(name)
				return !strings.HasPrefix(text, "$") && f != nil && len(f.Types) > 0 && !slices.Contains(f.Types, "object")
			}, func(name string, v any) (string, any) { return name, map[string]any{"value": v} })
			return mutant{steps: steps, at: steps[i].ID, declared: true}, ok
		}},
		wrongReference("wrong reference", func(_, path string) string { return "$s99." + path }),
		{"cycle", func(steps []llmtest.GoldStep, i int, _ toolset.List) (mutant, bool) {
			source, ok := refer(steps, i, func(step, path string) string { return "$" + step + "." + path })
			for k := range steps {
				if steps[k].ID == source {
					steps[k].After = append(steps[k].After, steps[i].ID)
				}
			}
			return mutant{steps: steps, at: steps[i].ID, declared: true}, ok
		}},
		wrongReference("wrong path into a result", func(step, path string) string { return "$" + step + "." + path + "_of_it" }),
		wrongReference("wrapped result", func(step, path string) string { return "$" + step + ".structuredContent." + path }),
		{"error text used as a value", func(steps []llmtest.GoldStep, i int, _ toolset.List) (mutant, bool) {
			m := mutant{steps: steps, at: steps[i].ID, declared: i%2 == 0}
			source, ok := refer(steps, i, func(step, path string) string {
				if m.declared {
					return "$" + step + ".error"
				}
				return "$" + step + "." + path
			})
			if !m.declared {
				m.failing = source
			}
			return m, ok
		}},
		{"wrong list in each", func(steps []llmtest.GoldStep, i int, _ toolset.List) (mutant, bool) {
			source, ok := refer(steps, i, func(_, path string) string { return "$item." + path })
			steps[i].Each = "$" + source
			return mutant{steps: steps, at: steps[i].ID, declared: true}, ok
		}},
		{"duplicated write", func(steps []llmtest.GoldStep, i int, tools toolset.List) (mutant, bool) {
			tool, _ := tools.Lookup(steps[i].Tool)
			twin := steps[i]
			twin.ID += "-again"
			return mutant{steps: append(steps, twin), at: twin.ID, declared: true}, tool.Cumulative()
		}},
	}
}

// checked is a plan as the planner takes it over.
func checked(t *testing.T, v *plan.Validator, steps []llmtest.GoldStep, tools toolset.List) (plan.Plan, []plan.Problem) {
	t.Helper()
	p, err := plan.Parse(llmtest.WritePlan(steps))
	if err != nil {
		t.Fatal(err)
	}
	problems := plan.Check(&p, v, tools.Lookup, nil)
	return p, append(problems, plan.RepeatedWrites(&p, tools.Lookup)...)
}

// called runs a plan and returns the steps whose tools were called.
func called(ctx context.Context, p plan.Plan, problems []plan.Problem, m mutant, tools toolset.List) (ran []string) {
	p.Steps = slices.Clone(p.Steps)
	of := map[string]plan.Tool{} // the tools by their steps
	for i, s := range p.Steps {
		of[s.ID], _ = tools.Lookup(s.Tool)
		p.Steps[i].Tool = s.ID
	}
	round := execution.New(execution.Options{Servers: examples{of, m.failing}}).Begin(ctx, execution.Request{})
	defer round.Stop()
	for _, o := range round.Execute(ctx, execution.Work{Plan: p, Problems: problems, Lookup: func(id string) (plan.Tool, *plan.Error) {
		t := plan.Tool{Name: id, Tool: id}
		if id == m.at {
			t.InputSchema = of[id].InputSchema
		}
		return t, nil
	}}) {
		if o.Attempts > 0 {
			ran = append(ran, o.Step.ID)
		}
	}
	return ran
}

// examples returns the example of a step's tool, or the text of an error.
type examples struct {
	tools   map[string]plan.Tool
	failing string
}

// Call implements execution.ToolCaller.
func (e examples) Call(_ context.Context, r *downstream.Request) (link.Reply, error) {
	*r.Attempts = 1
	value := example(e.tools[r.Tool])
	if r.Tool == e.failing {
		value = json.RawMessage(`"Error: not found"`)
	}
	return link.Reply{Result: []byte(`{"structuredContent":` + string(value) + `}`)}, nil
}

// after returns a step and all that depend on it.
func after(p plan.Plan, id string) []string {
	isStep := func(id string) bool { return p.Step(id) != nil }
	all := []string{id}
	for grown := true; grown; {
		grown = false
		for _, s := range p.Steps {
			needed := slices.ContainsFunc(s.Needs(isStep), func(n string) bool { return slices.Contains(all, n) })
			if needed && !slices.Contains(all, s.ID) {
				all, grown = append(all, s.ID), true
			}
		}
	}
	return all
}

// TestMutations makes each mistake in every step of every known plan of at most 12 steps where it can be made. No call
// may follow from it; nine in ten are found before any call; and no right plan is refused.
func TestMutations(t *testing.T) {
	validator := plan.NewValidator()
	for _, g := range allGraphs(t) {
		type count struct{ made, stopped, before int }
		counts := map[string]*count{}
		var all count
		aside := 0
		var tools toolset.List
		look := func(_ context.Context, _ string, c catalog) (plan.Plan, error) {
			tools = c.List
			return plan.Plan{}, nil
		}
		err := plans(t.Context(), g.file, g.tasks, look, func(task task, _ planned) error {
			if _, problems := checked(t, validator, gold(task), tools); len(problems) > 0 {
				t.Logf("%s is set aside: step %s: %s", task.ID, problems[0].Step, problems[0].Error.Message)
				if aside++; strings.HasPrefix(task.ID, "gen-") || strings.HasPrefix(task.ID, "syn-") {
					t.Errorf("%s: a right plan is refused: %v", task.ID, problems)
				}
				return nil
			}
			if len(task.Nodes) > 12 {
				return nil
			}
			for _, mutation := range mutations() {
				for i := range task.Nodes {
					m, ok := mutation.make(gold(task), i, tools)
					if !ok {
						continue
					}
					c := counts[mutation.name]
					if c == nil {
						c = &count{}
						counts[mutation.name] = c
					}
					p, problems := checked(t, validator, m.steps, tools)
					ran := called(t.Context(), p, problems, m, tools)
					c.made++
					if len(problems) > 0 {
						c.before++
					} else if m.declared {
						t.Logf("%s: %s in %s is not found before the plan runs", task.ID, mutation.name, m.at)
					}
					if !slices.ContainsFunc(after(p, m.at), func(id string) bool { return slices.Contains(ran, id) }) {
						c.stopped++
					} else {
						t.Errorf("%s: %s in %s: was called all the same; ran %v", task.ID, mutation.name, m.at, ran)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var table strings.Builder
		for _, mutation := range mutations() {
			c := counts[mutation.name]
			if c == nil {
				continue
			}
			all.made, all.stopped, all.before = all.made+c.made, all.stopped+c.stopped, all.before+c.before
			fmt.Fprintf(&table, "\n%-28s %6d %6d %6d", mutation.name, c.made, c.stopped, c.before)
		}
		t.Logf("%s: %d plans, %d set aside; mistakes made, stopped, found before any call:%s\n%-28s %6d %6d %6d", filepath.Base(g.file),
			len(g.tasks), aside, table.String(), "all", all.made, all.stopped, all.before)
		if all.stopped < all.made || 10*all.before < 9*all.made {
			t.Errorf("%s: got %d of %d mistakes stopped, %d before any call, want all, and nine in ten", filepath.Base(g.file), all.stopped, all.made, all.before)
		}
	}
}
