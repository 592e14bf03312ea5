package router

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Elicit asks the user through a form with the given JSON Schema (elicitation, form mode) and returns what the user
// entered. The error is ErrDeclined or ErrDismissed if the user refused; any other error means that the user could
// not be asked.
type Elicit func(ctx context.Context, message string, schema []byte) (content []byte, err error)

// Errors of Elicit if the user was asked and entered nothing.
var (
	ErrDeclined  error = &unanswered{"the user declined"}
	ErrDismissed error = &unanswered{"the user dismissed the request"}
	errNobody    error = &unanswered{"nobody answered in time"}
)

// unanswered tells why the user entered nothing although the request reached the client.
type unanswered struct{ text string }

func (e *unanswered) Error() string { return e.text }

// elicitor returns an Elicit that uses the client; nil if the client does not support forms.
func elicitor(x *edge.Exchange) Elicit {
	modes := jsonrpc.Get(x.Client.Capabilities, "elicitation")
	if modes == nil || jsonrpc.Get(modes, "url") != nil && jsonrpc.Get(modes, "form") == nil {
		return nil
	}
	return func(ctx context.Context, message string, schema []byte) ([]byte, error) {
		params := jsonrpc.Set([]byte(`{}`), "message", []byte(jsonrpc.StringID(message)))
		m, err := x.Request(ctx, "elicitation/create", jsonrpc.Set(params, "requestedSchema", schema))
		switch {
		case err != nil:
			return nil, err
		case m.Err != nil:
			return nil, errors.New("the client could not ask: " + texts.Line(jsonrpc.Text(jsonrpc.Get(m.Err, "message")), 300))
		}
		if !jsontext.Value(m.Result).IsValid() { // a duplicate "action" could hide a refusal
			return nil, errors.New("the client's answer has a member twice")
		}
		switch action := jsonrpc.Text(jsonrpc.Get(m.Result, "action")); action {
		case "accept":
			return jsonrpc.Get(m.Result, "content"), nil
		case "cancel":
			return nil, ErrDismissed
		default:
			return nil, ErrDeclined
		}
	}
}

// Limits of elicitation.
const (
	maxForms = 5 // per query
	maxAsked = 5 * time.Minute
)

// limitAsking limits the time for the user's replies to three fifths of the query's remaining time. The rest is for the
// steps and the answer.
func limitAsking(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := maxAsked
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)*3/5)
	}
	return context.WithTimeoutCause(ctx, limit, errNobody)
}

// askApproval asks the user to allow what a message describes. refused means that the user said no or dismissed the
// question; then and where there is no answer, the error tells why.
func askApproval(ctx context.Context, elicit Elicit, message string) (refused bool, err error) {
	ctx, cancel := limitAsking(ctx)
	defer cancel()
	_, err = elicit(ctx, message, []byte(`{"type":"object","properties":{}}`))
	return errors.Is(err, ErrDeclined) || errors.Is(err, ErrDismissed), err
}

// askMissing asks the user for required arguments that steps lack, with one form per step, and adds them to the plan.
// Incomplete calls of the plan, which would serve a part of the question but lack an argument, become steps if a form
// asks for it. A step fails as declined if the user gives nothing. When the time is up, no more forms are shown.
func (s *queryState) askMissing(ctx context.Context, r *round) {
	if s.q.Elicit == nil || s.q.DryRun {
		return
	}
	ctx, cancel := limitAsking(ctx)
	defer cancel()
	served := r.addIncomplete()
	if len(served) > 0 {
		r.problems = s.check(r)
	}
	asked := map[string]bool{} // by step id
	var declined []plan.Problem
	for _, p := range r.problems {
		if len(p.Missing) == 0 || s.user.forms == maxForms || ctx.Err() != nil {
			continue
		}
		step := r.plan.Step(p.Step)
		tool, unknown := s.usable().Lookup(step.Tool)
		if unknown != nil {
			continue
		}
		schema, ok := form(tool.InputSchema, p.Missing)
		if !ok {
			continue // the problem already names the arguments
		}
		asked[p.Step] = true
		s.user.forms++
		if why := s.ask(ctx, step, tool, schema, p.Missing); why != nil {
			declined = append(declined, plan.Problem{Step: p.Step, Error: *why, Missing: p.Missing})
		}
	}
	r.removeUnasked(served, asked)
	if len(asked) > 0 {
		r.plan.Note = "" // it lists the missing arguments
	}
	r.problems = append(declined, s.check(r)...) // the first problem of a step counts
}

// addIncomplete adds the incomplete calls of the plan to its steps, and takes the unmet parts that they serve from the
// plan. It returns these parts by step id.
func (r *round) addIncomplete() (served map[string]plan.Unmet) {
	served = map[string]plan.Unmet{}
	for _, step := range r.plan.Incomplete {
		if r.plan.Step(step.ID) != nil {
			continue
		}
		i := slices.IndexFunc(r.plan.Unmet, func(u plan.Unmet) bool {
			return u.Reason == plan.UnmetMissingArgument && u.Tool == step.Tool
		})
		var part plan.Unmet
		if i >= 0 {
			part = r.plan.Unmet[i]
			r.plan.Unmet = slices.Delete(slices.Clone(r.plan.Unmet), i, i+1)
		}
		step.Serves = part.Text
		served[step.ID] = part
		r.plan.Steps = append(r.plan.Steps, step)
	}
	return served
}

// removeUnasked undoes addIncomplete for the calls that no form asked about.
func (r *round) removeUnasked(served map[string]plan.Unmet, asked map[string]bool) {
	r.plan.Steps = slices.DeleteFunc(r.plan.Steps, func(step plan.Step) bool {
		part, added := served[step.ID]
		if !added || asked[step.ID] {
			return false
		}
		if part.Reason != "" {
			r.plan.Unmet = append(r.plan.Unmet, part)
		}
		return true
	})
}

// ask shows a form for the missing arguments of a step and adds what the user enters. The error becomes the step's
// error if the user gives nothing.
func (s *queryState) ask(
	ctx context.Context, step *plan.Step, tool plan.Tool, schema []byte, missing []string,
) *plan.Error {
	content, err := s.q.Elicit(ctx, formMessage(tool, step, missing), schema)
	var none *unanswered
	switch {
	case errors.As(err, &none):
		return &plan.Error{Reason: reason.Declined, Message: none.text + ", and the tool needs " + enumerate(missing)}
	case err != nil:
		s.warn("step %s: the user could not be asked for %s: %v", step.ID, enumerate(missing), err)
		return nil
	}
	for _, name := range missing {
		if value := jsonrpc.Get(content, name); value != nil {
			step.Arguments = jsonrpc.Set(step.Arguments, name, value)
			s.user.entered = append(s.user.entered, cmp.Or(jsonrpc.Text(value), string(value)))
		}
	}
	return nil
}

// formMessage explains why a form is shown.
func formMessage(tool plan.Tool, step *plan.Step, missing []string) string {
	text := fmt.Sprintf("To answer your question, %s of server %s needs %s.",
		printable(texts.VisibleName(tool.Tool), maxShownName), tool.Server, enumerate(missing))
	if known := string(step.Arguments); known != "{}" {
		text += " Known so far: " + printable(known, 500)
	}
	return text
}

const (
	maxChoices = 100 // of an enum in a form
	maxLabel   = 300 // bytes of a title or description in a form
)

// form returns the schema of a form that asks for the named fields of an input schema. Elicitation allows only flat
// forms of strings, numbers, booleans and enums (MCP 2025-06-18, Elicitation, Requested Schema). ok is false if a
// field has another type. Servers are untrusted, so only known keywords are copied from the input schema.
func form(input json.RawMessage, names []string) (requested []byte, ok bool) {
	s, err := schema.Read(input)
	if err != nil {
		return nil, false
	}
	properties := []byte(`{}`)
	for _, name := range slices.Backward(names) { // Set prepends a new member
		f := s.Field(name)
		if f == nil || !askable(f) {
			return nil, false
		}
		properties = jsonrpc.Set(properties, name, []byte(encode(fieldOf(f), "")))
	}
	requested = jsonrpc.Set([]byte(`{}`), "required", []byte(encode(names, "")))
	requested = jsonrpc.Set(requested, "properties", properties)
	return jsonrpc.Set(requested, "type", []byte(`"object"`)), true
}

// formField is the schema of one field.
type formField struct {
	Type        string            `json:"type"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	MinLength   json.Number       `json:"minLength,omitempty"`
	MaxLength   json.Number       `json:"maxLength,omitempty"`
	Format      string            `json:"format,omitempty"`
	Minimum     json.Number       `json:"minimum,omitempty"`
	Maximum     json.Number       `json:"maximum,omitempty"`
}

// askable reports whether a form can ask for a value. Forms support enums of strings only.
func askable(s *schema.Schema) bool {
	if len(s.Types) != 1 || len(s.Enum) > maxChoices {
		return false
	}
	text := s.Types[0] == "string"
	return text && !slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return v[0] != '"' }) ||
		s.Enum == nil && slices.Contains([]string{"number", "integer", "boolean"}, s.Types[0])
}

func fieldOf(s *schema.Schema) formField {
	f := formField{Type: s.Types[0], Enum: s.Enum}
	f.Title, f.Description = texts.Line(s.Title, maxLabel), texts.Line(s.Description, maxLabel)
	switch {
	case f.Enum != nil:
	case f.Type == "string":
		f.MinLength, f.MaxLength = s.Bounds["minLength"], s.Bounds["maxLength"]
		if slices.Contains([]string{"email", "uri", "date", "date-time"}, s.Format) {
			f.Format = s.Format
		}
	case f.Type != "boolean":
		f.Minimum, f.Maximum = s.Bounds["minimum"], s.Bounds["maximum"]
	}
	return f
}

// enumerate joins names as "a, b and c".
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return texts.Line(names[0], maxLabel)
	}
	return texts.Line(strings.Join(names[:last], ", ")+" and "+names[last], maxLabel)
}
