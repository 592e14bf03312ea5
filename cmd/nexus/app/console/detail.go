package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/router"
)

// Bounds of the stored detail of a query.
const (
	maxQuestion = 10_000  // bytes
	maxValue    = 8 << 10 // of arguments; results are cut by the record
	maxCalls    = 2000    // of all steps together
	maxDetail   = 1 << 20 // of arguments and results together
)

// queryDetail is the stored account of a query. The history encodes it after the query has ended.
type queryDetail struct {
	question string
	content  *router.AnswerContent
	phases   []router.Phase
	rounds   []int
	contents bool           // keep questions, arguments, results and answers
	mask     *redact.Masker // of these
}

// newDetail copies the parts of a record to store, and estimates their bytes.
func newDetail(
	question string, r *router.Record, contents bool, mask *redact.Masker,
) (d *queryDetail, size int) {
	d = &queryDetail{question, r.Content(false), r.Phases, r.Rounds, contents, mask}
	d.content.Plan = r.WholePlan()
	size = len(question) + len(d.content.Answer) + 1024
	for i := range d.content.Plan.Steps {
		s := &d.content.Plan.Steps[i]
		size += len(s.Arguments) + 256
	}
	for i := range d.content.Steps {
		s := &d.content.Steps[i]
		s.Arguments, _ = plan.Cut(s.Arguments, maxValue)
		size += len(s.Arguments) + len(s.Result) + 256
	}
	return d, size
}

// storedQuery is the JSON of a queryDetail.
type storedQuery struct {
	Question string `json:"question,omitempty"`
	*router.AnswerContent
	Contents bool         `json:"contents"`
	Left     int          `json:"calls_left_out,omitempty"` // of Calls
	Calls    []storedCall `json:"steps"`                    // hides the steps of the content
	Phases   []storedPart `json:"phases"`
	Graph    graph        `json:"graph"`
}

type storedCall struct {
	router.StepResult
	Tries []storedPart `json:"tries"`
}

// storedPart is a phase or an attempt. Times are milliseconds.
type storedPart struct {
	Name     string  `json:"name,omitempty"`
	Started  float64 `json:"started_ms"`
	Duration float64 `json:"duration_ms"`
	Reason   string  `json:"reason,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (d *queryDetail) MarshalJSON() ([]byte, error) {
	c := *d.content
	s := storedQuery{
		Question: d.mask.Text(d.question), AnswerContent: &c, Contents: d.contents, Phases: []storedPart{},
		Graph: newGraph(d),
	}
	for _, p := range d.phases {
		s.Phases = append(s.Phases, storedPart{p.Name, milliseconds(p.Started), milliseconds(p.Duration), ""})
	}
	bytes := 0
	for i, call := range c.Steps {
		if i == maxCalls {
			s.Left = len(c.Steps) - maxCalls
			break
		}
		if bytes += len(call.Arguments) + len(call.Result); bytes > maxDetail {
			call.Arguments, call.Result, call.Truncated = nil, nil, true
		}
		s.Calls = append(s.Calls, d.storedCall(call))
	}
	if d.contents {
		s.redact(d.mask)
	} else {
		s.strip()
	}
	return json.Marshal(s)
}

func (d *queryDetail) storedCall(r router.StepResult) storedCall {
	call := storedCall{StepResult: r, Tries: []storedPart{}}
	for _, t := range r.Tries {
		call.Tries = append(call.Tries, storedPart{"", milliseconds(t.Started), milliseconds(t.Duration), t.Reason})
	}
	switch {
	case !d.contents:
		call.Arguments, call.Result = nil, nil
		if r.Error != nil {
			call.Error = &plan.Error{Reason: r.Error.Reason}
		}
	default:
		call.Arguments, call.Result = d.mask.JSON(r.Arguments), d.mask.JSON(r.Result)
		if r.Error != nil {
			call.Error = &plan.Error{Reason: r.Error.Reason, Message: d.mask.Text(r.Error.Message)}
		}
	}
	return call
}

// redact redacts credentials in the texts and the plan.
func (s *storedQuery) redact(mask *redact.Masker) {
	s.Answer = mask.Text(s.Answer)
	s.Warnings = redactAll(s.Warnings, mask)
	s.Plan.Steps = append([]plan.Step{}, s.Plan.Steps...)
	for i := range s.Plan.Steps {
		p := &s.Plan.Steps[i]
		cut, _ := plan.Cut(p.Arguments, maxValue)
		p.Arguments = mask.JSON(cut)
		p.Each, p.When, p.Pick = mask.Text(p.Each), mask.Text(p.When), mask.Text(p.Pick)
	}
	s.Unmet = append([]plan.Unmet{}, s.Unmet...)
	for i := range s.Unmet {
		s.Unmet[i].Text = mask.Text(s.Unmet[i].Text)
	}
	s.Citations = slices.Clone(s.Citations)
	for i := range s.Citations {
		s.Citations[i].Quote = mask.Text(s.Citations[i].Quote)
	}
}

// strip removes all contents. Names, times and outcomes stay.
func (s *storedQuery) strip() {
	s.Question, s.Answer, s.Citations, s.Warnings = "", "", nil, nil
	s.Plan.Steps = append([]plan.Step{}, s.Plan.Steps...)
	for i := range s.Plan.Steps {
		p := &s.Plan.Steps[i]
		p.Arguments, p.When, p.Pick, p.Each = nil, "", "", ""
	}
	s.Unmet = append([]plan.Unmet{}, s.Unmet...)
	for i := range s.Unmet {
		s.Unmet[i].Text = ""
	}
}

func redactAll(texts []string, mask *redact.Masker) []string {
	clean := make([]string, len(texts))
	for i, t := range texts {
		clean[i] = mask.Text(t)
	}
	return clean
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// describe returns the failure of a query without a record.
func describe(err error, contents bool, mask *redact.Masker) string {
	switch {
	case err == nil:
		return ""
	case contents:
		return mask.Text(fmt.Sprint(err))
	}
	return "the contents of queries are not kept"
}
