package router

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
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
	Dropped       []plan.Outcome // of reads that began early and were dropped from the plan
	PlannerUsage  llm.Usage
	Course

	Rounds []int        // how many steps the plan has after each round that adds some
	Unmet  []plan.Unmet // parts of the question that no successful step serves

	pending []plan.Step         // of a plan that needs approval, those to give back
	failed  []plan.Outcome      // that no later round made good
	open    []plan.Unmet        // parts that the planner made no step for
	missing map[string][]string // required arguments that steps lack, by id
}

// Course is how a query went.
type Course struct {
	Timings   Timings
	Phases    []Phase  // in the order of their ends
	Fallbacks []string // phases that were done without the model that failed; one for each round
	Consents  Consents
}

// Consents counts requests for the user's yes by what came of them.
type Consents struct {
	Given, Declined atomic.Int32
	Unanswered      atomic.Int32 // nobody could be asked, or answered
}

// Timings are how long the parts of a query took. A part is the sum over its rounds.
type Timings struct {
	Planning, Executing, Synthesizing, Total time.Duration
}

// Names of phases.
const (
	PhasePlanning  = "planning"
	PhaseExecution = "execution"
	PhaseSynthesis = "synthesis"
)

// Phase is one part of a query: the planning or execution of a round, or the synthesis.
type Phase struct {
	Name     string
	Started  time.Duration // since the query began
	Duration time.Duration
}

// phase notes a phase that ends now, and returns how long it took.
func (r *Record) phase(name string, query, began time.Time) time.Duration {
	took := time.Since(began)
	r.Phases = append(r.Phases, Phase{name, began.Sub(query), took})
	return took
}

// Called returns the number of calls that reached a tool.
func (r *Record) Called() int {
	n := 0
	for _, o := range r.Outcomes {
		for _, c := range o.Calls() {
			if c.Attempts > 0 {
				n++
			}
		}
	}
	return n + len(r.Dropped)
}

// take notes the plan of a round. A round that adds nothing leaves the plan as it was.
func (r *Record) take(n *round) {
	if n.number > 1 && len(n.plan.Steps) == 0 {
		return
	}
	r.Plan.Source, r.Plan.Rounds = n.plan.Source, n.number
	r.Plan.Steps = append(r.Plan.Steps, n.plan.Steps...)
	r.Plan.Sequential = r.Plan.Sequential || n.plan.Sequential
	r.Rounds = append(r.Rounds, len(r.Plan.Steps))
}

// add notes the outcomes of a round. A call that succeeds makes good one of the same tool that failed in an earlier
// round.
func (r *Record) add(round []plan.Outcome) {
	r.Outcomes = append(r.Outcomes, round...)
	for _, o := range round {
		if i := r.madeGood(o); i >= 0 {
			r.failed = slices.Delete(r.failed, i, i+1)
		}
	}
	for _, o := range round {
		if partly, ok := o.Partly(); ok {
			o = partly
		}
		if o.Failed() {
			r.failed = append(r.failed, o)
			r.NeedsApproval = r.NeedsApproval || o.Err.Reason == reason.NeedsApproval
		}
	}
}

// madeGood returns which failed call an outcome makes good, one with nearly the same arguments rather than another; -1
// for none.
func (r *Record) madeGood(o plan.Outcome) int {
	found := -1
	for i, f := range r.failed {
		if !o.OK() || f.Step.Tool != o.Step.Tool || f.Step.Server != o.Step.Server {
			continue
		}
		if alike(f.Step.Arguments, o.Step.Arguments) {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

// nameServers fills in the servers of steps whose tools could not be found, as far as their names tell. servers are
// those that the caller may know of.
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
