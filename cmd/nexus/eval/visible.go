package eval

import (
	"context"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
)

// prompts finds the tools of a catalog that a planner shows to a model.
type prompts struct {
	planner *planner.Planner
	finder  *search.Finder
	tools   planner.List
	byID    map[string]int // in tools
}

func newPrompts(finder *search.Finder, tools []Tool) *prompts {
	p := &prompts{finder: finder, tools: planTools(tools), byID: map[string]int{}}
	count := map[string]int{}
	for _, t := range tools {
		count[t.Name]++
	}
	for i, t := range tools {
		p.byID[t.ID] = i
		if count[t.Name] > 1 {
			p.tools[i].Name = t.Server + "." + t.Name // as a router names it
		}
	}
	p.planner = planner.New(planner.Options{Ranker: p, Fallback: noFallback{}})
	return p
}

// Rank implements planner.Ranker.
func (p *prompts) Rank(ctx context.Context, question string, _ planner.Tools, limit int) (ranked []plan.Tool) {
	for _, hit := range p.finder.Search(ctx, question, search.SearchOptions{Limit: limit}) {
		ranked = append(ranked, p.tools[p.byID[hit.ID]])
	}
	return ranked
}

// show reports whether the prompt for a question names a tool of each group, and whether it also shows all required
// parameters of that tool.
func (p *prompts) show(ctx context.Context, q query) (named, visible bool) {
	shown := p.planner.Show(ctx, planner.Request{Query: q.Query, Tools: p.tools})
	named, visible = true, true
	for _, group := range q.Relevant {
		has := func(whole bool) bool {
			return slices.ContainsFunc(group, func(id string) bool {
				i, ok := p.byID[id]
				if !ok {
					return false
				}
				byName, withParameters := shown.Visible(p.tools[i].Name)
				return withParameters || byName && !whole
			})
		}
		named, visible = named && has(false), visible && has(true)
	}
	return named, visible
}
