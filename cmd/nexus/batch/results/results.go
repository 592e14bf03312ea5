// Package results reads and writes the results file of a batch: one line of JSON for each case and repeat.
//
// A [Writer] appends whole lines; it truncates the file after a partial write. [Read] streams a file in constant
// memory. Text after the last line end is a torn line, which Read skips and [Resume] cuts off.
package results

import (
	"encoding/json"
	"time"
)

// Outcomes of a case.
const (
	Passed  = "passed"
	Failed  = "failed"
	Errored = "error"   // no answer to check
	Skipped = "skipped" // not asked
)

// Outcomes counts lines by their outcomes.
type Outcomes struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Errors  int `json:"errors"`
	Skipped int `json:"skipped"`
}

// Count counts a line.
func (o *Outcomes) Count(outcome string) {
	switch outcome {
	case Passed:
		o.Passed++
	case Failed:
		o.Failed++
	case Skipped:
		o.Skipped++
	default:
		o.Errors++
	}
}

// Line is the result of one repeat of a case.
type Line struct {
	Case    string          `json:"case"`
	Repeat  int             `json:"repeat"` // from 1
	Outcome string          `json:"outcome"`
	Checks  []Check         `json:"checks"`
	Result  json.RawMessage `json:"result"` // the structured content of process_query; null = none
	Error   *Failure        `json:"error,omitempty"`
	Spent
	About
	Fingerprint string `json:"fingerprint"` // SHA-256 of everything that determines the outcome
}

// About describes a case for reports, so that they need no file of cases.
type About struct {
	Query      string   `json:"query"`
	Tags       []string `json:"tags,omitempty"`
	Definition string   `json:"definition"` // SHA-256 of the case
}

// Spent has the time, tokens and cost of a case.
type Spent struct {
	Seconds float64   `json:"seconds"`
	Tokens  Tokens    `json:"tokens"`
	Cost    *float64  `json:"cost,omitempty"` // nil = no price is known
	TraceID string    `json:"trace_id"`
	Started time.Time `json:"started"`
}

// Tokens of all models.
type Tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// Total is the sum.
func (t Tokens) Total() int { return t.Input + t.Output }

// Check is the result of one check.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Reason string `json:"reason,omitempty"`
}

// Failure is the reason for a missing answer.
type Failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Key identifies a line in its file.
type Key struct {
	Case   string
	Repeat int
}

// Content is the part of a result that checks and reports use.
type Content struct {
	Answer        string   `json:"answer"`
	Degraded      bool     `json:"degraded"`
	NeedsApproval bool     `json:"needs_approval"`
	Unmet         []Unmet  `json:"unmet"`
	Warnings      []string `json:"warnings"`
	TraceID       string   `json:"trace_id"`
	Plan          Plan     `json:"plan"`
	Steps         []Step   `json:"steps"`
	Usage         struct {
		Planner     Usage `json:"planner"`
		Synthesizer Usage `json:"synthesizer"`
	} `json:"usage"`
	Timings Timings `json:"timings"`
}

// Unmet is a part of the question that no successful step serves.
type Unmet struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
	Tool   string `json:"tool"`
}

// Plan is the plan of a result.
type Plan struct {
	Source string     `json:"source"`
	Rounds int        `json:"rounds"`
	Steps  []PlanStep `json:"steps"`
}

// PlanStep is a step before it runs.
type PlanStep struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Server    string          `json:"server"`
	Arguments json.RawMessage `json:"arguments"`
	After     []string        `json:"after"`
	Each      string          `json:"each"`
	When      string          `json:"when"`
	Pick      string          `json:"pick"`
}

// Step is the outcome of a step.
type Step struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Server    string          `json:"server"`
	Arguments json.RawMessage `json:"arguments"`
	Success   bool            `json:"success"`
	Skipped   bool            `json:"skipped"`
	Error     *Failure        `json:"error"`
	Attempts  int             `json:"attempts"`
	Started   float64         `json:"started_ms"`
	Duration  float64         `json:"duration_ms"`
}

// Called reports whether the step reached its tool.
func (s Step) Called() bool { return s.Attempts > 0 && !s.Skipped }

// Usage of one model.
type Usage struct {
	Model  string `json:"model"`
	Input  int    `json:"input_tokens"`
	Output int    `json:"output_tokens"`
}

// Tokens is what both models used.
func (c *Content) Tokens() Tokens {
	p, s := c.Usage.Planner, c.Usage.Synthesizer
	return Tokens{Input: p.Input + s.Input, Output: p.Output + s.Output}
}

// Timings are milliseconds.
type Timings struct {
	Plan       float64 `json:"plan_ms"`
	Execute    float64 `json:"execute_ms"`
	Synthesize float64 `json:"synthesize_ms"`
	Total      float64 `json:"total_ms"`
}
