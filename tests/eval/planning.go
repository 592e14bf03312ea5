package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
	"github.com/agenticnexus/agenticnexus/tests/toolset"
)

// planning plans every task and writes {"id","calls"} lines. A task whose planning fails counts as one without calls.
type planning struct {
	figures
	Tasks string `required:"" help:"The tasks, a JSON Lines file." placeholder:"FILE"`
	Model bool   `help:"Plan with the configured model instead of by rules."`
}

// planningSummary has the figures. ToolChoice counts the tasks that expect calls, FalsePositive those that expect none.
type planningSummary struct {
	Tasks         int     `json:"tasks"`
	Calls         int     `json:"calls"`
	Abstained     int     `json:"abstained"` // tasks without a call
	Failed        int     `json:"failed"`    // tasks whose planning ended in an error
	Expecting     int     `json:"expecting"` // tasks that expect calls
	ToolChoice    float64 `json:"tool_choice"`
	ExpectNone    int     `json:"expect_none"` // tasks that no tool fits
	FalsePositive float64 `json:"false_positive"`
	P50           float64 `json:"p50_ms"`
	P99           float64 `json:"p99_ms"`
	effort
}

// Tool is a line of a catalog, or a tool of a planning task.
type Tool struct {
	ID           string           `json:"id"`
	Server       string           `json:"server"`
	Name         string           `json:"name"`
	Title        string           `json:"title"`
	Description  string           `json:"description"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema"`
	Outputs      []string         `json:"outputs"` // names of result fields, without an outputSchema
	Annotations  plan.Annotations `json:"annotations"`
}

func planTools(tools []Tool) []plan.Tool {
	out := make([]plan.Tool, len(tools))
	for i, t := range tools {
		if len(t.OutputSchema) == 0 && len(t.Outputs) > 0 {
			fields := map[string]any{}
			for _, name := range t.Outputs {
				fields[name] = struct{}{}
			}
			t.OutputSchema, _ = json.Marshal(map[string]any{"type": "object", "properties": fields}) // names can be encoded
		}
		out[i] = plan.Tool{
			Name: t.Name, Server: t.Server, Tool: t.Name, Title: t.Title, Description: t.Description,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations,
		}
	}
	return out
}

// task is a line of a planning or dag file.
type task struct {
	ID       string  `json:"id"`
	Query    string  `json:"query"`
	Tools    []Tool  `json:"tools"`
	Catalog  string  `json:"catalog"`
	Expected *[]call `json:"expected"` // nil: not judged; empty: no tool fits
	Nodes    []node  `json:"nodes"`
	Critical float64 `json:"critical_path_ms"`
	Sequence float64 `json:"sequential_ms"`
}

type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// tools returns the names of the expected tools.
func (t task) tools() (names []string) {
	if t.Expected != nil {
		for _, e := range *t.Expected {
			names = append(names, e.Name)
		}
	}
	for _, n := range t.Nodes {
		if _, name, ok := strings.Cut(n.Tool, "::"); ok {
			names = append(names, name)
		}
	}
	return names
}

// catalog has all tools of a task, for search and for lookup.
type catalog struct {
	rules.Catalog
	toolset.List
}

func newCatalog(tools []Tool) catalog {
	list := planTools(tools)
	return catalog{rules.NewCatalog(list), list}
}

// planFunc plans one question over the tools of a catalog.
type planFunc func(ctx context.Context, query string, tools catalog) (plan.Plan, error)

func planByRules() planFunc {
	r := rules.New(rules.Options{})
	return func(ctx context.Context, query string, tools catalog) (plan.Plan, error) {
		return r.Plan(ctx, query, tools.Catalog)
	}
}

// planned is the result of planning one task.
type planned struct {
	plan plan.Plan
	took time.Duration
	err  error
}

// plans plans the tasks of a file one after another and passes each plan to done. It indexes each catalog file once.
func plans(ctx context.Context, file string, tasks []task, with planFunc, done func(task, planned) error) error {
	read := map[string]catalog{}
	for _, t := range tasks {
		tools, known := read[t.Catalog]
		if !known {
			list := t.Tools
			if t.Catalog != "" {
				var err error
				if list, err = readLines[Tool](beside(file, t.Catalog)); err != nil {
					return fmt.Errorf("task %s: %w", t.ID, err)
				}
			}
			if tools = newCatalog(list); t.Catalog != "" {
				read[t.Catalog] = tools
			}
		}
		start := time.Now()
		p, err := with(ctx, t.Query, tools)
		if ctx.Err() != nil {
			return fmt.Errorf("evaluating plans: %w", ctx.Err())
		}
		if err := done(t, planned{p, time.Since(start), err}); err != nil {
			return err
		}
	}
	return nil
}

// Run implements the command.
func (c *planning) Run(e *env) error {
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
	return partly(sum.Failed, sum.Tasks)
}

func partly(failed, tasks int) error {
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d %w", failed, tasks, errPartly)
}

func (c *planning) measure(e *env, with planFunc, model *model) (sum planningSummary, err error) {
	tasks, err := readLines[task](c.Tasks)
	if err != nil {
		return sum, err
	}
	out, err := create(c.Out)
	if err != nil {
		return sum, err
	}
	defer out.Close()
	var times []time.Duration
	err = plans(e.ctx, c.Tasks, tasks, with, func(t task, p planned) error {
		times = append(times, p.took)
		p.plan.Steps = slices.DeleteFunc(slices.Clone(p.plan.Steps), plan.Step.Computes)
		calls := []call{}
		for _, s := range p.plan.Steps {
			calls = append(calls, call{s.Tool, s.Arguments})
		}
		sum.count(t, p)
		sum.effort.add(model, t.tools())
		e.report(sum.Tasks, len(tasks))
		return out.Encode(struct {
			ID    string `json:"id"`
			Calls []call `json:"calls"`
		}{t.ID, calls})
	})
	sum.ToolChoice /= float64(max(sum.Expecting, 1))
	sum.FalsePositive /= float64(max(sum.ExpectNone, 1))
	sum.effort.mean()
	sum.P50, sum.P99 = percentile(times, 0.5), percentile(times, 0.99)
	return sum, err
}

// count adds one task to the sums.
func (s *planningSummary) count(t task, p planned) {
	steps := p.plan.Steps
	s.Tasks++
	s.Calls += len(steps)
	if len(steps) == 0 {
		s.Abstained++
	}
	if p.err != nil {
		s.Failed++
	}
	switch {
	case t.Expected == nil:
	case len(*t.Expected) == 0:
		s.ExpectNone++
		s.FalsePositive += number(len(steps) > 0)
	default:
		s.Expecting++
		var want, got []string
		for _, e := range *t.Expected {
			want = append(want, plainName(e.Name))
		}
		for _, step := range steps {
			got = append(got, plainName(step.Tool))
		}
		slices.Sort(want)
		slices.Sort(got)
		s.ToolChoice += number(slices.Equal(want, got))
	}
}

// plainName is a tool's name without its server, dots and dashes written alike.
func plainName(name string) string {
	if _, tool, ok := strings.Cut(name, "::"); ok {
		name = tool
	}
	return strings.NewReplacer(".", "_", "-", "_").Replace(name)
}
