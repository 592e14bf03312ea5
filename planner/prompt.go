package planner

import (
	"embed"
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
	maxTools    = 16_000   // of all tools
	maxFound    = 3_000    // of the tools of one search, subtracted from maxTools
	maxTool     = 1_500    // of one
	minTool     = 50       // of one, at least
	maxHistory  = 8 << 10  // of the conversation so far
	maxOutcome  = 2 << 10  // of one earlier result
	maxOutcomes = 16 << 10 // of all earlier results
)

// system is the same for every question, so that providers can cache it.
var system = render("plan_system.tmpl", struct {
	MaxSteps  int
	FindTools string
}{maxSteps, findTools})

// view is the data of the other templates. Their parts are in the order of how rarely they change: rounds of a query,
// and questions over the same tools, share the beginning of the prompt.
type view struct {
	Tools     string   // data block, may be empty
	Others    bool     // there are tools that are not shown
	Context   string   // data block, may be empty
	Outcomes  []string // data blocks
	Problems  string   // data block
	Replan    bool     // outcomes failed or are empty
	Round     int
	MaxRounds int
	Last      bool // there is no other round
	CanAsk    bool // the user can be asked for arguments
	Now       string
	Query     string
}

func (c *conversation) view(tools []plan.Tool, room int) view {
	v := view{
		Others: c.canSearch, Replan: c.req.Replan, Round: c.req.Round, MaxRounds: c.req.MaxRounds,
		Last: c.req.Round >= c.req.MaxRounds, CanAsk: c.req.CanAsk, Query: c.req.Query,
		Now: c.planner.now().Format("Monday, 2006-01-02 15:04 MST (UTC-07:00)"),
	}
	if len(tools) > 0 {
		v.Tools = toolList(tools, room)
	}
	return v
}

func (c *conversation) user() string {
	room := maxTools
	if c.canSearch {
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

// outcome returns the data block of an earlier step.
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

// render writes a template that fits its view.
func render(name string, v any) string {
	var out strings.Builder
	if err := prompts.ExecuteTemplate(&out, name, v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}
