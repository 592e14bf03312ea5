// Package plan has the types that planners, executor and synthesizer share: [Tool], [Plan], [Step] and [Outcome].
//
// [Parse] reads a plan from the text of a model, [ParseJSON] from the JSON of a client, and a [Reader] reads it step by
// step while the model writes. [Check] reports what is wrong with the steps before one of them runs. [Substitute]
// replaces the references in the arguments of a step by the values of finished steps. A [Validator] checks arguments
// against the schemas of servers. [ValueOf] and [Cut] turn the raw result of a tool into a value.
//
// All input is untrusted: texts of models, schemas and results of servers, plans of clients. All of it is bounded, and
// the doc of each function says what happens beyond a bound. The types are plain values. Only Validator and Reader keep
// state, and nothing here starts a goroutine.
package plan

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// Tool is what a planner knows about a downstream tool.
type Tool struct {
	Name         string          // its name in plans: the bare name if it is unique, else server.tool
	Server       string          // the server's configured name
	Tool         string          // the tool's own name at that server
	Title        string          // for people; may be empty
	Description  string          // untrusted text of the server
	InputSchema  json.RawMessage // JSON Schema of the arguments, untrusted
	OutputSchema json.RawMessage // JSON Schema of structuredContent, or nil
	Annotations  Annotations
}

// Annotations are the hints of a tool. The methods apply the defaults of the MCP specification. Annotations are
// claims of the server, not facts.
type Annotations struct {
	ReadOnlyHint    *bool `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool `json:"openWorldHint,omitempty"`
}

// ReadOnly reports whether the tool is marked read-only.
func (a Annotations) ReadOnly() bool { return a.ReadOnlyHint != nil && *a.ReadOnlyHint }

// Destructive reports whether the tool is marked destructive.
func (a Annotations) Destructive() bool {
	return a.DestructiveHint != nil && *a.DestructiveHint && !a.ReadOnly()
}

// Repeatable reports whether the tool is marked read-only or idempotent.
func (a Annotations) Repeatable() bool {
	return a.ReadOnly() || a.IdempotentHint != nil && *a.IdempotentHint
}

// Distrusted returns the annotations of a server that is not trusted: without "read-only" and "idempotent".
func (a Annotations) Distrusted() Annotations {
	if a.ReadOnly() {
		a.ReadOnlyHint = nil
	}
	if a.IdempotentHint != nil && *a.IdempotentHint {
		a.IdempotentHint = nil
	}
	return a
}

// Sources of a plan.
const (
	SourceModel = "model"
	SourceRules = "rules"
	SourceGiven = "given"
)

// Plan is a set of steps. The order of Steps is never a dependency: a failed step does not fail the next.
type Plan struct {
	Source     string `json:"source"`
	Rounds     int    `json:"rounds"`
	Sequential bool   `json:"sequential,omitempty"` // one step at a time, in order as far as references allow
	Steps      []Step `json:"steps"`
	Approval   string `json:"approval,omitempty"` // of a plan that waits for approval: sealed by the router, approves it if given back

	More       bool   `json:"-"` // the planner wants to see the outcomes and plan again
	MoreIf     string `json:"-"` // only if this expression over steps holds, see Continues; empty = in any case
	Incomplete []Step `json:"-"` // calls that lack a required argument and thus are not steps
	Note       string `json:"-"` // a message to the user, such as why no tool fits

	About bool `json:"-"` // the question asks which tools there are; the catalog answers it

	// Unmet are the parts of the question that have no step. Small talk and plain statements do not count.
	Unmet []Unmet `json:"-"`
}

// Step returns the step with an id, nil if there is none.
func (p *Plan) Step(id string) *Step {
	for i := range p.Steps {
		if p.Steps[i].ID == id {
			return &p.Steps[i]
		}
	}
	return nil
}

// Tools returns the number of steps that call a tool.
func (p *Plan) Tools() (n int) {
	for _, s := range p.Steps {
		if !s.Computes() {
			n++
		}
	}
	return n
}

// Step is one tool call of a plan, or the computation of a value without a call.
type Step struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`              // as written in the plan; the tool's name in plans once resolved; empty if the step computes
	Server    string          `json:"server"`            // empty until resolved, and if the step computes
	Arguments json.RawMessage `json:"arguments"`         // a JSON object; may hold references to other steps
	After     []string        `json:"after"`             // ids of steps that must succeed first
	Each      string          `json:"each,omitempty"`    // a reference or an expression; the step calls its tool once per element of that list
	When      string          `json:"when,omitempty"`    // an expression; where it is false the step is skipped
	Pick      string          `json:"pick,omitempty"`    // an expression that makes the step's value, see Computes
	Carries   []string        `json:"carries,omitempty"` // servers whose results it carries other than by references
	Serves    string          `json:"-"`                 // the part of the question that it serves; empty if unknown
	Invalid   *Error          `json:"-"`                 // the error found when the plan was read; Check reports it

	each, when, pick *expression.Expression // of Each, When and Pick, once they are read
}

// Computes reports whether the step only computes its value, from those of other steps, and calls no tool.
func (s Step) Computes() bool { return s.Tool == "" && s.Pick != "" }

// Label names the step and its tool for people.
func (s Step) Label() string {
	if s.Tool == "" {
		return s.ID
	}
	return s.ID + " (" + s.Tool + ")"
}

// Error is the reason why a step failed.
type Error struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unmet is a part of a question without a successful step.
type Unmet struct {
	Text    string   `json:"text"` // the part as the user wrote it; empty for what Parse has read of "missing"
	Reason  string   `json:"reason"`
	Tool    string   `json:"tool,omitempty"`    // the tool for it, or the most similar tool
	Missing []string `json:"missing,omitempty"` // required arguments that are not known
	Step    string   `json:"-"`                 // the failed step that would serve it; empty if there is none

	// Nearest are one to three tools that share a word with the part if no tool fits. Tool is the first of them.
	Nearest []Nearest `json:"-"`
}

// Nearest is a tool that is similar to a part of a question, and what the question lacks for it.
type Nearest struct {
	Tool    string
	Missing []string // required arguments that the question does not give
}

// Reasons why a part of a question is unmet.
const (
	UnmetNoTool          = "no_tool"
	UnmetMissingArgument = "missing_argument"
	UnmetNeedsApproval   = "needs_approval"
	UnmetDeclined        = "declined"
	UnmetFailed          = "failed"
	UnmetUnclear         = "unclear"
)
