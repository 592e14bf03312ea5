package planner

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/shapes"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the parts of a prompt, in bytes.
const (
	maxOutcome  = 2 << 10  // of one earlier result
	maxOutcomes = 16 << 10 // of all earlier results
)

// opening is the data of the first message in a round. Stable parts come first, so that rounds of a query, and
// questions about the same tools, share the beginning of the prompt.
type opening struct {
	selection
	FindTools string   // the name of the search for them
	Context   string   // data block, may be empty
	Outcomes  []string // data blocks
	Replan    bool     // outcomes failed or are empty
	Lacks     string   // data block of what they lack, may be empty
	Invalid   string   // data block about the condition for this round, may be empty
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
	if s.invalid != "" {
		v.Invalid = llm.Data("checking the plan", s.invalid)
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

// outcome returns the data block of an earlier step: its call, the type of its value, which references lead into, and
// the value as the writer of the answer gets it. Of a loop it tells which elements failed and which were skipped.
func (p *Planner) outcome(o plan.Outcome, limit int) string {
	source, called := "step "+o.Step.ID, ""
	if o.Step.Tool != "" {
		source += ", tool " + o.Step.Tool
		called = "called with " + llm.Excerpt(o.Step.Arguments, limit/2, p.mask.Text) + "\n"
	}
	if o.Step.Each != "" {
		called = p.mask.Text(texts.Line("for each of "+o.Step.Each, maxName)) + " " + called
	}
	if partly, ok := o.PartialFailure(); ok {
		called += texts.Cut(partly.Err.Message, limit/2) + "\n"
	}
	var skipped []string
	for _, c := range o.Elements {
		if c.Skipped {
			skipped = append(skipped, strconv.Itoa(c.Index))
		}
	}
	if len(skipped) > 0 {
		called += fmt.Sprintf("skipped for %d of %d elements (%s), because its condition was false\n", len(skipped),
			len(o.Elements), texts.Line(strings.Join(skipped, ", "), maxName))
	}
	switch {
	case o.Skipped:
		return llm.Data(source+", skipped", "a condition of the plan was false")
	case o.Failed():
		return llm.Data(source+", failed", called+o.Err.Reason+": "+texts.Cut(o.Err.Message, limit))
	}
	if of := shapes.TypeOf(o.Value); of != "" {
		called += "-> " + texts.Cut(p.mask.Text(of), min(maxType, limit/2)) + "\n"
	}
	return llm.Data(source, called+llm.LayoutExcerpt(o.Value, limit, p.mask.Text))
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
