package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Bounds of planning with a model.
const (
	maxTokens = 150_000  // no further round or search after so many
	maxSteps  = 100      // steps of all plans of one query
	maxAnswer = 16 << 10 // bytes of a response that a repair prompt repeats
)

// findTools is a pseudo tool with which a model searches for tools that it was not shown. If there are such tools, a
// server's tool of that name must be called by its qualified name, so that no server can intercept the search.
const findTools = "find_tools"

// conversation is the conversation with the model for one plan.
type conversation struct {
	planner  *Planner
	req      Request
	model    llm.Model
	shown    *Shown
	searched bool     // the model searched
	missed   bool     // a search found nothing or was refused
	refused  bool     // the model was told not to search again
	sought   []string // queries after that refusal
	turns    []llm.Message
	emitted  map[string]bool
	usage    llm.Usage
	tokens   int // used for the query so far
}

// ask gets a plan from the model in one turn, plus turns for tool searches and one to repair problems.
func (p *Planner) ask(ctx context.Context, model llm.Model, req Request) (Result, error) {
	c := &conversation{planner: p, req: req, model: model, emitted: map[string]bool{}}
	c.tokens = req.Tokens
	if c.shown = req.Shown; !c.shown.started {
		if c.shown.native || p.offersTools(req) {
			*c.shown = *p.showTools(ctx, req)
		} else {
			*c.shown = *p.Show(ctx, req)
		}
	}
	made, warnings, err := c.run(ctx)
	if err != nil {
		return Result{Usage: c.usage, Tokens: c.tokens}, err
	}
	// Native calls do not tell whether they are the last.
	if made.plan.More && !c.shown.native && req.Round >= req.MaxRounds {
		warnings = append(warnings, fmt.Sprintf("the plan asks for another round, but max_rounds is %d", req.MaxRounds))
	}
	return Result{
		Plan: c.finish(made.plan), Problems: made.problems, Usage: c.usage, Tokens: c.tokens, Warnings: warnings,
	}, nil
}

// A draft is a readable plan with the problems of its steps.
type draft struct {
	plan     plan.Plan
	problems []plan.Problem
	written  []string // ids of the steps as in the model's text
}

// idOf returns the id of a step as in the model's text.
func (d *draft) idOf(id string) string {
	for i, s := range d.plan.Steps {
		if s.ID == id {
			return d.written[i]
		}
	}
	return id
}

// run takes turns until there is a plan.
func (c *conversation) run(ctx context.Context) (*draft, []string, error) {
	if c.spent() {
		return nil, nil, errTokens
	}
	c.say(llm.RoleUser, c.open())
	var first *draft // the plan before the repair turn, if it could be read
	repaired := false
	for {
		text, err := c.turn(ctx)
		if err != nil {
			return unrepaired(first, err)
		}
		made, unreadable := plan.Parse(text, takenIDs(c.req.Outcomes)...)
		if c.search(ctx, text, &made) {
			continue
		}
		var d *draft
		var warnings []string
		if unreadable == nil {
			d, warnings = c.check(made)
		}
		switch {
		case d != nil && !c.faulty(d) && len(warnings) == 0, d != nil && repaired:
			return d, warnings, nil
		case repaired:
			return unrepaired(first, fmt.Errorf("%w: %w", errUnreadable, unreadable))
		}
		first, repaired = d, true
		c.showProblems(ctx, text, d, warnings, unreadable)
	}
}

// faulty reports whether a draft has problems that the model must repair. Arguments to ask the user for are no problem.
func (c *conversation) faulty(d *draft) bool {
	return slices.ContainsFunc(d.problems, func(p plan.Problem) bool { return !c.req.CanAsk || len(p.Missing) == 0 })
}

// unrepaired returns the plan before the repair turn, if it was readable and the model has not declined since.
func unrepaired(first *draft, err error) (*draft, []string, error) {
	if first == nil || declined(err) != nil {
		return nil, nil, err
	}
	return first, []string{fmt.Sprintf("the plan could not be repaired: %v", err)}, nil
}

// turn asks the model once and reads the steps from the stream.
func (c *conversation) turn(ctx context.Context) (string, error) {
	request := llm.Request{System: system, Messages: c.turns, Schema: planSchema}
	var names map[string]string
	switch {
	case c.shown.native:
		request.System, request.Schema = toolSystem, nil
		request.Tools, names = c.planner.nativeTools(c.req.Tools, c.shown)
	case c.req.OnStep != nil:
		reader, searching := plan.NewReader(takenIDs(c.req.Outcomes)...), false
		request.OnRestart = func() { reader, searching = plan.NewReader(takenIDs(c.req.Outcomes)...), false }
		request.OnDelta = func(piece string) {
			for _, step := range reader.Feed(piece) {
				searching = searching || c.shown.isSearch(step, c.req.Tools) // then this is not the plan
				if !searching && !reader.Sequential() {
					c.start(step)
				}
			}
		}
	}
	resp, err := c.model.Complete(ctx, request)
	c.usage.Add(resp.Usage)
	c.tokens += max(resp.Usage.InputTokens+resp.Usage.OutputTokens, estimate(request, resp))
	if c.shown.native {
		c.shown.called = len(resp.Calls) > 0
		return planOf(resp, names), err
	}
	return resp.Text, err
}

// spent reports whether the tokens for rounds and searches are used up. Repairs do not count.
func (c *conversation) spent() bool { return c.tokens >= maxTokens }

// estimate returns the approximate tokens of a turn, at bytesPerToken each.
func estimate(request llm.Request, resp llm.Response) int {
	bytes := len(request.System) + len(resp.Text)
	for _, c := range resp.Calls {
		bytes += len(c.Name) + len(c.Arguments)
	}
	for _, m := range request.Messages {
		bytes += len(m.Content)
	}
	for _, t := range request.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return (bytes + bytesPerToken - 1) / bytesPerToken
}

// start passes a step to OnStep if it only reads and needs no other step.
func (c *conversation) start(s plan.Step) {
	mayBeStep := func(string) bool { return true }
	if s.Invalid != nil || len(s.Needs(mayBeStep)) > 0 || len(c.emitted) >= c.room() {
		return
	}
	alone := plan.Plan{Steps: []plan.Step{s}}
	if len(plan.Check(&alone, c.planner.validator, c.req.Tools.Lookup, c.req.Outcomes)) > 0 {
		return
	}
	if plan.WithoutRepeats(&alone, c.req.Outcomes, c.mayLookAgain); len(alone.Steps) == 0 || alone.Steps[0].ID != s.ID {
		return // a new id depends on the other steps
	}
	s = alone.Steps[0]
	tool, unknown := c.req.Tools.Lookup(s.Tool) // checking has given it its plan name
	key := s.ID + "\x00" + s.Tool + "\x00" + string(s.Arguments)
	if unknown != nil || !tool.Annotations.ReadOnly() || c.emitted[key] ||
		slices.Contains(takenIDs(c.req.Outcomes), s.ID) {
		return
	}
	c.emitted[key] = true
	c.req.OnStep(s)
}

// check cuts a plan to its bounds, with a warning, and checks its steps.
func (c *conversation) check(p plan.Plan) (*draft, []string) {
	var warnings []string
	if n, room := len(p.Steps), c.room(); n > room {
		warnings = append(warnings, fmt.Sprintf("the plan has %d steps; only the first %d are taken", n, room))
		p.Steps = p.Steps[:room]
	}
	written := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		written[i] = s.ID
	}
	problems := plan.Check(&p, c.planner.validator, c.req.Tools.Lookup, c.req.Outcomes)
	if !c.req.Approved {
		problems = append(problems, plan.Twins(&p, c.req.Tools.Lookup)...)
	}
	return &draft{p, problems, written}, warnings
}

// room returns the number of steps that the query may still make.
func (c *conversation) room() int { return max(maxSteps-len(c.req.Outcomes), 0) }

// finish completes a plan and removes steps that ran in an earlier round.
func (c *conversation) finish(p plan.Plan) plan.Plan {
	p.Source, p.Rounds = plan.SourceModel, c.req.Round
	p.More = p.More && c.req.Round < c.req.MaxRounds
	if p.More { // the last round reports unmet parts
		p.Unmet = nil
	}
	if !p.More {
		p.Unmet = append(p.Unmet, c.missing(p)...)
	}
	plan.WithoutRepeats(&p, c.req.Outcomes, c.mayLookAgain)
	return p
}

// mayLookAgain reports whether a step may repeat a call of an earlier round: if it reads, and the model asked for this
// round, not a failure.
func (c *conversation) mayLookAgain(s plan.Step) bool {
	tool, unknown := c.req.Tools.Lookup(s.Tool)
	return unknown == nil && tool.Reads() && !c.req.Replan
}

func (c *conversation) say(role, text string) {
	c.turns = append(c.turns, llm.Message{Role: role, Content: text})
}

func takenIDs(outcomes []plan.Outcome) []string {
	ids := make([]string, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.Step.ID
	}
	return ids
}
