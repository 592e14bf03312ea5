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
	likedDepth  = 50  // hits that prefer reorders
	likedWeight = 0.3 // weight of a preferred tool, relative to the best score of the search
)

// prefer raises the scores of tools that have answered similar questions, and adds those that the search did not find
// and the query may use. A score rises by at most likedWeight of the best score.
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

// learn reports the tools that answered a question. It reports nothing if the plan was given or a part was not
// served.
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
