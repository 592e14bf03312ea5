package router

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

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

// alike reports whether at least half of the arguments of two calls are nearly the same.
func alike(a, b []byte) bool {
	one, other := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &other) != nil {
		return false
	}
	same := 0
	for name, value := range one {
		if v, ok := other[name]; ok && nearly(string(value), string(v)) {
			same++
		}
	}
	return 2*same >= max(len(one), len(other))
}

// minCommon is how long a beginning two texts have in common that are nearly the same.
const minCommon = 8

// nearly reports whether two texts have the same letters and digits, or one goes on where the other ends.
func nearly(a, b string) bool {
	a, b = letters(a), letters(b)
	return a == b || min(len(a), len(b)) >= minCommon && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
