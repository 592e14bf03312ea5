package planner

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the parts of a prompt, in bytes.
const (
	maxOutcome  = 2 << 10  // of one earlier result
	maxOutcomes = 16 << 10 // of all earlier results
)

// system is the same for every question, so that providers can cache it.
var system = prompts.Render("plan_system", struct {
	MaxSteps  int
	FindTools string
}{maxSteps, findTools})

// opening is the data of the first message in a round. Stable parts come first, so that rounds of a query, and
// questions about the same tools, share the beginning of the prompt.
type opening struct {
	selection
	FindTools string   // the name of the search for them
	Context   string   // data block, may be empty
	Outcomes  []string // data blocks
	Replan    bool     // outcomes failed or are empty
	Lacks     string   // data block of what they lack, may be empty
	Round     int
	MaxRounds int
	CanAsk    bool // the user, for arguments and approval
	Marks     *marks
	Now       string
	Query     string
}

// selection tells which tools the model sees.
type selection struct {
	Catalog, Best  string // data blocks, may be empty
	Native         bool   // the model calls tools natively; Best has their names
	Listed, Others bool   // all tools are named; some are not shown, or not in full
	Most           bool   // most tools are not shown
}

// opening returns the first user message in a round.
func (c *conversation) opening() string {
	s := c.shown
	v := opening{
		selection: selection{s.catalog, s.best, s.native, s.listed, s.others, s.most}, FindTools: findTools,
		Context: llm.Conversation(c.req.Context, prompts.MaxHistory), Replan: c.req.Replan,
		Round: c.req.Round, MaxRounds: c.req.MaxRounds,
		CanAsk: c.req.CanAsk, Marks: c.marks(nil),
		Now: prompts.Time(c.planner.now()), Query: c.req.Query,
	}
	if c.req.Lacks != "" {
		v.Lacks = llm.Data("the writer", c.planner.mask.Text(c.req.Lacks))
	}
	limit := maxOutcome
	if n := len(c.req.Outcomes); n > 0 {
		limit = max(min(limit, maxOutcomes/n), 200)
	}
	for _, o := range c.req.Outcomes {
		v.Outcomes = append(v.Outcomes, c.planner.outcome(o, limit))
	}
	return prompts.Render("plan_user", v)
}

// outcome returns the data block of an earlier step.
func (p *Planner) outcome(o plan.Outcome, limit int) string {
	source := "step " + o.Step.ID + ", tool " + o.Step.Tool
	called := "called with " + llm.Excerpt(o.Step.Arguments, limit/2, p.mask.Text) + "\n"
	if partly, ok := o.PartialFailure(); ok {
		called += texts.Cut(partly.Err.Message, limit/2) + "\n"
	}
	switch {
	case o.Skipped:
		return llm.Data(source+", skipped", "a condition of the plan was false")
	case o.Failed():
		return llm.Data(source+", failed", called+o.Err.Reason+": "+texts.Cut(o.Err.Message, limit))
	}
	return llm.Data(source, called+llm.Excerpt(o.Value, limit, p.mask.Text))
}

// planSchema is the schema of a plan. It names no tools and is the same for every question, because endpoints compile a
// strict schema when they first see it. Strict modes do not support open objects, so arguments are then a JSON string;
// plan.Parse reads both forms.
var planSchema = &llm.Schema{
	Name: "plan",
	Strict: schemaOfPlan(`{"type":"string","description":"the arguments as a JSON object, written as a string"}`,
		`"required":["id","tool","arguments","after","each","when","pick"],"additionalProperties":false`,
		`"required":["steps","more","unmet"],"additionalProperties":false`),
	Loose: schemaOfPlan(`{"type":"object"}`, `"required":["id","tool","arguments"]`, `"required":["steps"]`),
}

// schemaOfPlan returns the schema of a plan with further keywords for steps and for the whole. Models write members in
// the order of the schema.
func schemaOfPlan(arguments, ofSteps, ofWhole string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{` +
		`"id":{"type":"string"},"tool":{"type":"string"},"arguments":` + arguments + `,` +
		`"after":{"type":"array","items":{"type":"string"}},"each":{"type":["string","null"]},` +
		`"when":{"type":["string","null"]},"pick":{"type":["string","null"]}},` + ofSteps + `}},` +
		`"more":{"type":"boolean"},"unmet":{"type":"array","items":{"type":"string"}}},` + ofWhole + `}`)
}

// searchQuery reads the arguments of findTools.
func searchQuery(arguments json.RawMessage) string {
	var a struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(arguments, &a) != nil {
		return ""
	}
	return texts.Cut(a.Query, 500)
}
