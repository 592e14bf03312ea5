package router

import (
	"cmp"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// unmet lists the parts of the question that no successful step serves: parts without a step, and parts whose steps
// failed and were not made good later.
func (r *Record) unmet(question string) []plan.Unmet {
	out := slices.Clone(r.open)
	for _, o := range r.failed {
		u := plan.Unmet{Text: cmp.Or(o.Step.Serves, r.part(o.Step, question)), Tool: o.Step.Tool,
			Missing: r.missing[o.Step.ID], Step: o.Step.ID}
		u.Reason = unmetReason(r.cause(o).Err.Reason, len(u.Missing) > 0)
		out = append(out, u)
	}
	return out
}

// maxShownPart limits, in bytes, the arguments that stand for a part of the question.
const maxShownPart = 100

// part returns the part of the question that a step serves. If the planner names none, it is the whole question for a
// single step, else the call.
func (r *Record) part(s plan.Step, question string) string {
	switch {
	case len(r.Plan.Steps) == 1:
		return question
	case string(s.Arguments) == "{}":
		return s.Tool
	}
	return s.Tool + " " + printable(string(s.Arguments), maxShownPart)
}

func unmetReason(why string, lacks bool) string {
	switch {
	case why == reason.NeedsApproval:
		return plan.UnmetNeedsApproval
	case why == reason.Declined:
		return plan.UnmetDeclined
	case why == reason.InvalidArguments && lacks:
		return plan.UnmetMissingArgument
	}
	return plan.UnmetFailed
}

// cause returns the original failure behind a failed outcome: its own, or that of the step it depends on.
func (r *Record) cause(o plan.Outcome) plan.Outcome {
	isStep := func(id string) bool {
		return slices.ContainsFunc(r.failed, func(f plan.Outcome) bool { return f.Step.ID == id })
	}
	for range r.failed { // bounds the walk along the chain of failures
		if o.Err.Reason != reason.DependencyFailed {
			break
		}
		needs := o.Step.Needs(isStep)
		i := slices.IndexFunc(r.failed, func(f plan.Outcome) bool { return slices.Contains(needs, f.Step.ID) })
		if i < 0 {
			break
		}
		o = r.failed[i]
	}
	return o
}

// lacks records what a round leaves open: parts without a step and missing arguments of steps.
func (r *Record) lacks(n *round) {
	for _, u := range n.plan.Unmet {
		if !slices.ContainsFunc(r.open, func(o plan.Unmet) bool { return o.Text == u.Text }) {
			r.open = append(r.open, u)
		}
	}
	for _, p := range n.problems {
		if len(p.Missing) > 0 {
			r.missing[p.Step] = p.Missing
		}
	}
}
