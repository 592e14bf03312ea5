package app

import (
	"encoding/json"
	"log/slog"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/shapes"
)

// keepLearned opens the store of learned results. A Tape turns it off, because recorded prompts must not depend on it.
func (m *models) keepLearned(cfg *config.Config, log *slog.Logger) {
	if !cfg.Planner.Learn || m.tape != nil {
		return
	}
	folder, _ := cfg.StateFolder() // without one, nothing outlives the process
	m.learned.Swap(shapes.Open(folder, log)).Close()
}

// learn learns from the result of a step. It skips tools with an outputSchema.
func (m *models) learn(t plan.Tool, arguments, value json.RawMessage) {
	switch {
	case plan.IsErrorText(value):
		return
	case len(t.OutputSchema) > 0:
		value = nil
	}
	m.learned.Load().Learn(shaped(&t), arguments, value)
}

// hint returns what was learned about a tool.
func (m *models) hint(t *plan.Tool) (result string, arguments []string) {
	h, _ := m.learned.Load().Hint(shaped(t))
	return h.Result, h.Arguments
}

func shaped(t *plan.Tool) shapes.Tool {
	return shapes.Tool{Server: t.Server, Name: t.Tool, Input: t.InputSchema}
}
