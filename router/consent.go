package router

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// consent says which calls of a round need the user's yes. A tool that reads never does.
type consent struct {
	mode     string // execution.confirm_writes
	source   string // of the plan
	informed bool   // the plan was made after tools had answered
	approved bool   // the caller has said yes to every call
}

// required reports whether a call of the tool needs a yes. What the rules planned to write does, for they may have
// misread the question. A model's writes do where they may destroy something, or where what tools have answered may
// have talked it into them. Whoever gives a plan has seen it.
func (c consent) required(tool plan.Tool) bool {
	switch {
	case c.approved || c.mode == downstream.ConfirmNever || tool.Reads():
		return false
	case c.mode == downstream.ConfirmAlways:
		return true
	case c.source == plan.SourceGiven:
		return false
	case c.source == plan.SourceModel:
		return c.informed || tool.Annotations.Destructive()
	}
	return true
}

// consent is that of a round.
func (s *rounds) consent(r *round) consent {
	c := consent{mode: s.router.opts.Execution.ConfirmWrites, source: r.plan.Source, approved: s.q.Approved}
	for _, o := range s.record.Outcomes {
		c.informed = c.informed || o.Attempts > 0 // also by the text of an error
	}
	return c
}

// confirming decides over the calls of one round.
type confirming struct {
	consent
	s    *rounds
	r    *round
	made writes
}

// confirm returns what asks the user before the calls of a round that need it, and before a write that a planner wants
// made twice. A step without consent fails: as declined after a no, as needs_approval where nobody can be asked or
// answers.
func (s *rounds) confirm(r *round) execution.Confirm {
	c := &confirming{consent: s.consent(r), s: s, r: r}
	c.made.seen = c.earlier()
	return c.confirm
}

func (c *confirming) confirm(ctx context.Context, tool *downstream.Tool, calls []json.RawMessage) *plan.Error {
	if c.approved || c.source == plan.SourceGiven || !tool.Cumulative() {
		return c.decide(ctx, tool, calls, false)
	}
	noted, twice := c.made.note(tool, calls)
	refused := c.decide(ctx, tool, calls, twice)
	if refused != nil {
		c.made.forget(noted)
	}
	return refused
}

// decide says whether calls may be made. twice says that one of them was made before.
func (c *confirming) decide(
	ctx context.Context, tool *downstream.Tool, calls []json.RawMessage, twice bool,
) *plan.Error {
	switch {
	case c.mode == downstream.ConfirmNever && twice:
		return unapproved(tool, "the very same call was made before")
	case c.mode == downstream.ConfirmNever && !c.approved && !tool.Reads() && c.resembles(tool, calls):
		return unapproved(tool, "it was called before with nearly the same arguments")
	case c.mode == downstream.ConfirmNever, !twice && !c.required(tool.Tool):
		return nil
	}
	return c.ask(ctx, tool, calls, twice)
}

// ask asks the user whether the calls of a step may be made.
func (c *confirming) ask(ctx context.Context, tool *downstream.Tool, calls []json.RawMessage, twice bool) *plan.Error {
	record := c.s.record
	if c.s.q.Elicit == nil {
		record.Consents.Unanswered.Add(1)
		why := "nobody can be asked"
		if twice {
			why = "the very same call was made before, and " + why
		}
		return unapproved(tool, why)
	}
	message := consentMessage(tool, calls)
	if twice {
		message += "\nThe very same call was made before."
	}
	asking, cancel := asking(ctx)
	defer cancel()
	_, err := c.s.q.Elicit(asking, message, []byte(`{"type":"object","properties":{}}`))
	switch {
	case err == nil:
		record.Consents.Given.Add(1)
		return nil
	case errors.Is(err, ErrDeclined), errors.Is(err, ErrDismissed):
		record.Consents.Declined.Add(1)
		return &plan.Error{Reason: reason.Declined, Message: err.Error()}
	case ctx.Err() != nil:
		return execution.StepError(context.Cause(ctx))
	}
	record.Consents.Unanswered.Add(1)
	return unapproved(tool, err.Error())
}

// resembles reports whether a call is nearly the same as one that an earlier round has made. In a round for what failed
// or found nothing that may be any, for a model that plans again must not do twice what was asked for once. In a round
// that was planned it is only one that may have been done without our knowing.
func (c *confirming) resembles(tool *downstream.Tool, calls []json.RawMessage) bool {
	for _, o := range c.s.record.Outcomes {
		if c.toolOf(o.Step) != tool {
			continue
		}
		for _, earlier := range o.Calls() {
			counts := c.r.replan && earlier.OK() || earlier.Unsettled()
			if counts && slices.ContainsFunc(calls, func(call json.RawMessage) bool { return alike(earlier.Sent, call) }) {
				return true
			}
		}
	}
	return false
}

// earlier returns the writes of earlier rounds that may have been done: all that may have reached their servers.
func (c *confirming) earlier() map[callKey]bool {
	keys := map[callKey]bool{}
	for _, o := range c.s.record.Outcomes {
		tool := c.toolOf(o.Step)
		if tool == nil || !tool.Cumulative() {
			continue
		}
		for _, call := range o.Calls() {
			if call.Reached() {
				keys[plan.CallKey(tool.Server, tool.Tool.Tool, call.Sent)] = true
			}
		}
	}
	return keys
}

// toolOf returns the tool that a step of an earlier round has called, nil if it is gone. The names that plans use may
// have changed since.
func (c *confirming) toolOf(step plan.Step) *downstream.Tool {
	for _, name := range []string{step.Server + "." + step.Tool, step.Tool} {
		tool, unknown := c.s.catalog.Lookup(name, c.s.q.Origin.Visible)
		if unknown == nil && tool.Server == step.Server {
			return tool
		}
	}
	return nil
}

// callKey is what equal calls of the same tool have in common.
type callKey = [sha256.Size]byte

// writes are the calls that were made, or are about to be, of tools that do again what they did. Its methods may be
// called from any goroutine.
type writes struct {
	mu   sync.Mutex
	seen map[callKey]bool // at most execution.MaxCalls
}

// note notes calls. It returns those that are new, and reports whether one of them was there before or is there twice.
func (w *writes) note(tool *downstream.Tool, calls []json.RawMessage) (noted []callKey, twice bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, arguments := range calls {
		key := plan.CallKey(tool.Server, tool.Tool.Tool, arguments)
		if w.seen[key] {
			twice = true
			continue
		}
		w.seen[key] = true
		noted = append(noted, key)
	}
	return noted, twice
}

// forget removes calls that are not made after all.
func (w *writes) forget(calls []callKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range calls {
		delete(w.seen, key)
	}
}

func unapproved(tool *downstream.Tool, why string) *plan.Error {
	return &plan.Error{
		Reason:  reason.NeedsApproval,
		Message: fmt.Sprintf("%s was not called: it needs your approval, and %s", printable(tool.Name, maxShownName), why),
	}
}

// Bounds of a request for consent, in bytes.
const (
	maxShownName      = 200
	maxShownArguments = 2000
	maxShownCalls     = 8000 // of all calls of a loop
)

// consentMessage says what would be called. Names and arguments are those of servers and planners: each stands on a
// line of its own, on which they cannot write anything else.
func consentMessage(tool *downstream.Tool, calls []json.RawMessage) string {
	ask := "Allow this call?"
	if len(calls) > 1 {
		ask = fmt.Sprintf("Allow these %d calls?", len(calls))
	}
	message := fmt.Sprintf("%s\nServer: %s\nTool: %s", ask, tool.Server, printable(tool.Tool.Tool, maxShownName))
	for i, arguments := range calls {
		if i > 0 && len(message) > maxShownCalls {
			message += fmt.Sprintf("\n… and %d calls that are not shown", len(calls)-i)
			break
		}
		message += "\nArguments: " + printable(string(arguments), maxShownArguments)
	}
	if tool.Annotations.Destructive() {
		message += "\nThis tool is marked destructive."
	}
	return message
}

// printable escapes what cannot be seen, such as control characters, line ends and marks that turn the direction of
// text, and cuts the text, saying so.
func printable(text string, limit int) string {
	var b strings.Builder
	for i, r := range text {
		if b.Len() > limit {
			fmt.Fprintf(&b, "… (cut, %d bytes are not shown)", len(text)-i)
			break
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
