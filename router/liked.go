package router

import (
	"cmp"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
)

const (
	likedDepth  = 50  // hits among which tools are preferred
	likedWeight = 0.3 // of what speaks for a tool, against the best score of a search
)

// prefer raises the scores of tools that have answered similar questions, and adds those that were not found, as far as
// a query may use them. No tool passes one whose score is higher by more than that share of the best.
func prefer(hits []search.Hit, liked map[string]float64, limit int, tools planner.Tools) []search.Hit {
	best := 1.0
	if len(hits) > 0 {
		best = hits[0].Score
	}
	found := make(map[string]bool, len(hits))
	for i := range hits {
		found[hits[i].ID] = true
		hits[i].Score += likedWeight * best * liked[hits[i].ID]
	}
	for id, weight := range liked {
		if _, unknown := tools.Lookup(id); unknown == nil && !found[id] {
			hits = append(hits, search.Hit{ID: id, Score: likedWeight * best * weight})
		}
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return hits[:min(limit, len(hits))]
}

// learn tells which tools have answered a question, unless its plan was given or a part of it was not served.
func (r *Router) learn(q *Query, record *Record, catalog *downstream.Catalog) {
	if r.opts.Models.Answered == nil || q.Plan != nil || record.Answer.Degraded || len(record.Unmet) > 0 {
		return
	}
	var tools []string
	for _, o := range record.Outcomes {
		t, unknown := catalog.Lookup(o.Step.Tool, q.Origin.Visible)
		if unknown == nil && o.OK() && !plan.IsErrorText(o.Value) && !slices.Contains(tools, t.Full()) {
			tools = append(tools, t.Full())
		}
	}
	if len(tools) > 0 {
		r.opts.Models.Answered(q.Origin.Caller, q.Text, tools)
	}
}
