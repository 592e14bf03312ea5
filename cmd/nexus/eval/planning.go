package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// Plan plans one question over the tools of a catalog.
type Plan func(ctx context.Context, query string, tools rules.Catalog) (plan.Plan, error)

// PlanningOptions are the options of Planning.
type PlanningOptions struct {
	Tasks    string // JSON Lines of tasks
	Out      string // where predictions go; empty means nowhere
	Model    *Model // nil means Plan
	Plan     Plan   // nil means the rules planner
	Progress Progress
}

// PlanningSummary is the result of Planning. ToolChoice counts the tasks that expect calls,
// FalsePositive those that expect none.
type PlanningSummary struct {
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
	Effort
}

// task is a line of a planning or dag file.
type task struct {
	ID       string          `json:"id"`
	Query    string          `json:"query"`
	Tools    []Tool          `json:"tools"`
	Catalog  string          `json:"catalog"`
	Expected *[]expectedCall `json:"expected"` // nil: not judged; empty: no tool fits
	Nodes    []node          `json:"nodes"`
	Critical float64         `json:"critical_path_ms"`
	Sequence float64         `json:"sequential_ms"`
}

type expectedCall struct {
	Name string `json:"name"`
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

// catalogs returns the tools of each task. It indexes the tools of a catalog file once.
type catalogs struct {
	file string // of the tasks
	read map[string]searchable
}

func (c *catalogs) of(t task) (searchable, error) {
	if t.Catalog == "" {
		return newSearchable(t.Tools), nil
	}
	if known, ok := c.read[t.Catalog]; ok {
		return known, nil
	}
	tools, err := readLines[Tool](beside(c.file, t.Catalog))
	if err != nil {
		return searchable{}, err
	}
	catalog := newSearchable(tools)
	c.read[t.Catalog] = catalog
	return catalog, nil
}

// planned is the result of planning one task.
type planned struct {
	plan plan.Plan
	took time.Duration
	err  error
}

// plans plans the tasks one after another and passes each plan to done.
func plans(ctx context.Context, file string, tasks []task, with Plan, done func(task, planned) error) error {
	if with == nil {
		with = rules.New(rules.Options{}).Plan
	}
	from := catalogs{file: file, read: map[string]searchable{}}
	for _, t := range tasks {
		catalog, err := from.of(t)
		if err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		start := time.Now()
		p, err := with(ctx, t.Query, catalog)
		if ctx.Err() != nil {
			return fmt.Errorf("evaluating plans: %w", ctx.Err())
		}
		if err := done(t, planned{p, time.Since(start), err}); err != nil {
			return err
		}
	}
	return nil
}

// Planning plans every task and writes {"id","calls"} lines. A task whose planning fails counts as
// one without calls.
func Planning(ctx context.Context, o PlanningOptions) (sum PlanningSummary, err error) {
	tasks, err := readLines[task](o.Tasks)
	if err != nil {
		return sum, err
	}
	w, err := create(o.Out)
	if err != nil {
		return sum, err
	}
	defer w.closeInto(&err)
	type call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var times []time.Duration
	if o.Model != nil {
		o.Plan = o.Model.Plan
	}
	err = plans(ctx, o.Tasks, tasks, o.Plan, func(t task, p planned) error {
		times = append(times, p.took)
		calls := []call{}
		for _, s := range p.plan.Steps {
			calls = append(calls, call{s.Tool, s.Arguments})
		}
		sum.count(t, p)
		sum.Effort.add(o.Model, t.tools())
		o.Progress.report(sum.Tasks, len(tasks))
		return w.write(struct {
			ID    string `json:"id"`
			Calls []call `json:"calls"`
		}{t.ID, calls})
	})
	if err != nil {
		return sum, err
	}
	if sum.Expecting > 0 {
		sum.ToolChoice /= float64(sum.Expecting)
	}
	if sum.ExpectNone > 0 {
		sum.FalsePositive /= float64(sum.ExpectNone)
	}
	sum.Effort.mean()
	sum.P50, sum.P99 = percentile(times, 0.5), percentile(times, 0.99)
	return sum, nil
}

// count adds one task to the sums.
func (s *PlanningSummary) count(t task, p planned) {
	s.Tasks++
	s.Calls += len(p.plan.Steps)
	if len(p.plan.Steps) == 0 {
		s.Abstained++
	}
	if p.err != nil {
		s.Failed++
	}
	if t.Expected == nil {
		return
	}
	if len(*t.Expected) == 0 {
		s.ExpectNone++
		if len(p.plan.Steps) > 0 {
			s.FalsePositive++
		}
		return
	}
	s.Expecting++
	var want, got []string
	for _, e := range *t.Expected {
		want = append(want, plainName(e.Name))
	}
	for _, step := range p.plan.Steps {
		got = append(got, plainName(step.Tool))
	}
	slices.Sort(want)
	slices.Sort(got)
	if slices.Equal(want, got) {
		s.ToolChoice++
	}
}

// plainName is a tool's name without its server, dots and dashes written alike.
func plainName(name string) string {
	if _, tool, ok := strings.Cut(name, "::"); ok {
		name = tool
	}
	return strings.NewReplacer(".", "_", "-", "_").Replace(name)
}
