package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/synth"
)

// Record is what one query did. It is the only account of it: results, logs and traces are made from it.
type Record struct {
	Answer        synth.Answer
	NeedsApproval bool
	Warnings      []string
	TraceID       string
	Plan          plan.Plan
	Outcomes      []plan.Outcome
	PlannerUsage  llm.Usage
	Planning      time.Duration
	Executing     time.Duration
	Synthesizing  time.Duration
	Total         time.Duration

	failed []plan.Outcome // that no later round made good
}

// Called returns the number of steps that reached a tool.
func (r *Record) Called() int {
	n := 0
	for _, o := range r.Outcomes {
		if o.Attempts > 0 {
			n++
		}
	}
	return n
}

// take notes the plan of a round. A round that adds nothing leaves the plan as it was.
func (r *Record) take(n *round) {
	if n.number > 1 && len(n.plan.Steps) == 0 {
		return
	}
	r.Plan.Source, r.Plan.Rounds = n.plan.Source, n.number
	r.Plan.Steps = append(r.Plan.Steps, n.plan.Steps...)
	r.Plan.Sequential = r.Plan.Sequential || n.plan.Sequential
}

// add notes the outcomes of a round. A failed call is made good by one of the same tool that succeeds in a later round.
func (r *Record) add(round []plan.Outcome) {
	r.Outcomes = append(r.Outcomes, round...)
	r.failed = slices.DeleteFunc(r.failed, func(f plan.Outcome) bool {
		return slices.ContainsFunc(round, func(o plan.Outcome) bool {
			return o.OK() && o.Step.Tool == f.Step.Tool && o.Step.Server == f.Step.Server
		})
	})
	for _, o := range round {
		if !o.OK() {
			r.failed = append(r.failed, o)
		}
	}
}

// nameServers fills in the servers of steps whose tools could not be found, as far as their names tell. servers are those
// that the caller may know of.
func (r *Record) nameServers(servers []string) {
	name := func(s *plan.Step) {
		if s.Server == "" {
			s.Server = serverOf(s.Tool, servers)
		}
	}
	for i := range r.Plan.Steps {
		name(&r.Plan.Steps[i])
	}
	for i := range r.Outcomes {
		name(&r.Outcomes[i].Step)
	}
}

// describePlan is the answer where the plan, or what is left of it, was not called. note is what the planner says of it.
func describePlan(r *Record, note string) string {
	var b strings.Builder
	switch {
	case len(r.Plan.Steps) == 0:
		return cmp.Or(note, "No tool is needed, or none fits.")
	case !r.NeedsApproval:
		b.WriteString("Nothing was called. The plan:\n")
	case len(r.Outcomes) == 0:
		b.WriteString("Nothing was called: the plan has a tool that may destroy something and needs your approval. To approve, call its steps with run.\n")
	default:
		b.WriteString("The plan goes on with a tool that may destroy something and needs your approval. To approve, call the steps that are left with run.\n")
	}
	called := func(id string) bool {
		return slices.ContainsFunc(r.Outcomes, func(o plan.Outcome) bool { return o.Step.ID == id })
	}
	for _, s := range r.Plan.Steps {
		fmt.Fprintf(&b, "- %s: %s(%s)", s.ID, s.Tool, short.Text(string(s.Arguments), 500))
		if len(s.After) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(s.After, ", "))
		}
		if called(s.ID) {
			b.WriteString(", called already")
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
