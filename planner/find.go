package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bounds of searches for tools.
const (
	maxSearches = 3  // turns with searches, of one query
	maxQueries  = 5  // of one turn
	maxFound    = 10 // tools for each
)

// findings is the data of the message after a search.
type findings struct {
	Refused string // why the search was refused
	Report  string // data block
	Tools   string // data block, may be empty
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
		c.sought = wanted
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
		next.Report, next.Tools = c.find(ctx, wanted)
	}
	c.say(llm.RoleAssistant, short.Text(answer, maxAnswer))
	c.say(llm.RoleUser, prompts.Render("plan_more", next))
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
		ranked[i] = c.planner.rank(ctx, c.req, q, maxFound)
	}
	before := map[string]detail{}
	for place := range maxFound { // the best tools of each search first
		for _, list := range ranked {
			if place < len(list) {
				merged = append(merged, list[place])
				before[list[place].Name] = c.shown.details[list[place].Name]
			}
		}
	}
	room := c.shown.room / (maxSearches + 1 - c.shown.searches)
	taken := 0
	if c.shown.native {
		tools, taken = c.planner.offer(c.req.Tools, merged, room, c.shown)
	} else {
		tools = c.planner.arrange(c.req.Tools, merged, nil, room, room*2/3, c.shown)
		taken = len(tools)
	}
	c.shown.room -= taken
	if tools != "" {
		c.shown.found = append(c.shown.found, tools)
	}
	lines := []string{}
	if len(wanted) == 0 {
		c.missed = true
		lines = append(lines, "the search has no query")
	}
	for i, q := range wanted {
		var found, above, beyond []string
		for _, t := range ranked[i] {
			name := short.Line(t.Name, maxName)
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
	for _, q := range c.sought {
		unmet = append(unmet, plan.Unmet{Text: q, Reason: plan.UnmetNoTool})
	}
	if nothing && c.missed && len(unmet) == 0 {
		unmet = []plan.Unmet{{Text: c.req.Query, Reason: plan.UnmetNoTool}}
	}
	return unmet
}
