package router

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// unsatisfied reports whether a model's plan should be followed by another: a step failed in a way that another plan
// may avoid, or a read found nothing. It is false if the outcome of any write is unknown: the user has to check
// first.
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

// reads reports whether the tool of a step only reads.
func (s *rounds) reads(step plan.Step) bool {
	tool, unknown := s.usable().Lookup(step.Tool)
	return unknown == nil && tool.Reads()
}

// refused reports whether a step was already invalid in the plan. The repair turn has shown that to the model in
// vain.
func (r *round) refused(step string) bool {
	return slices.ContainsFunc(r.problems, func(p plan.Problem) bool { return p.Step == step })
}

// mayBeMended reports whether another plan may avoid a failure with this reason. Failures that follow from another
// failure or from the user's decision do not count.
func mayBeMended(why string) bool {
	switch why {
	case reason.DependencyFailed, reason.NeedsApproval, reason.Declined, reason.Cancelled,
		reason.Internal:
		return false
	}
	return true
}
