package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bounds of planning with a model.
const (
	maxTokens   = 150_000  // after which there is no other round or search
	maxSteps    = 50       // steps of all plans of one query
	maxSearches = 2        // searches for other tools
	maxAnswer   = 16 << 10 // bytes of its response that it is shown again
	maxProblems = 20       // problems that it is shown
)

// findTools is a pseudo tool by which a model searches for tools that it was not shown.
const findTools = "find_tools"

// conversation is the conversation with the model for one plan.
type conversation struct {
	planner   *Planner
	req       Request
	model     llm.Model
	shown     []plan.Tool
	canSearch bool // there are more tools, and the model may search for them
	turns     []llm.Message
	emitted   map[string]bool
	usage     llm.Usage
	tokens    int // used for the query so far
}

// ask gets a plan from the model: in one turn, more if it searches for tools, and one to repair problems.
func (p *Planner) ask(ctx context.Context, model llm.Model, req Request) (Result, error) {
	ctx, stop := share(ctx)
	defer stop()
	c := &conversation{planner: p, req: req, model: model, emitted: map[string]bool{}}
	c.tokens = req.Tokens
	c.shown = p.shortlist(ctx, req)
	known, unknown := req.Tools.Lookup(findTools)
	taken := unknown == nil && known.Name == findTools
	c.canSearch = len(req.Tools.First(len(c.shown)+1)) > len(c.shown) && !taken
	made, warnings, err := c.run(ctx)
	if err != nil {
		return Result{Usage: c.usage, Tokens: c.tokens}, err
	}
	return Result{
		Plan: c.finish(made.plan), Problems: made.problems, Usage: c.usage, Tokens: c.tokens, Warnings: warnings,
	}, nil
}

// shortlist returns the tools that the model is shown: all if they are few, else the best.
func (p *Planner) shortlist(ctx context.Context, req Request) []plan.Tool {
	first := req.Tools.First(p.cfg.Shortlist + 1)
	if len(first) <= p.cfg.Shortlist {
		return first
	}
	if p.ranker == nil {
		return first[:p.cfg.Shortlist]
	}
	ranked := p.ranker.Rank(ctx, req.Query, req.Tools, p.cfg.Shortlist)
	return slices.Clip(ranked[:min(len(ranked), p.cfg.Shortlist)])
}

// A draft is a readable plan with the problems of its steps.
type draft struct {
	plan     plan.Plan
	problems []plan.Problem
}

// run takes turns until there is a plan.
func (c *conversation) run(ctx context.Context) (*draft, []string, error) {
	if c.spent() {
		return nil, nil, errTokens
	}
	c.say(llm.RoleUser, c.user())
	var first *draft // the plan before the repair turn, if it could be read
	repaired := false
	for searches := 0; ; {
		text, err := c.turn(ctx)
		if err != nil {
			return unrepaired(first, err)
		}
		made, unreadable := plan.Parse(text, c.takenIDs()...)
		if wanted := c.takeSearches(&made); len(wanted) > 0 && searches < maxSearches && !c.spent() {
			searches++
			c.showMore(ctx, text, wanted)
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
		c.showProblems(text, d, warnings, unreadable)
	}
}

// faulty reports whether a draft has problems that the model must repair: not arguments that the user can be asked for.
func (c *conversation) faulty(d *draft) bool {
	return slices.ContainsFunc(d.problems, func(p plan.Problem) bool { return !c.req.CanAsk || len(p.Missing) == 0 })
}

// unrepaired makes do with the plan before the repair turn, if there is one and the model has not declined since.
func unrepaired(first *draft, err error) (*draft, []string, error) {
	if first == nil || declined(err) != nil {
		return nil, nil, err
	}
	return first, []string{fmt.Sprintf("the plan could not be repaired: %v", err)}, nil
}

// turn asks the model once and reads the steps from the stream.
func (c *conversation) turn(ctx context.Context) (string, error) {
	request := llm.Request{System: system, Messages: c.turns, Schema: planSchema}
	if c.req.OnStep != nil {
		reader, searching := plan.NewReader(c.takenIDs()...), false
		request.OnRestart = func() { reader, searching = plan.NewReader(c.takenIDs()...), false }
		request.OnDelta = func(piece string) {
			for _, step := range reader.Feed(piece) {
				searching = searching || c.canSearch && step.Tool == findTools // then this is not the plan
				if !searching && !reader.Sequential() {
					c.start(step)
				}
			}
		}
	}
	resp, err := c.model.Complete(ctx, request)
	c.usage.Add(resp.Usage)
	c.tokens += max(resp.Usage.InputTokens+resp.Usage.OutputTokens, estimate(request, resp))
	return resp.Text, err
}

// spent reports whether the tokens for rounds and searches are used up. Repairs do not count.
func (c *conversation) spent() bool { return c.tokens >= maxTokens }

// estimate returns the approximate tokens of a turn, at four bytes each.
func estimate(request llm.Request, resp llm.Response) int {
	bytes := len(request.System) + len(resp.Text)
	for _, m := range request.Messages {
		bytes += len(m.Content)
	}
	return bytes / 4
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
	if plan.WithoutRepeats(&alone, c.req.Outcomes, c.mayLookAgain); len(alone.Steps) == 0 {
		return
	}
	s = alone.Steps[0]
	tool, unknown := c.req.Tools.Lookup(s.Tool) // checking has given it its plan name
	key := s.ID + "\x00" + s.Tool + "\x00" + string(s.Arguments)
	if unknown != nil || !tool.Annotations.ReadOnly() || c.emitted[key] || slices.Contains(c.takenIDs(), s.ID) {
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
	problems := plan.Check(&p, c.planner.validator, c.req.Tools.Lookup, c.req.Outcomes)
	if !c.req.Approved {
		problems = append(problems, plan.Twins(&p, c.req.Tools.Lookup)...)
	}
	return &draft{p, problems}, warnings
}

// room is how many steps the query may still take.
func (c *conversation) room() int { return max(maxSteps-len(c.req.Outcomes), 0) }

// finish completes a plan and removes steps that ran in an earlier round.
func (c *conversation) finish(p plan.Plan) plan.Plan {
	p.Source, p.Rounds = plan.SourceModel, c.req.Round
	p.More = p.More && c.req.Round < c.req.MaxRounds
	if p.More { // the last round says what is left
		p.Unmet = nil
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

func (c *conversation) takenIDs() []string {
	ids := make([]string, len(c.req.Outcomes))
	for i, o := range c.req.Outcomes {
		ids[i] = o.Step.ID
	}
	return ids
}

// takeSearches removes the searches for tools from a plan and returns their queries.
func (c *conversation) takeSearches(p *plan.Plan) []string {
	if !c.canSearch {
		return nil
	}
	var wanted []string
	p.Steps = slices.DeleteFunc(p.Steps, func(s plan.Step) bool {
		if s.Tool != findTools {
			return false
		}
		if q := searchQuery(s.Arguments); q != "" && len(wanted) < 5 {
			wanted = append(wanted, q)
		}
		return true
	})
	return wanted
}

// showMore shows the model the tools that a search finds.
func (c *conversation) showMore(ctx context.Context, answer string, wanted []string) {
	var found []plan.Tool
	for _, q := range wanted {
		for _, t := range c.rank(ctx, q) {
			same := func(o plan.Tool) bool { return o.Name == t.Name && o.Server == t.Server }
			if !slices.ContainsFunc(c.shown, same) {
				c.shown = append(slices.Clip(c.shown), t)
				found = append(found, t)
			}
		}
	}
	c.say(llm.RoleAssistant, short.Text(answer, maxAnswer))
	c.say(llm.RoleUser, render("plan_more.tmpl", c.view(found, maxFound)))
}

func (c *conversation) rank(ctx context.Context, query string) []plan.Tool {
	if c.planner.ranker == nil {
		return nil
	}
	ranked := c.planner.ranker.Rank(ctx, query, c.req.Tools, c.planner.cfg.Shortlist)
	return ranked[:min(len(ranked), c.planner.cfg.Shortlist)]
}

// showProblems asks the model to repair its plan.
func (c *conversation) showProblems(answer string, d *draft, warnings []string, unreadable error) {
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
			lines = append(lines, fmt.Sprintf("step %s: %s: %s", p.Step, p.Error.Reason, p.Error.Message))
		}
	}
	view := c.view(nil, 0)
	view.Problems = llm.Data("checking the plan", short.Text(strings.Join(lines, "\n"), maxAnswer))
	c.say(llm.RoleAssistant, short.Text(answer, maxAnswer))
	c.say(llm.RoleUser, render("plan_repair.tmpl", view))
}
