package report

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Detail is one line in a report.
type Detail struct {
	Case    string          `json:"case"`
	Repeat  int             `json:"repeat"`
	Outcome string          `json:"outcome"` // one of those of package results
	Query   string          `json:"query"`
	Answer  string          `json:"answer,omitempty"`
	Reasons []string        `json:"reasons"` // failed checks and the error
	Unmet   []results.Unmet `json:"unmet,omitempty"`
	Steps   []DetailStep    `json:"steps"`
	Seconds float64         `json:"seconds"`
	TraceID string          `json:"trace_id,omitempty"`
}

// DetailStep is a step of a plan with its outcome.
type DetailStep struct {
	ID        string   `json:"id"`
	Tool      string   `json:"tool"`
	Arguments string   `json:"arguments"`
	After     []string `json:"after"`
	Each      string   `json:"each,omitempty"`
	When      string   `json:"when,omitempty"`
	Pick      string   `json:"pick,omitempty"`
	Status    string   `json:"status"` // ok, failed, skipped or not run
	Reason    string   `json:"reason,omitempty"`
	Millis    float64  `json:"duration_ms"`
}

// States of a step.
const (
	statusOK      = "ok"
	statusFailed  = "failed"
	statusSkipped = "skipped"
	statusNone    = "not run"
)

// Bounds of texts in a report, in bytes.
const (
	maxQuery     = 500
	maxAnswer    = 1000
	maxArguments = 200
	maxReason    = 300
	maxShape     = 100
	maxSteps     = 60 // of a plan
)

// full is the part of a line that Detail needs.
type full struct {
	Case    string           `json:"case"`
	Repeat  int              `json:"repeat"`
	Outcome string           `json:"outcome"`
	Query   string           `json:"query"`
	Checks  []results.Check  `json:"checks"`
	Error   *results.Failure `json:"error"`
	Result  results.Content  `json:"result"`
	Seconds float64          `json:"seconds"`
	TraceID string           `json:"trace_id"`
}

// Details reads lines again.
func (b *Batch) Details(rows []Row) ([]Detail, error) {
	places := make([]results.Place, len(rows))
	for i, r := range rows {
		places[i] = r.Place
	}
	lines, err := results.At[full](b.Path, places)
	details := make([]Detail, len(lines))
	for i := range lines {
		details[i] = lines[i].detail()
	}
	return details, err
}

func (l *full) detail() Detail {
	d := Detail{
		Case: l.Case, Repeat: l.Repeat, Outcome: l.Outcome, Query: short.Text(l.Query, maxQuery),
		Answer: short.Text(l.Result.Answer, maxAnswer), Reasons: l.reasons(), Unmet: l.Result.Unmet, Steps: []DetailStep{},
		Seconds: l.Seconds, TraceID: l.TraceID,
	}
	for _, s := range l.Result.Plan.Steps[:min(len(l.Result.Plan.Steps), maxSteps)] {
		d.Steps = append(d.Steps, l.step(s))
	}
	return d
}

// reasons returns why the line did not pass.
func (l *full) reasons() []string {
	reasons := []string{}
	if l.Error != nil {
		reasons = append(reasons, short.Text(l.Error.Reason+": "+l.Error.Message, maxReason))
	}
	for _, c := range l.Checks {
		if !c.Passed {
			reasons = append(reasons, short.Text(c.Name+": "+c.Reason, maxReason))
		}
	}
	return reasons
}

// step sums up all calls of a step.
func (l *full) step(s results.PlanStep) DetailStep {
	d := DetailStep{
		ID: s.ID, Tool: s.Tool, Arguments: short.Text(string(s.Arguments), maxArguments), Status: statusNone,
		After: edges(s, l.Result.Plan.Steps),
		Each:  short.Text(s.Each, maxShape), When: short.Text(s.When, maxShape), Pick: short.Text(s.Pick, maxShape),
	}
	for _, r := range l.Result.Steps {
		if r.ID != s.ID {
			continue
		}
		d.Millis += r.Duration
		switch {
		case r.Skipped:
			d.Status = statusSkipped
		case r.Success && d.Status != statusFailed:
			d.Status = statusOK
		case !r.Success:
			d.Status = statusFailed
			if r.Error != nil && d.Reason == "" {
				d.Reason = short.Text(r.Error.Reason+": "+r.Error.Message, maxReason)
			}
		}
	}
	return d
}

// edges returns the steps that a step waits for, in the order of the plan.
func edges(s results.PlanStep, all []results.PlanStep) []string {
	step := plan.Step{Arguments: s.Arguments, After: s.After, Each: s.Each, When: s.When, Pick: s.Pick}
	needs := step.Needs(func(id string) bool {
		return slices.ContainsFunc(all, func(o results.PlanStep) bool { return o.ID == id })
	})
	found := []string{}
	for _, other := range all {
		if other.ID != s.ID && slices.Contains(needs, other.ID) {
			found = append(found, other.ID)
		}
	}
	return found
}
