// Package plan is the language that planners, executor and synthesizer share: the tools that may be
// used, the plan made of them, and what came of each step.
//
// A plan comes from a model's text through Parse, from a client's JSON through ParseJSON, or step by
// step through a Reader while the model still writes. Check says what is wrong with its steps before
// any of them runs, References and Substitute put values of finished steps into the arguments of later
// ones, a Validator holds arguments against the schemas that servers publish, and ValueOf and Cut turn
// raw tool results into values.
//
// Everything that is read here is untrusted: texts of models, schemas and results of servers, plans of
// clients. All of it is bounded, and what is beyond a bound has a stated outcome. The types are plain
// values; only Validator and Reader keep state, and nothing here starts a goroutine.
package plan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// Tool is what a planner may know of a downstream tool.
type Tool struct {
	Name         string          // what plans call it: bare where unique, else server.tool
	Server       string          // the server's configured name
	Tool         string          // the tool's own name at that server
	Title        string          // for people; may be empty
	Description  string          // untrusted text of the server
	InputSchema  json.RawMessage // JSON Schema of the arguments, untrusted
	OutputSchema json.RawMessage // JSON Schema of structuredContent, or nil
	Annotations  Annotations
}

// Annotations are a tool's own hints, with the defaults of the MCP specification applied by the
// methods. They are claims of the server, not facts.
type Annotations struct {
	ReadOnlyHint    *bool `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool `json:"openWorldHint,omitempty"`
}

// ReadOnly reports whether the tool says that it changes nothing.
func (a Annotations) ReadOnly() bool { return a.ReadOnlyHint != nil && *a.ReadOnlyHint }

// Destructive reports whether the tool says, in so many words, that it may destroy something.
func (a Annotations) Destructive() bool {
	return a.DestructiveHint != nil && *a.DestructiveHint && !a.ReadOnly()
}

// Repeatable reports whether the tool says that calling it again does no harm.
func (a Annotations) Repeatable() bool {
	return a.ReadOnly() || a.IdempotentHint != nil && *a.IdempotentHint
}

// Distrusted returns the annotations of a server whose claims are not believed: its warnings stay, its promises go.
func (a Annotations) Distrusted() Annotations {
	if a.ReadOnly() {
		a.ReadOnlyHint = nil
	}
	if a.IdempotentHint != nil && *a.IdempotentHint {
		a.IdempotentHint = nil
	}
	return a
}

// Where a plan came from.
const (
	SourceModel = "model"
	SourceRules = "rules"
	SourceGiven = "given"
)

// Plan is a set of steps. The order of Steps is never a dependency: a failed step does not fail the next.
type Plan struct {
	Source     string `json:"source"`
	Rounds     int    `json:"rounds"`
	Sequential bool   `json:"sequential,omitempty"` // one step at a time, in the order of Steps as far as references allow
	Steps      []Step `json:"steps"`

	More bool   `json:"-"` // the planner wants to see the outcomes and plan again
	Open []Step `json:"-"` // calls that would answer but lack a required argument; for lack of it no steps
	Note string `json:"-"` // what to tell the user about the plan, such as why no tool fits

	About bool `json:"-"` // the question asks what can be done here; the catalog answers it

	// Unmet are the parts of the question that the planner made no step for. Small talk and what only states something
	// is none of them.
	Unmet []Unmet `json:"-"`
}

// Step returns the step with that id, nil if there is none.
func (p *Plan) Step(id string) *Step {
	for i := range p.Steps {
		if p.Steps[i].ID == id {
			return &p.Steps[i]
		}
	}
	return nil
}

// Step is one tool call of a plan.
type Step struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`           // as the plan named it, or the tool's plan name once resolved
	Server    string          `json:"server"`         // empty until resolved
	Arguments json.RawMessage `json:"arguments"`      // a JSON object; may hold references to other steps
	After     []string        `json:"after"`          // ids of steps that must have succeeded before
	Each      string          `json:"each,omitempty"` // a reference to a list: the step calls its tool once per element
	When      string          `json:"when,omitempty"` // an expression; where it is false the step is skipped
	Pick      string          `json:"pick,omitempty"` // an expression that makes the step's value
	Serves    string          `json:"-"`              // the part of the question that it serves; empty where that is not known
	Invalid   *Error          `json:"-"`              // what reading the plan found wrong with this step; Check passes it on

	when, pick *expression.Expression // of When and Pick, once they are read
}

// Error says why a step failed.
type Error struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Outcome is what came of one step, or of one call of a step that loops.
type Outcome struct {
	Step Step            // with references as written in the plan
	Sent json.RawMessage // the arguments after substitution; nil if the step never ran
	// structuredContent, else the text as JSON if it parses, else the text as a JSON string; nil on failure
	Value    json.RawMessage
	Text     string            // the text blocks of the result, joined by newlines; for a failure "Error: …"
	Blocks   []json.RawMessage // content blocks that are not text: images, audio, resource links, resources
	Err      *Error            // nil on success
	Skipped  bool              // the step was not to run: its When was false, or that of a step that it needs
	Elements []Outcome         // of a step that loops: one per element of its list
	Index    int               // of an element, from 0
	Attempts int               // calls made, 0 if the step never ran
	Started  time.Duration     // since the query began
	Duration time.Duration
}

// OK reports whether the step succeeded. A loop does unless all its calls failed; a skipped step did nothing.
func (o Outcome) OK() bool { return o.Err == nil && !o.Skipped }

// Failed reports whether the step failed.
func (o Outcome) Failed() bool { return o.Err != nil }

// Partly returns what failed of a loop that succeeded otherwise, as the outcome of a step of its own that names the
// elements.
func (o Outcome) Partly() (Outcome, bool) {
	const most = 20
	var first *Error
	var places []string
	failed := 0
	for _, c := range o.Elements {
		if c.Err == nil {
			continue
		}
		if failed++; failed <= most {
			places = append(places, strconv.Itoa(c.Index))
		}
		if first == nil {
			first = c.Err
		}
	}
	if o.Err != nil || failed == 0 {
		return Outcome{}, false
	}
	if failed > most {
		places = append(places, fmt.Sprintf("%d more", failed-most))
	}
	part := Outcome{Step: o.Step, Attempts: o.Attempts, Started: o.Started, Duration: o.Duration}
	part.Err = &Error{first.Reason, fmt.Sprintf("failed for %d of %d elements (%s); the first time: %s",
		failed, len(o.Elements), strings.Join(places, ", "), first.Message)}
	part.Step.ID += "-failed"
	return part, true
}

// Calls returns the outcomes of the calls of a step that loops, else the outcome itself.
func (o Outcome) Calls() []Outcome {
	if len(o.Elements) > 0 {
		return o.Elements
	}
	return []Outcome{o}
}
