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

// consent decides which calls of a round need the user's approval. A tool that only reads never needs it.
type consent struct {
	mode         string // execution.confirm_writes
	source       string // of the plan
	afterResults bool   // the plan was made after tools had answered
	approved     bool   // the caller has approved every call
}

// required reports whether a call of the tool needs approval. A write planned by rules does, because they may have
// misread the question. A write planned by a model does if it is destructive, or if results of tools may have
// influenced the plan. A given plan does not: its author has seen it.
func (c consent) required(tool plan.Tool) bool {
	switch {
	case c.approved || c.mode == downstream.ConfirmNever || tool.Reads():
		return false
	case c.mode == downstream.ConfirmAlways:
		return true
	case c.source == plan.SourceGiven:
		return false
	case c.source == plan.SourceModel:
		return c.afterResults || tool.Annotations.Destructive()
	}
	return true
}

// consent returns the rules of consent for a round.
func (s *queryState) consent(r *round) consent {
	c := consent{mode: s.router.opts.Execution.ConfirmWrites, source: r.plan.Source, approved: s.q.Approved}
	for _, o := range s.record.Outcomes {
		c.afterResults = c.afterResults || o.Attempts > 0 // the text of an error counts as a result
	}
	return c
}

// confirmer obtains the user's consent for the calls of one round.
type confirmer struct {
	consent
	s    *queryState
	r    *round
	made writes
}

// confirm returns a function that asks the user before calls that need consent, and before a repeated write. A step
// without consent fails: as declined if the user refuses, as needs_approval if nobody can be asked or nobody answers.
func (s *queryState) confirm(r *round) execution.Confirm {
	c := &confirmer{consent: s.consent(r), s: s, r: r}
	c.made.seen = c.earlier()
	return c.confirm
}

func (c *confirmer) confirm(ctx context.Context, tool plan.Tool, calls []json.RawMessage) *plan.Error {
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

// decide returns nil if the calls may be made. twice means that one of them was made before.
func (c *confirmer) decide(
	ctx context.Context, tool plan.Tool, calls []json.RawMessage, twice bool,
) *plan.Error {
	switch {
	case c.mode == downstream.ConfirmNever && twice:
		return unapproved(tool, "this exact call was made before")
	case c.mode == downstream.ConfirmNever && !c.approved && !tool.Reads() && c.nearlyRepeats(tool, calls):
		return unapproved(tool, "it was called before with nearly the same arguments")
	case c.mode == downstream.ConfirmNever, !twice && !c.required(tool):
		return nil
	}
	return c.ask(ctx, tool, calls, twice)
}

// ask asks the user whether the calls of a step may be made.
func (c *confirmer) ask(ctx context.Context, tool plan.Tool, calls []json.RawMessage, twice bool) *plan.Error {
	record := c.s.record
	if c.s.q.Elicit == nil {
		record.Consents.Unanswered.Add(1)
		why := "nobody can be asked"
		if twice {
			why = "this exact call was made before, and " + why
		}
		return unapproved(tool, why)
	}
	message := consentMessage(tool, calls)
	if twice {
		message += "\nThis exact call was made before."
	}
	asking, cancel := limitAsking(ctx)
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

// nearlyRepeats reports whether a call nearly repeats one of an earlier round. In a replanned round every earlier
// success counts, because the model must not repeat what the user asked for once. In other rounds only calls with an
// unknown outcome count.
func (c *confirmer) nearlyRepeats(tool plan.Tool, calls []json.RawMessage) bool {
	for _, o := range c.s.record.Outcomes {
		if earlier, ok := c.toolOf(o.Step); !ok || earlier.Server != tool.Server || earlier.Tool != tool.Tool {
			continue
		}
		for _, earlier := range o.Calls() {
			counts := c.r.replan && earlier.OK() || earlier.MayHaveActed()
			if counts && slices.ContainsFunc(calls, func(call json.RawMessage) bool {
				return similarArguments(earlier.Sent, call)
			}) {
				return true
			}
		}
	}
	return false
}

// earlier returns the writes of earlier rounds that may have reached their servers.
func (c *confirmer) earlier() map[callKey]bool {
	keys := map[callKey]bool{}
	for _, o := range c.s.record.Outcomes {
		tool, ok := c.toolOf(o.Step)
		if !ok || !tool.Cumulative() {
			continue
		}
		for _, call := range o.Calls() {
			if call.Reached() {
				keys[plan.CallKey(tool.Server, tool.Tool, call.Sent)] = true
			}
		}
	}
	return keys
}

// toolOf returns the tool that a step of an earlier round called; ok is false if it no longer exists. It tries the
// qualified name first, because the meaning of bare names may have changed since.
func (c *confirmer) toolOf(step plan.Step) (tool plan.Tool, ok bool) {
	for _, name := range []string{step.Server + "." + step.Tool, step.Tool} {
		tool, unknown := c.s.usable().Lookup(name)
		if unknown == nil && tool.Server == step.Server {
			return tool, true
		}
	}
	return plan.Tool{}, false
}

// callKey identifies equal calls of one tool.
type callKey = [sha256.Size]byte

// writes records calls, made or about to be made, of tools that act again when called again. Its methods are safe for
// concurrent use.
type writes struct {
	mu   sync.Mutex
	seen map[callKey]bool // at most execution.MaxCalls
}

// note records calls. It returns the new ones and reports whether any was recorded before or occurs twice.
func (w *writes) note(tool plan.Tool, calls []json.RawMessage) (noted []callKey, twice bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, arguments := range calls {
		key := plan.CallKey(tool.Server, tool.Tool, arguments)
		if w.seen[key] {
			twice = true
			continue
		}
		w.seen[key] = true
		noted = append(noted, key)
	}
	return noted, twice
}

// forget removes calls that will not be made.
func (w *writes) forget(calls []callKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range calls {
		delete(w.seen, key)
	}
}

func unapproved(tool plan.Tool, why string) *plan.Error {
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

// consentMessage lists the calls to approve. Names and arguments come from servers and planners, so each has a line
// of its own and cannot forge other lines.
func consentMessage(tool plan.Tool, calls []json.RawMessage) string {
	ask := "Allow this call?"
	if len(calls) > 1 {
		ask = fmt.Sprintf("Allow these %d calls?", len(calls))
	}
	message := fmt.Sprintf("%s\nServer: %s\nTool: %s", ask, tool.Server, printable(tool.Tool, maxShownName))
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

// printable escapes invisible characters such as control characters, line breaks and direction marks. It cuts long
// text and notes the cut.
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
