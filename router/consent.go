package router

import (
	"context"
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// asksFirst reports whether a plan with a destructive step must be shown before anything of it runs.
func (s *rounds) asksFirst() bool {
	return s.router.opts.Execution.ConfirmWrites == downstream.ConfirmAlways && s.q.Elicit == nil
}

// needsApproval reports whether the plan has a destructive step that must not run unasked.
func (s *rounds) needsApproval(p plan.Plan) bool {
	return s.asksFirst() && slices.ContainsFunc(p.Steps, func(step plan.Step) bool {
		tool, err := s.catalog.Lookup(step.Tool, s.q.Origin.Visible)
		return err == nil && tool.Annotations.Destructive()
	})
}

// confirm asks the user before a destructive tool runs; nil where that is not wanted or nobody can be asked.
func (s *rounds) confirm() execution.Confirm {
	if s.q.Elicit == nil || s.router.opts.Execution.ConfirmWrites == downstream.ConfirmNever {
		return nil
	}
	return func(ctx context.Context, tool *downstream.Tool, arguments []byte) error {
		ctx, cancel := asking(ctx)
		defer cancel()
		message := fmt.Sprintf("Allow %s of server %s with the arguments %s? It says that it may destroy something.",
			tool.Tool.Tool, tool.Server, short.Text(string(arguments), 1000))
		_, err := s.q.Elicit(ctx, message, []byte(`{"type":"object","properties":{}}`))
		return err
	}
}
