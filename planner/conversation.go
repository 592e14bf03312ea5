package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/texts"
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
	planner    *Planner
	req        Request
	model      llm.Model
	shown      *Shown
	searched   bool     // the model searched
	missed     bool     // a search found nothing or was refused
	refused    bool     // the model was told not to search again
	unanswered []string // queries after that refusal
	messages   []llm.Message
	emitted    map[string]bool
	usage      llm.Usage
	tokens     int // used for the query so far
}

// ask gets a plan from the model in one request, plus requests for tool searches and one to repair problems.
func (p *Planner) ask(ctx context.Context, model llm.Model, req Request) (Result, error) {
	c := &conversation{planner: p, req: req, model: model, emitted: map[string]bool{}}
	c.tokens = req.Tokens
	switch c.shown = req.Shown; {
	case c.shown.native && c.shown.details != nil:
		c.shown.best = c.shown.names(req.Tools)
	case c.shown.native || c.shown.details == nil && p.offersTools(req):
		*c.shown = *p.showTools(ctx, req)
	default:
		p.show(ctx, req, c.shown)
	}
	made, warnings, err := c.run(ctx)
	if err != nil {
		return Result{Usage: c.usage, Tokens: c.tokens}, err
	}
	c.shown.invalid = ""
	for _, problem := range made.problems {
		if problem.Step == "" {
			c.shown.invalid = problem.Error.Message
		}
	}
	// Native calls do not tell whether they are the last.
	if made.plan.More && made.plan.MoreIf == "" && !c.shown.native && req.Round >= req.MaxRounds {
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

// run asks the model until there is a plan.
func (c *conversation) run(ctx context.Context) (*draft, []string, error) {
	if c.spent() {
		return nil, nil, errTokens
	}
	c.add(llm.RoleUser, c.opening())
	var first *draft // the plan before the repair, if it could be read
	repaired := false
	for {
		text, err := c.complete(ctx)
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

// faulty reports whether a draft has problems that the model must repair. Arguments to ask the user for are no problem,
// and an invalid condition for another round counts as true.
func (c *conversation) faulty(d *draft) bool {
	return slices.ContainsFunc(d.problems, func(p plan.Problem) bool {
		return p.Step != "" && (!c.req.CanAsk || len(p.Missing) == 0)
	})
}

// unrepaired returns the plan before the repair, if it was readable and the model has not declined since.
func unrepaired(first *draft, err error) (*draft, []string, error) {
	if first == nil || declined(err) != nil {
		return nil, nil, err
	}
	return first, []string{fmt.Sprintf("the plan could not be repaired: %v", err)}, nil
}

// complete asks the model once and reads the steps from the stream.
func (c *conversation) complete(ctx context.Context) (string, error) {
	request := llm.Request{System: system(), Messages: c.messages, Schema: planSchema()}
	var names map[string]string
	switch {
	case c.shown.native:
		request.System, request.Schema = toolSystem(), nil
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
	if failure := new(llm.Error); errors.As(err, &failure) && failure.Kind == llm.Empty && !c.shown.native {
		err = nil // no text is a text without a plan
	}
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

// estimate returns the approximate tokens of a request, at bytesPerToken each.
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
		p.Steps, p.More, p.MoreIf = p.Steps[:room], false, ""
		p.Unmet = append(p.Unmet, plan.Unmet{Reason: plan.UnmetFailed,
			Text: fmt.Sprintf("the plan from step %d on, because a query takes at most %d steps", room+1, maxSteps)})
	}
	written := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		written[i] = s.ID
	}
	problems := plan.Check(&p, c.planner.validator, c.req.Tools.Lookup, c.req.Outcomes)
	if !c.req.Approved {
		problems = append(problems, plan.RepeatedWrites(&p, c.req.Tools.Lookup)...)
	}
	return &draft{p, problems, written}, warnings
}

// room returns the number of steps that the query may still make.
func (c *conversation) room() int { return max(maxSteps-len(c.req.Outcomes), 0) }

// finish completes a plan and removes steps that ran in an earlier round.
func (c *conversation) finish(p plan.Plan) plan.Plan {
	p.Source, p.Rounds = plan.SourceModel, c.req.Round
	p.More = p.More && c.req.Round < c.req.MaxRounds
	if p.More && p.MoreIf == "" { // the last round reports unmet parts
		p.Unmet = nil
	} else {
		p.Unmet = append(p.Unmet, c.missing(p)...)
	}
	nameMissing(p.Unmet, c.req)
	plan.WithoutRepeats(&p, c.req.Outcomes, c.mayLookAgain)
	return p
}

// nameMissing completes the calls that lack arguments: with the tool's name in plans, none if it is unknown, and a
// text, which is the whole question if nothing else is unmet.
func nameMissing(parts []plan.Unmet, req Request) {
	for i := range parts {
		part := &parts[i]
		if part.Text != "" {
			continue
		}
		if part.Text = req.Query; len(parts) > 1 {
			part.Text = part.Tool
		}
		tool, _ := req.Tools.Lookup(part.Tool)
		part.Tool = tool.Name
	}
}

// mayLookAgain reports whether a step may repeat a call of an earlier round: if it reads, and the model asked for this
// round, not a failure.
func (c *conversation) mayLookAgain(s plan.Step) bool {
	tool, unknown := c.req.Tools.Lookup(s.Tool)
	return unknown == nil && tool.Reads() && !c.req.Replan
}

func (c *conversation) add(role, text string) {
	c.messages = append(c.messages, llm.Message{Role: role, Content: text})
}

func takenIDs(outcomes []plan.Outcome) []string {
	ids := make([]string, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.Step.ID
	}
	return ids
}

// Bounds of searches for tools.
const (
	maxSearches = 3  // requests with searches, of one query
	maxQueries  = 5  // of one request
	maxFound    = 10 // tools for each
)

// findings is the data of the message after a search.
type findings struct {
	Refused string // why the search was refused
	Report  string // data block
	Tools   string // data block, may be empty
	Marks   *marks // of these tools, nil if they are explained
	Query   string
}

// search removes the searches from a plan and tells the model their results, or why they are refused. It reports false
// if the plan has no searches, or if the model keeps searching after a refusal.
func (c *conversation) search(ctx context.Context, answer string, made *plan.Plan) bool {
	wanted, some := c.takeSearches(made)
	if !some {
		return false
	}
	if c.refused {
		c.unanswered = wanted
		return false
	}
	next := findings{Query: c.req.Query}
	switch {
	case !c.shown.others:
		next.Refused = "All tools are shown above."
	case c.shown.searches >= maxSearches || c.spent():
		next.Refused = "No further search is possible."
	}
	c.searched = true
	if c.refused = next.Refused != ""; c.refused {
		c.missed = true
	} else {
		c.shown.searches++
		explained := c.marks(nil)
		next.Report, next.Tools = c.find(ctx, wanted)
		next.Marks = c.marks(explained)
	}
	c.add(llm.RoleAssistant, texts.Cut(answer, maxAnswer))
	c.add(llm.RoleUser, prompts.Render("plan_more", next))
	return true
}

// takeSearches removes the searches for tools from a plan and returns their queries. It reports whether there were any.
func (c *conversation) takeSearches(p *plan.Plan) (wanted []string, some bool) {
	p.Steps = slices.DeleteFunc(p.Steps, func(s plan.Step) bool {
		if !c.shown.isSearch(s, c.req.Tools) {
			return false
		}
		some = true
		if q := searchQuery(s.Arguments); q != "" && len(wanted) < maxQueries {
			wanted = append(wanted, q)
		}
		return true
	})
	return wanted, some
}

// isSearch reports whether a step is a search for tools. Where the model is shown all tools, a server's tool may have
// that name.
func (s *Shown) isSearch(step plan.Step, tools Tools) bool {
	if step.Tool != findTools {
		return false
	}
	_, unknown := tools.Lookup(findTools)
	return s.others || unknown != nil
}

// find searches for tools. It returns two data blocks: the result of each search, and the tools that were not shown
// before. Found tools stay in the prompts of the query.
func (c *conversation) find(ctx context.Context, wanted []string) (report, tools string) {
	ranked := make([][]plan.Tool, len(wanted))
	var merged []plan.Tool
	for i, q := range wanted {
		ranked[i] = c.planner.ranker.Rank(ctx, q, c.req.Tools, maxFound)
	}
	before := map[string]detail{}
	for i := range maxFound { // the best tools of each search first
		for _, list := range ranked {
			if i < len(list) {
				merged = append(merged, list[i])
				before[list[i].Name] = c.shown.details[list[i].Name]
			}
		}
	}
	room := c.shown.room / (maxSearches + 1 - c.shown.searches)
	taken := 0
	if c.shown.native {
		tools, taken = c.planner.offer(c.req.Tools, merged, room, c.shown)
	} else {
		l := layout{room: room - frame, servers: c.req.Tools.Servers(), shown: c.shown}
		c.planner.addFull(&l, merged, room*2/3)
		c.planner.addShort(&l, merged)
		tools = l.String()
		taken = len(tools)
	}
	c.shown.room -= taken
	for _, t := range merged {
		if c.shown.details[t.Name] == whole && before[t.Name] < whole {
			c.shown.kept = append(c.shown.kept, t.Name)
		}
	}
	lines := []string{}
	if len(wanted) == 0 {
		c.missed = true
		lines = append(lines, "the search has no query")
	}
	for i, q := range wanted {
		var found, above, beyond []string
		for _, t := range ranked[i] {
			name := texts.Line(t.Name, maxName)
			switch now := c.shown.details[t.Name]; {
			case now > before[t.Name]:
				found = append(found, name)
			case now > 0:
				above = append(above, name)
			default:
				beyond = append(beyond, name)
			}
		}
		line := fmt.Sprintf("%q: ", q)
		switch {
		case len(found) > 0:
			line += "found " + strings.Join(found, ", ")
		case len(above) > 0:
			line += "found only what was shown before: " + strings.Join(above, ", ")
		case len(beyond) > 0:
			line += "there is no room to show " + strings.Join(beyond, ", ")
		default:
			line += "found nothing"
		}
		c.missed = c.missed || len(found) == 0
		lines = append(lines, line)
	}
	return llm.Data("the search for tools", strings.Join(lines, "\n")), tools
}

// missing returns the parts of the question for which the model found no tool and which the last plan does not name.
func (c *conversation) missing(p plan.Plan) (unmet []plan.Unmet) {
	nothing := len(p.Steps) == 0 && len(p.Unmet) == 0
	if nothing && len(c.req.Outcomes) == 0 && c.searched {
		return []plan.Unmet{{Text: c.req.Query, Reason: plan.UnmetNoTool}}
	}
	for _, q := range c.unanswered {
		unmet = append(unmet, plan.Unmet{Text: q, Reason: plan.UnmetNoTool})
	}
	if nothing && c.missed && len(unmet) == 0 {
		unmet = []plan.Unmet{{Text: c.req.Query, Reason: plan.UnmetNoTool}}
	}
	return unmet
}

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
			p.Step = d.idOf(p.Step)
			lines = append(lines, p.String())
		}
		next.Schemas = c.schemas(c.involved(ctx, d))
	}
	next.Problems = llm.Data("checking the plan", texts.Cut(strings.Join(lines, "\n"), maxAnswer))
	answer = cmp.Or(strings.TrimSpace(answer), "(nothing)") // APIs refuse an empty message
	c.add(llm.RoleAssistant, texts.Cut(answer, maxAnswer))
	c.add(llm.RoleUser, prompts.Render("plan_repair", next))
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
	for _, known := range texts.Similar(name, slices.Sorted(maps.Keys(c.shown.details)), maxSimilar) {
		if t, unknown := c.req.Tools.Lookup(known); unknown == nil {
			tools = append(tools, t)
		}
	}
	if len(tools) == 0 {
		tools = c.planner.ranker.Rank(ctx, texts.Line(name, maxName), c.req.Tools, maxSimilar)
	}
	return tools
}

// schemas returns a data block with the whole schemas of tools, within a size. Cut schemas are marked.
func (c *conversation) schemas(tools []plan.Tool) string {
	room := c.planner.cfg.ToolTokens * bytesPerToken / 4
	var lines []string
	for _, t := range tools {
		text := texts.Line(t.Name, maxName) + " takes " + llm.Excerpt(t.InputSchema, maxSchema, nil)
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
