package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/internal/suggest"
)

// Bounds of a repair.
const (
	maxProblems = 20      // that the model is shown
	maxSchema   = 4 << 10 // bytes of the schema of one tool
	maxSimilar  = 3       // tools that may be meant by an unknown name
)

// correction is the data of the message that asks for a repair.
type correction struct {
	Problems string // data block
	Schemas  string // data block, may be empty
	Query    string
}

// showProblems asks the model to repair its plan.
func (c *conversation) showProblems(ctx context.Context, answer string, d *draft, warnings []string, unreadable error) {
	next := correction{Query: c.req.Query}
	lines := warnings
	if unreadable != nil {
		lines = append(lines, unreadable.Error())
	}
	if d != nil {
		for i, p := range d.problems {
			if i == maxProblems {
				lines = append(lines, fmt.Sprintf("and %d more", len(d.problems)-maxProblems))
				break
			}
			lines = append(lines, fmt.Sprintf("step %s: %s: %s", d.idOf(p.Step), p.Error.Reason, p.Error.Message))
		}
		next.Schemas = c.schemas(c.involved(ctx, d))
	}
	next.Problems = llm.Data("checking the plan", short.Text(strings.Join(lines, "\n"), maxAnswer))
	c.say(llm.RoleAssistant, short.Text(answer, maxAnswer))
	c.say(llm.RoleUser, prompts.Render("plan_repair", next))
}

// involved returns the tools of faulty steps; for an unknown name, the tools that it may mean.
func (c *conversation) involved(ctx context.Context, d *draft) (tools []plan.Tool) {
	for _, p := range d.problems[:min(len(d.problems), maxProblems)] {
		step := d.plan.Step(p.Step)
		if step == nil || step.Tool == "" {
			continue
		}
		meant := []plan.Tool{{}}
		var unknown *plan.Error
		if meant[0], unknown = c.req.Tools.Lookup(step.Tool); unknown != nil {
			meant = c.similar(ctx, step.Tool)
		}
		for _, t := range meant {
			if !slices.ContainsFunc(tools, func(o plan.Tool) bool { return o.Name == t.Name }) {
				tools = append(tools, t)
			}
		}
	}
	return tools
}

// similar returns the tools that an unknown name may mean: tools shown to the model with a similar spelling, or else
// the results of a search.
func (c *conversation) similar(ctx context.Context, name string) (tools []plan.Tool) {
	for _, known := range suggest.Of(name, slices.Sorted(maps.Keys(c.shown.details)), maxSimilar) {
		if t, unknown := c.req.Tools.Lookup(known); unknown == nil {
			tools = append(tools, t)
		}
	}
	if len(tools) == 0 {
		tools = c.planner.rank(ctx, c.req, short.Line(name, maxName), maxSimilar)
	}
	return tools
}

// schemas returns a data block with the whole schemas of tools, within a size. Cut schemas are marked.
func (c *conversation) schemas(tools []plan.Tool) string {
	room := c.planner.cfg.ToolTokens * bytesPerToken / 4
	var lines []string
	for _, t := range tools {
		text := short.Line(t.Name, maxName) + " takes " + llm.Excerpt(t.InputSchema, maxSchema)
		if room -= len(text) + overhead; room < 0 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, text)
	}
	if len(lines) == 0 {
		return ""
	}
	return data(lines)
}
