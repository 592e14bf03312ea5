package router

import (
	"context"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
	"github.com/agenticnexus/agenticnexus/planner/search"
)

// Ranking lets the planners rank tools by a search of the whole catalog, within what a query may use.
type Ranking struct{ Finder *search.Finder }

// Rank implements planner.Ranker.
func (r Ranking) Rank(ctx context.Context, query string, tools []plan.Tool, limit int) []plan.Tool {
	return r.over(tools).Ask(ctx, query, limit)
}

// over returns the search over tools alone.
func (r Ranking) over(tools []plan.Tool) rules.Catalog {
	c := catalog{r.Finder, tools, make(map[string]int, len(tools))}
	for i, t := range tools {
		c.byID[downstream.FullName(t.Server, t.Tool)] = i
	}
	return c
}

// catalog is the tools that one query may use.
type catalog struct {
	finder *search.Finder
	tools  []plan.Tool
	byID   map[string]int
}

// Ask implements rules.Catalog.
func (c catalog) Ask(ctx context.Context, question string, limit int) []plan.Tool {
	return c.found(c.finder.Search(ctx, question, c.options(limit)))
}

// Look implements rules.Catalog.
func (c catalog) Look(words string, limit int) []plan.Tool {
	return c.found(c.finder.Index().Search(words, c.options(limit)))
}

func (c catalog) options(limit int) search.SearchOptions {
	return search.SearchOptions{Limit: limit, Allow: func(id string) bool { _, ok := c.byID[id]; return ok }}
}

func (c catalog) found(hits []search.Hit) []plan.Tool {
	out := make([]plan.Tool, 0, len(hits))
	for _, h := range hits {
		if i, ok := c.byID[h.ID]; ok {
			out = append(out, c.tools[i])
		}
	}
	return out
}

// RulesFallback plans by rules over the same ranking.
type RulesFallback struct {
	Rules   *rules.Planner
	Ranking Ranking
}

// Plan implements planner.Fallback.
func (f RulesFallback) Plan(ctx context.Context, req planner.Request) (plan.Plan, error) {
	return f.Rules.Plan(ctx, req.Query, f.Ranking.over(req.Tools))
}
