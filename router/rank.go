package router

import (
	"context"
	"iter"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// usable is the part of a catalog that one query may use.
type usable struct {
	catalog *downstream.Catalog
	visible downstream.Visible
}

// All implements planner.Tools.
func (u usable) All() iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		for t := range u.catalog.See(u.visible) {
			if !yield(&t.Tool) {
				return
			}
		}
	}
}

// Of implements planner.Tools.
func (u usable) Of(server string) iter.Seq[*plan.Tool] {
	return func(yield func(*plan.Tool) bool) {
		tools := u.catalog.Of(server)
		for i := range tools {
			if t := &tools[i].Tool; u.Has(server, t.Tool) && !yield(t) {
				return
			}
		}
	}
}

// Servers implements planner.Tools.
func (u usable) Servers() (servers []planner.Server) {
	for _, name := range u.catalog.Servers() {
		for range u.Of(name) {
			servers = append(servers, planner.Server{Name: name, Instructions: u.catalog.Instructions(name)})
			break
		}
	}
	return servers
}

// Has implements planner.Tools.
func (u usable) Has(server, tool string) bool {
	return (u.visible == nil || u.visible(server, tool)) && u.catalog.Has(server, tool)
}

// Lookup implements planner.Tools.
func (u usable) Lookup(name string) (plan.Tool, *plan.Error) {
	t, err := u.catalog.Lookup(name, u.visible)
	if err != nil {
		return plan.Tool{}, err
	}
	return t.Tool, nil
}

// Ranking ranks tools for the planners: it searches the whole catalog and keeps what a query may use.
type Ranking struct {
	Finder *search.Finder
	Tracer tracing.Tracer
	Took   func(time.Duration) // called after each search by question; may be nil
}

// find searches the usable tools by a question.
func (r Ranking) find(ctx context.Context, question string, tools planner.Tools, limit int, literal bool) []search.Hit {
	ctx, span := r.Tracer.Start(ctx, tracing.SpanSearch, tracing.With(tracing.Operation.String(tracing.OperationSearch)))
	began := time.Now()
	hits := r.Finder.Search(ctx, question, search.SearchOptions{Limit: limit, Allow: tools.Has, Literal: literal})
	span.SetAttributes(tracing.Found.Int(len(hits)))
	span.End()
	if r.Took != nil {
		r.Took(time.Since(began))
	}
	return hits
}

// Rank implements planner.Ranker.
func (r Ranking) Rank(ctx context.Context, query string, tools planner.Tools, limit int) []plan.Tool {
	return searcher{r, tools, false}.Ask(ctx, query, limit)
}

// searcher searches the tools that one query may use.
type searcher struct {
	ranking Ranking
	tools   planner.Tools
	literal bool // for the rules, which act on what is found
}

// Ask implements rules.Catalog.
func (c searcher) Ask(ctx context.Context, question string, limit int) []plan.Tool {
	return c.found(c.ranking.find(ctx, question, c.tools, limit, c.literal))
}

// Look implements rules.Catalog.
func (c searcher) Look(words string, limit int) []plan.Tool {
	opts := search.SearchOptions{Limit: limit, Allow: c.tools.Has, Literal: c.literal}
	return c.found(c.ranking.Finder.Index().Search(words, opts))
}

func (c searcher) found(hits []search.Hit) []plan.Tool {
	out := make([]plan.Tool, 0, len(hits))
	for _, h := range hits {
		if t, unknown := c.tools.Lookup(h.ID); unknown == nil {
			out = append(out, t)
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
	return f.Rules.Plan(ctx, req.Query, searcher{f.Ranking, req.Tools, true})
}
