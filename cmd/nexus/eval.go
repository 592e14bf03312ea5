package main

import (
	"context"
	"fmt"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/eval"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

type evalCmd struct {
	Retrieval evalRetrievalCmd `cmd:"" help:"Measure whether questions find their tools."`
	Planning  evalPlanningCmd  `cmd:"" help:"Measure whether questions become the right calls."`
	DAG       evalDAGCmd       `cmd:"" name:"dag" help:"Measure whether plans run as fast as their dependencies allow."`
}

// figures are the flags that all evaluations have.
type figures struct {
	Out  string `help:"File to write the predictions to, one per line." placeholder:"FILE"`
	JSON bool   `name:"json" help:"Print the figures as JSON."`
}

// measure runs an evaluation under a progress bar and prints its summary.
func measure[T any](w *world, f figures, run func(context.Context, eval.Progress) (T, error)) (T, error) {
	bar := newBar(w)
	summary, err := run(w.ctx, steps(bar))
	bar.close()
	if err != nil {
		return summary, err
	}
	if f.JSON {
		return summary, printJSON(w, summary)
	}
	return summary, eval.WriteTable(w.stdout, summary)
}

// steps shows progress on a bar, with one report per twentieth of the work.
func steps(b *bar) eval.Progress {
	shown := -1
	return func(done, total int) {
		if now := 20 * done / max(total, 1); now > shown {
			shown = now
			b.show(float64(done)/float64(max(total, 1)), fmt.Sprintf("%d of %d", done, total))
		}
	}
}

type evalRetrievalCmd struct {
	figures
	Catalog string `required:"" help:"The tools, a JSON Lines file." placeholder:"FILE" type:"existingfile"`
	Queries string `required:"" help:"The questions, a JSON Lines file." placeholder:"FILE" type:"existingfile"`

	Embeddings bool     `help:"Also rank with the configured embedding model."`
	Config     []string `help:"Configuration file or folder that names the model; may be repeated (default: config/ if it exists)." placeholder:"PATH" sep:"none"`
}

func (c *evalRetrievalCmd) Run(w *world) error {
	embedder, err := c.embedder()
	if err != nil {
		return err
	}
	_, err = measure(w, c.figures, func(ctx context.Context, p eval.Progress) (eval.RetrievalSummary, error) {
		return eval.Retrieval(ctx, eval.RetrievalOptions{Catalog: c.Catalog, Queries: c.Queries, Out: c.Out,
			Embedder: embedder, Progress: p})
	})
	return err
}

// embedder returns the embedding model; nil means none.
func (c *evalRetrievalCmd) embedder() (search.Embedder, error) {
	if !c.Embeddings {
		return nil, nil
	}
	cfg, err := config.Load(c.Config, config.Options{})
	if err != nil {
		return nil, err
	}
	if cfg.LLM == nil || cfg.LLM.Embeddings == nil {
		return nil, &exitError{exitUsage, "--embeddings needs a model; name one under llm.embeddings in the configuration"}
	}
	return llm.NewEmbeddings(*cfg.LLM.Embeddings, nil), nil
}

// planning are the flags that select the planner.
type planning struct {
	Model  bool     `help:"Plan with the configured model instead of by rules."`
	Config []string `help:"Configuration file or folder that names the model; may be repeated (default: config/ if it exists)." placeholder:"PATH" sep:"none"`
}

type evalPlanningCmd struct {
	figures
	planning
	Tasks string `required:"" help:"The tasks, a JSON Lines file." placeholder:"FILE" type:"existingfile"`
}

func (c *evalPlanningCmd) Run(w *world) error {
	model, err := c.planner()
	if err != nil {
		return err
	}
	summary, err := measure(w, c.figures, func(ctx context.Context, p eval.Progress) (eval.PlanningSummary, error) {
		return eval.Planning(ctx, eval.PlanningOptions{Tasks: c.Tasks, Out: c.Out, Model: model, Progress: p})
	})
	if err != nil {
		return err
	}
	return partly(summary.Failed, summary.Tasks)
}

// partly returns an error if some tasks could not be planned.
func partly(failed, tasks int) error {
	if failed == 0 {
		return nil
	}
	return &exitError{exitPartly, fmt.Sprintf("%d of %d tasks could not be planned", failed, tasks)}
}

// planner returns the planner of the configured model; nil means the rules.
func (c *planning) planner() (*eval.Model, error) {
	if !c.Model {
		return nil, nil
	}
	cfg, err := config.Load(c.Config, config.Options{})
	if err != nil {
		return nil, err
	}
	if !cfg.LLM.Plans() {
		return nil, &exitError{exitUsage, "--model needs a model; name one under llm.planner in the configuration"}
	}
	return eval.NewModel(llm.New(cfg.LLM.Planner, llm.Options{}), cfg.Planner), nil
}

type evalDAGCmd struct {
	figures
	planning
	Tasks string `required:"" help:"The graphs, a JSON Lines file." placeholder:"FILE" type:"existingfile"`
}

func (c *evalDAGCmd) Run(w *world) error {
	model, err := c.planner()
	if err != nil {
		return err
	}
	summary, err := measure(w, c.figures, func(ctx context.Context, p eval.Progress) (eval.DAGSummary, error) {
		return eval.DAG(ctx, eval.DAGOptions{Tasks: c.Tasks, Out: c.Out, Model: model, Progress: p})
	})
	if err != nil {
		return err
	}
	return partly(summary.Failed, summary.Planned)
}
