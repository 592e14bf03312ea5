package planner

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

//go:embed prompts/*.tmpl
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompts/*.tmpl"))

// Bounds of the parts of a prompt, in bytes.
const (
	maxTools    = 16_000   // of all tools together
	maxFound    = 3_000    // of those that one search brought, taken off the former
	maxTool     = 1_500    // of one
	minTool     = 50       // of one, however many there are
	maxHistory  = 8 << 10  // of the conversation so far
	maxOutcome  = 2 << 10  // of one earlier result
	maxOutcomes = 16 << 10 // of all earlier results together
)

// view is what the templates see.
type view struct {
	Query    string
	Tools    string   // data block, may be empty
	Context  string   // data block, may be empty
	Outcomes []string // data blocks
	Problems string   // data block
	Hatch    string   // the name to ask for other tools by, or empty
	More     bool     // there may be another round
	CanAsk   bool     // the user can be asked for arguments
	Replan   bool     // outcomes failed or are empty
	MaxSteps int
}

func (c *conversation) view(tools []plan.Tool, room int) view {
	v := view{Query: c.req.Query, MaxSteps: c.room(), Replan: c.req.Replan, CanAsk: c.req.CanAsk,
		More: c.req.Round < c.req.MaxRounds}
	if c.hatch {
		v.Hatch = findTools
	}
	if len(tools) > 0 {
		v.Tools = toolList(tools, room)
	}
	return v
}

func (c *conversation) system() (string, error) { return render("plan_system.tmpl", c.view(nil, 0)) }

func (c *conversation) user() (string, error) {
	room := maxTools
	if c.hatch {
		room -= maxSearches * maxFound
	}
	v := c.view(c.shown, room)
	v.Context = llm.Conversation(c.req.Context, maxHistory)
	limit := maxOutcome
	if n := len(c.req.Outcomes); n > 0 {
		limit = max(min(limit, maxOutcomes/n), 200)
	}
	for _, o := range c.req.Outcomes {
		v.Outcomes = append(v.Outcomes, outcome(o, limit))
	}
	return render("plan_user.tmpl", v)
}

// outcome shows what came of an earlier step.
func outcome(o plan.Outcome, limit int) string {
	source := "step " + o.Step.ID + ", tool " + o.Step.Tool
	called := "called with " + llm.Excerpt(o.Step.Arguments, limit/2) + "\n"
	if partly, ok := o.Partly(); ok {
		called += short.Text(partly.Err.Message, limit/2) + "\n"
	}
	switch {
	case o.Skipped:
		return llm.Data(source+", skipped", "a condition of the plan was false")
	case o.Failed():
		return llm.Data(source+", failed", called+o.Err.Reason+": "+short.Text(o.Err.Message, limit))
	}
	return llm.Data(source, called+llm.Excerpt(o.Value, limit))
}

func render(name string, v view) (string, error) {
	var out strings.Builder
	if err := prompts.ExecuteTemplate(&out, name, v); err != nil {
		return "", fmt.Errorf("writing the prompt: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}
