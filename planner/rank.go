package planner

import (
	"context"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// rank returns the tools that fit a question, best first. If one server has most of them, only half are its tools,
// followed by those of the others: it may have thousands that repeat the question.
func (p *Planner) rank(ctx context.Context, req Request, limit int) []plan.Tool {
	ranked := p.ranker.Rank(ctx, req.Query, req.Tools, limit)
	if len(ranked) < limit || len(req.Tools.Servers()) == 1 {
		return ranked
	}
	of := map[string][]plan.Tool{}
	for _, t := range ranked {
		if of[t.Server] = append(of[t.Server], t); len(of[t.Server]) > limit/2 {
			own := of[t.Server][:limit/2]
			return append(own, p.ranker.Rank(ctx, req.Query, without{req.Tools, t.Server}, limit/2)...)
		}
	}
	return ranked
}

// without are tools without those of a server, for a search.
type without struct {
	Tools
	server string
}

// Has implements Tools. The server may have its name in the index.
func (w without) Has(server, tool string) bool {
	of, _ := search.Owner(server)
	return of != w.server && w.Tools.Has(server, tool)
}

// Ranking ranks tools by an index of the whole catalog and keeps what a query may use.
type Ranking struct {
	Finder *search.Finder
	Tracer tracing.Tracer
	Took   func(time.Duration) // called after each search by question; may be nil
}

// Search returns the tools that fit a question best, best first, by their full names. literal searches for the rules,
// which act on what is found.
func (r Ranking) Search(ctx context.Context, question string, tools Tools, limit int, literal bool) []search.Hit {
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

// Rank implements Ranker.
func (r Ranking) Rank(ctx context.Context, question string, tools Tools, limit int) []plan.Tool {
	return found(tools, r.Search(ctx, question, tools, limit, false))
}

// Catalog returns the tools that the rules may use.
func (r Ranking) Catalog(tools Tools) rules.Catalog { return literal{r, tools} }

// literal implements rules.Catalog.
type literal struct {
	ranking Ranking
	tools   Tools
}

// Ask implements rules.Catalog.
func (l literal) Ask(ctx context.Context, question string, limit int) []plan.Tool {
	return found(l.tools, l.ranking.Search(ctx, question, l.tools, limit, true))
}

// Look implements rules.Catalog.
func (l literal) Look(words string, limit int) []plan.Tool {
	opts := search.SearchOptions{Limit: limit, Allow: l.tools.Has, Literal: true}
	return found(l.tools, l.ranking.Finder.Index().Search(words, opts))
}

func found(tools Tools, hits []search.Hit) []plan.Tool {
	out := make([]plan.Tool, 0, len(hits))
	for _, h := range hits {
		if t, unknown := tools.Lookup(h.ID); unknown == nil {
			out = append(out, t)
		}
	}
	return out
}

// Rules is the Fallback that plans by rules.
type Rules struct {
	Planner *rules.Planner
	Ranking Ranking
}

// Plan implements Fallback.
func (r Rules) Plan(ctx context.Context, req Request) (plan.Plan, error) {
	return r.Planner.Plan(ctx, req.Query, r.Ranking.Catalog(req.Tools))
}
