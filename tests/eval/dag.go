package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// dag plans every task that has a question and executes every known graph with steps that sleep as long as the graph
// says. It writes {"id","nodes","wall_ms"} lines, without members that a task lacks.
type dag struct {
	figures
	Tasks string `required:"" help:"The graphs, a JSON Lines file." placeholder:"FILE"`
	Model bool   `help:"Plan with the configured model instead of by rules."`
}

// graphsAtOnce is how many graphs are executed at a time.
const graphsAtOnce = 16

// dagSummary has the figures.
type dagSummary struct {
	Tasks    int     `json:"tasks"`
	Planned  int     `json:"planned"` // tasks with a question
	Failed   int     `json:"failed"`  // of these, those whose planning ended in an error
	Exact    int     `json:"exact"`   // of these, those with the tools and dependencies of the known graph
	NodeF1   float64 `json:"node_f1"`
	EdgeF1   float64 `json:"edge_f1"`
	Timed    int     `json:"timed"`              // graphs executed
	Critical float64 `json:"wall/critical_path"` // mean over graphs
	Worst    float64 `json:"worst"`
	Speedup  float64 `json:"speedup"` // over one step at a time
	effort
}

// node is a step of a graph.
type node struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	DependsOn []string        `json:"depends_on"`
	Latency   float64         `json:"latency_ms,omitempty"`
}

// Run implements the command.
func (c *dag) Run(e *env) error {
	with, model, err := planWith(c.Model, c.Config)
	if err != nil {
		return err
	}
	sum, err := c.measure(e, with, model)
	if err != nil {
		return err
	}
	if err := e.print(sum, c.JSON); err != nil {
		return err
	}
	return partly(sum.Failed, sum.Planned)
}

func (c *dag) measure(e *env, with planFunc, model *model) (sum dagSummary, err error) {
	tasks, err := readLines[task](c.Tasks)
	if err != nil {
		return sum, err
	}
	out, err := create(c.Out)
	if err != nil {
		return sum, err
	}
	defer out.Close()
	var asked []task
	for _, t := range tasks {
		if t.Query != "" && (t.Catalog != "" || len(t.Tools) > 0) {
			asked = append(asked, t)
		}
	}
	all := len(tasks) + len(asked)
	walls, err := execute(e.ctx, tasks, func(done int) { e.report(done, all) })
	if err != nil {
		return sum, err
	}
	graphs := map[string][]node{}
	var nodes, edges f1
	err = plans(e.ctx, c.Tasks, asked, with, func(t task, p planned) error {
		graph := graphOf(p.plan)
		graphs[t.ID] = graph
		if len(t.Nodes) > 0 {
			n, e := compare(tools(graph), tools(t.Nodes)), compare(links(graph), links(t.Nodes))
			if n.equal() && e.equal() {
				sum.Exact++
			}
			nodes.add(n)
			edges.add(e)
		}
		if p.err != nil {
			sum.Failed++
		}
		sum.Planned++
		sum.effort.add(model, t.tools())
		e.report(len(tasks)+sum.Planned, all)
		return nil
	})
	if err != nil {
		return sum, err
	}
	sum.effort.mean()
	sum.NodeF1, sum.EdgeF1 = nodes.value(), edges.value()
	sum.time(tasks, walls)
	for i, t := range tasks {
		line := map[string]any{"id": t.ID}
		if g, ok := graphs[t.ID]; ok {
			line["nodes"] = g
		}
		if walls[i] > 0 {
			line["wall_ms"] = walls[i]
		}
		if err := out.Encode(line); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// execute runs the graphs of the tasks and returns the wall time of each in milliseconds, 0 where a
// task has none.
func execute(ctx context.Context, tasks []task, progress func(done int)) ([]float64, error) {
	walls := make([]float64, len(tasks))
	slots := make(chan struct{}, graphsAtOnce)
	var all sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i, t := range tasks {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if len(t.Nodes) > 0 && ctx.Err() == nil {
				walls[i] = runGraph(ctx, t)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done)
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("executing graphs: %w", err)
	}
	return walls, nil
}

// runGraph executes one graph and returns the wall time in milliseconds.
func runGraph(ctx context.Context, t task) float64 {
	var p plan.Plan
	latency := sleeper{}
	for _, n := range t.Nodes {
		p.Steps = append(p.Steps, plan.Step{ID: n.ID, Tool: n.ID, Arguments: json.RawMessage(`{}`), After: n.DependsOn})
		latency[n.ID] = time.Duration(n.Latency * float64(time.Millisecond))
	}
	start := time.Now()
	round := execution.New(execution.Options{Servers: latency, MaxParallel: len(p.Steps)}).Begin(ctx,
		execution.Request{Began: start})
	defer round.Stop()
	round.Execute(ctx, execution.Work{Plan: p, Lookup: func(name string) (plan.Tool, *plan.Error) {
		return plan.Tool{Name: name, Tool: name}, nil
	}})
	return milliseconds(time.Since(start))
}

// sleeper has the latencies of tools.
type sleeper map[string]time.Duration

// Call implements execution.ToolCaller.
func (s sleeper) Call(ctx context.Context, r *downstream.Request) (link.Reply, error) {
	select {
	case <-time.After(s[r.Tool]):
		return link.Reply{Result: []byte(`{"content":[]}`)}, nil
	case <-ctx.Done():
		return link.Reply{}, ctx.Err()
	}
}

// time sums up the wall times.
func (s *dagSummary) time(tasks []task, walls []float64) {
	s.Tasks = len(tasks)
	total, sequential := 0.0, 0.0
	for i, t := range tasks {
		if walls[i] == 0 || t.Critical == 0 {
			continue
		}
		s.Timed++
		ratio := walls[i] / t.Critical
		s.Critical += ratio
		s.Worst = max(s.Worst, ratio)
		total += walls[i]
		sequential += t.Sequence
	}
	if s.Timed > 0 {
		s.Critical /= float64(s.Timed)
		s.Speedup = sequential / total
	}
}

// graphOf returns the steps of a plan with what each of them waits for.
func graphOf(p plan.Plan) []node {
	graph := []node{}
	isStep := func(id string) bool { return p.Step(id) != nil }
	for _, s := range p.Steps {
		graph = append(graph, node{ID: s.ID, Tool: s.Tool, Arguments: s.Arguments, DependsOn: s.Needs(isStep)})
	}
	return graph
}

// f1 counts the common members of two multisets, over many tasks.
type f1 struct{ both, got, want int }

func compare(got, want []string) f1 {
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	f := f1{got: len(got), want: len(want)}
	for _, g := range got {
		if left[g] > 0 {
			left[g]--
			f.both++
		}
	}
	return f
}

func (f *f1) add(o f1) {
	f.both += o.both
	f.got += o.got
	f.want += o.want
}

// equal reports whether the multisets are the same.
func (f f1) equal() bool { return f.both == f.got && f.got == f.want }

func (f f1) value() float64 {
	if f.got+f.want == 0 {
		return 0
	}
	return 2 * float64(f.both) / float64(f.got+f.want)
}

func tools(graph []node) []string {
	var out []string
	for _, n := range graph {
		out = append(out, plainName(n.Tool))
	}
	return out
}

func links(graph []node) []string {
	names := map[string]string{}
	for _, n := range graph {
		names[n.ID] = plainName(n.Tool)
	}
	var out []string
	for _, n := range graph {
		for _, d := range n.DependsOn {
			out = append(out, names[d]+" -> "+names[n.ID])
		}
	}
	return out
}
