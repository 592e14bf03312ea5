package router

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/synth"
)

// Record is the single account of one query. Results, logs, metrics and traces are made from it.
type Record struct {
	Answer        synth.Answer
	NeedsApproval bool
	Warnings      []string
	TraceID       string
	Plan          plan.Plan
	Outcomes      []plan.Outcome
	Dropped       []plan.Outcome // speculative reads that the plan does not contain
	PlannerUsage  llm.Usage
	Course

	Rounds []int        // number of steps after each round that added steps
	Unmet  []plan.Unmet // parts of the question that no successful step serves

	pending  plan.Plan           // to return if it waits for approval
	failed   []plan.Outcome      // failures that no later round made good
	unserved []plan.Unmet        // parts without a step
	missing  map[string][]string // step id to its missing required arguments
}

// Course describes how a query ran.
type Course struct {
	Timings   Timings
	Phases    []Phase  // in order of completion
	Fallbacks []string // phases completed without the failed model, one entry per round
	Consents  Consents
}

// Consents counts consent requests by their result.
type Consents struct {
	Given, Declined atomic.Int32
	Unanswered      atomic.Int32 // nobody could be asked, or nobody answered
}

// Timings are the durations of a query's parts, summed over its rounds.
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

// phase records a phase that ends now and returns its duration.
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

// addPlan adds the plan of a round to the record. A later round without steps leaves the plan unchanged. A plan of
// several rounds that writes is sequential, so that it runs in the same order when it is given back.
func (r *Record) addPlan(n *round, reads func(plan.Step) bool) {
	if n.number > 1 && len(n.plan.Steps) == 0 {
		return
	}
	r.Plan.Source, r.Plan.Rounds = n.plan.Source, n.number
	r.Plan.Steps = append(r.Plan.Steps, n.plan.Steps...)
	later := n.number > 1 && slices.ContainsFunc(r.Plan.Steps, func(s plan.Step) bool { return !reads(s) })
	r.Plan.Sequential = r.Plan.Sequential || n.plan.Sequential || later
	r.Rounds = append(r.Rounds, len(r.Plan.Steps))
}

// addOutcomes records the outcomes of a round. A successful call makes good one failed call of the same tool in an
// earlier round.
func (r *Record) addOutcomes(round []plan.Outcome) {
	r.Outcomes = append(r.Outcomes, round...)
	for _, o := range round {
		if i := r.recoveredBy(o); i >= 0 {
			r.failed = slices.Delete(r.failed, i, i+1)
		}
	}
	for _, o := range round {
		if partly, ok := o.PartialFailure(); ok {
			o = partly
		}
		if o.Failed() {
			r.failed = append(r.failed, o)
			r.NeedsApproval = r.NeedsApproval || o.Err.Reason == reason.NeedsApproval
		}
	}
}

// recoveredBy returns the index of the failed call that an outcome makes good, or -1. It prefers a call with nearly the
// same arguments.
func (r *Record) recoveredBy(o plan.Outcome) int {
	found := -1
	for i, f := range r.failed {
		if !o.OK() || f.Step.Tool != o.Step.Tool || f.Step.Server != o.Step.Server {
			continue
		}
		if similarArguments(f.Step.Arguments, o.Step.Arguments) {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

// mayHaveWritten reports whether the outcome of any write is unknown.
func (r *Record) mayHaveWritten(reads func(plan.Step) bool) bool {
	return slices.ContainsFunc(r.Outcomes, func(o plan.Outcome) bool {
		return slices.ContainsFunc(o.Calls(), plan.Outcome.MayHaveActed) && !reads(o.Step)
	})
}

// mayGrow reports whether the writer of the answer may ask for another round: a model planned, some step succeeded,
// nothing waits for approval, the outcome of every write is known, and the writer has not asked before.
func (r *Record) mayGrow(reads func(plan.Step) bool) bool {
	return r.Plan.Source == plan.SourceModel && slices.ContainsFunc(r.Outcomes, plan.Outcome.OK) && !r.NeedsApproval &&
		!r.mayHaveWritten(reads) && r.Answer.Lacks == ""
}

// nameServers sets the server of steps with unknown tools. serverOf returns the server that a tool's name contains, or
// an empty name.
func (r *Record) nameServers(serverOf func(tool string) string) {
	name := func(s *plan.Step) {
		if s.Server == "" {
			s.Server = serverOf(s.Tool)
		}
	}
	for i := range r.Plan.Steps {
		name(&r.Plan.Steps[i])
	}
	for i := range r.Outcomes {
		name(&r.Outcomes[i].Step)
	}
}

// similarArguments reports whether at least half of the arguments of two calls are nearly the same.
func similarArguments(a, b []byte) bool {
	one, other := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &other) != nil {
		return false
	}
	same := 0
	for name, value := range one {
		if v, ok := other[name]; ok && similarText(string(value), string(v)) {
			same++
		}
	}
	return 2*same >= max(len(one), len(other))
}

// minCommon is the shortest prefix, in letters and digits, that makes two texts nearly the same.
const minCommon = 8

// similarText reports whether the letters and digits of two texts are equal, or those of one begin with those of the
// other.
func similarText(a, b string) bool {
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
