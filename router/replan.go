package router

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// unsatisfied reports whether a round that a model planned calls for another plan: a step failed, or one that only
// reads found nothing, and a plan may know another way. It does not where a call may have changed something without
// our knowing: then the user has to look first.
func (s *rounds) unsatisfied(r *round) bool {
	if r.plan.Source != plan.SourceModel || r.number >= s.most {
		return false
	}
	if slices.ContainsFunc(s.record.Outcomes, func(o plan.Outcome) bool {
		return slices.ContainsFunc(o.Calls(), plan.Outcome.Unsettled) && !s.reads(o.Step)
	}) {
		return false
	}
	wanted := false
	for _, o := range r.outcomes {
		switch {
		case o.Skipped:
		case o.OK():
			wanted = wanted || o.Empty() && s.reads(o.Step)
		case !r.refused(o.Step.ID):
			wanted = wanted || mayBeMended(o.Err.Reason)
		}
	}
	return wanted
}

// reads reports whether the tool of a step changes nothing.
func (s *rounds) reads(step plan.Step) bool {
	tool, unknown := s.catalog.Lookup(step.Tool, s.q.Origin.Visible)
	return unknown == nil && tool.Reads()
}

// refused reports whether a step was at fault in the plan already: the model has been shown that and could not help it.
func (r *round) refused(step string) bool {
	return slices.ContainsFunc(r.problems, func(p plan.Problem) bool { return p.Step == step })
}

// mayBeMended reports whether another plan could do without a step that failed for this reason. What follows from
// another failure, or from a word of the user, is no reason of its own.
func mayBeMended(why string) bool {
	switch why {
	case reason.DependencyFailed, reason.NeedsApproval, reason.Declined, reason.Cancelled,
		reason.Internal:
		return false
	}
	return true
}
