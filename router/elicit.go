package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Elicit asks the user, by a form of the JSON Schema given (elicitation, form mode). The content is what the user gave.
// The error is ErrDeclined or ErrDismissed if that is what the user did; any other means that the user could not be
// asked.
type Elicit func(ctx context.Context, message string, schema []byte) (content []byte, err error)

// Errors of an Elicit whose user was asked and gave nothing.
var (
	ErrDeclined  error = &unanswered{"the user declined"}
	ErrDismissed error = &unanswered{"the user dismissed the request"}
	errNobody    error = &unanswered{"nobody answered in time"}
)

// unanswered is why the user gave nothing although the request reached the client.
type unanswered struct{ text string }

func (e *unanswered) Error() string { return e.text }

// elicitor asks by way of the client; nil where it cannot ask by forms.
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
			return nil, errors.New("the client could not ask: " + short.Line(jsonrpc.Text(jsonrpc.Get(m.Err, "message")), 300))
		}
		if !jsontext.Value(m.Result).IsValid() { // of two actions one may be a no
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

// Bounds of asking.
const (
	maxForms = 5 // of one query
	maxAsked = 5 * time.Minute
)

// asking bounds the time that a user has: three fifths of what is left of the query's. The rest is for the steps and
// the answer.
func asking(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := maxAsked
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)*3/5)
	}
	return context.WithTimeoutCause(ctx, limit, errNobody)
}

// askMissing asks the user for required arguments that the steps of a plan lack, one step after the other, and puts
// them into the plan. So are calls that would answer but lack an argument; they become steps if the user can be
// asked for it. A step for which the user gives none has declined as its problem; once the time for all of them is
// up, no further form is shown.
func (s *rounds) askMissing(ctx context.Context, r *round) {
	if s.q.Elicit == nil || s.q.DryRun {
		return
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	open, forms := r.adopt(), s.forms
	if len(open) > 0 {
		r.problems = s.check(r)
	}
	asked := map[string]bool{}
	var declined []plan.Problem
	for _, p := range r.problems {
		if len(p.Missing) == 0 || s.forms == maxForms || ctx.Err() != nil {
			continue
		}
		before := s.forms
		if why := s.fill(ctx, r.plan.Step(p.Step), p.Missing); why != nil {
			declined = append(declined, plan.Problem{Step: p.Step, Error: *why, Missing: p.Missing})
		}
		asked[p.Step] = s.forms > before
	}
	r.settle(open, asked)
	if s.forms > forms {
		r.plan.Note = "" // it says what is lacking
	}
	r.problems = append(declined, s.check(r)...) // the first of a step counts
}

// adopt makes the calls that lack an argument steps, and returns what the plan said of them by their ids.
func (r *round) adopt() map[string]plan.Unmet {
	open := map[string]plan.Unmet{}
	for _, step := range r.plan.Open {
		if r.plan.Step(step.ID) != nil {
			continue
		}
		i := slices.IndexFunc(r.plan.Unmet, func(u plan.Unmet) bool {
			return u.Reason == plan.UnmetMissingArgument && u.Tool == step.Tool
		})
		var u plan.Unmet
		if i >= 0 {
			u = r.plan.Unmet[i]
			r.plan.Unmet = slices.Delete(slices.Clone(r.plan.Unmet), i, i+1)
		}
		step.Serves = u.Text
		open[step.ID] = u
		r.plan.Steps = append(r.plan.Steps, step)
	}
	return open
}

// settle takes out the adopted steps again for which no form could ask.
func (r *round) settle(open map[string]plan.Unmet, asked map[string]bool) {
	r.plan.Steps = slices.DeleteFunc(r.plan.Steps, func(step plan.Step) bool {
		u, adopted := open[step.ID]
		if !adopted || asked[step.ID] {
			return false
		}
		if u.Reason != "" {
			r.plan.Unmet = append(r.plan.Unmet, u)
		}
		return true
	})
}

// fill asks for what one step lacks. The error is that of the step if the user gives nothing.
func (s *rounds) fill(ctx context.Context, step *plan.Step, missing []string) *plan.Error {
	tool, unknown := s.catalog.Lookup(step.Tool, s.q.Origin.Visible)
	if unknown != nil {
		return nil
	}
	schema, ok := form(tool.InputSchema, missing)
	if !ok {
		return nil // the step's own problem tells what it lacks
	}
	s.forms++
	content, err := s.q.Elicit(ctx, formMessage(tool, step, missing), schema)
	var none *unanswered
	switch {
	case errors.As(err, &none):
		return &plan.Error{Reason: reason.Declined, Message: fmt.Sprintf("%s, and %s needs %s", none.text, tool.Name,
			enumerate(missing))}
	case err != nil:
		s.warn("step %s: the user could not be asked for %s: %v", step.ID, enumerate(missing), err)
		return nil
	}
	for _, name := range missing {
		if value := jsonrpc.Get(content, name); value != nil {
			step.Arguments = jsonrpc.Set(step.Arguments, name, value)
		}
	}
	return nil
}

// formMessage says what a form is for.
func formMessage(tool *downstream.Tool, step *plan.Step, missing []string) string {
	text := fmt.Sprintf("To answer your question, %s of server %s needs %s.",
		printable(tool.Tool.Tool, maxShownName), tool.Server, enumerate(missing))
	if known := string(step.Arguments); known != "{}" {
		text += " Known so far: " + printable(known, 500)
	}
	return text
}
