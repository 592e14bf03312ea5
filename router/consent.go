package router

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// Who consented to a call, see downstream.Provenance.
const (
	byUser   = "user"
	byPlan   = "plan"
	byNobody = "none" // the call needs consent
)

// decider decides on the calls of one round. Where the decision is to ask, it obtains the user's consent.
type decider struct {
	s       *queryState
	r       *round
	shown   shown               // to the planner of the round
	carried map[string][]string // servers whose results each step carries, by its id
	made    writes

	mu    sync.Mutex
	flows map[string]*flow // that the user was asked about
}

// newDecider returns the decider of a round. Its method begin must be called before decide.
func newDecider(s *queryState, r *round) *decider {
	return &decider{s: s, r: r, shown: shownBy(s.record), flows: map[string]*flow{}}
}

// begin prepares for the steps of the round, whose plan is in the record.
func (c *decider) begin() {
	c.carried, c.made.seen = c.s.record.Plan.Flows(), c.earlier()
}

// decide implements execution.Decide: it decides on the calls of a step as the path to servers does, and asks the user
// before calls that need consent and before a repeated write. Calls that are denied fail alone. A step without consent
// fails as a whole: as declined if the user refuses, as needs_approval if nobody can be asked or nobody answers.
func (c *decider) decide(
	ctx context.Context, step plan.Step, tool plan.Tool, calls []json.RawMessage,
) ([]execution.Decision, *plan.Error) {
	a := c.undecided(step, tool, calls)
	by, refused := c.judge(ctx, a)
	for i, arguments := range calls {
		d := &a.decided[i]
		if d.Err = cmp.Or(d.Err, refused); d.Err != nil {
			c.s.router.servers.Refused(ctx, c.request(tool, arguments, d.From), d.Err)
		} else if d.From.Consent != "" {
			d.From.Consent = by
		}
	}
	return a.decided, refused
}

// judge obtains consent for the calls of a step, see consent.
func (c *decider) judge(ctx context.Context, a *asking) (by string, refused *plan.Error) {
	if c.s.q.Approved || c.r.plan.Source == plan.SourceGiven || !a.tool.Cumulative() {
		return c.consent(ctx, a)
	}
	noted, twice := c.made.note(a.tool, a.open)
	if a.twice = twice; twice {
		a.needAll()
	}
	if by, refused = c.consent(ctx, a); refused != nil {
		c.made.forget(noted)
	}
	return by, refused
}

// undecided decides on the calls of a step, without asking the user.
func (c *decider) undecided(step plan.Step, tool plan.Tool, calls []json.RawMessage) *asking {
	from := c.provenance(c.r.plan.Source, tool, c.carried[step.ID])
	a := &asking{step: step, tool: tool, from: from, decided: make([]execution.Decision, len(calls))}
	for i, arguments := range calls {
		d, err := c.decision(tool, arguments, from)
		if a.decided[i].From = from; err == nil && d.Action == trust.Deny {
			err = &downstream.ForbiddenError{Decision: d}
		}
		if err != nil {
			a.decided[i].Err = execution.StepError(err)
			continue
		}
		a.open = append(a.open, arguments)
		if d.Action == trust.Ask {
			a.calls, a.decided[i].From.Consent = append(a.calls, arguments), byNobody
			if !slices.Contains(a.decisions, d) {
				a.decisions = append(a.decisions, d)
			}
		}
	}
	return a
}

// decision returns the decision on a call of a step.
func (c *decider) decision(
	tool plan.Tool, arguments json.RawMessage, from downstream.Provenance,
) (trust.Decision, error) {
	return c.s.router.servers.Decide(c.request(tool, arguments, from))
}

// request returns a call of a step.
func (c *decider) request(tool plan.Tool, arguments json.RawMessage, from downstream.Provenance) *downstream.Request {
	return &downstream.Request{
		Server: tool.Server, Tool: tool.Tool, Method: "tools/call", Params: catalog.Params(tool.Tool, arguments, nil),
		Visible: c.s.q.Origin.Visible, Caller: c.s.q.Origin.Caller, Login: c.s.q.Origin.Login, Provenance: from,
	}
}

// asking is what the user is asked about.
type asking struct {
	step      plan.Step
	tool      plan.Tool
	from      downstream.Provenance
	decided   []execution.Decision // on each call of the step; the consent of those that need it is byNobody
	open      []json.RawMessage    // calls that are not denied
	calls     []json.RawMessage    // those that need consent
	decisions []trust.Decision     // on these calls, each once
	twice     bool                 // one of the calls was made before
	others    []plan.Step          // steps with the same flow, which the answer applies to, too
}

// needAll notes that all calls that are not denied need consent.
func (a *asking) needAll() {
	a.calls = a.open
	for i := range a.decided {
		if d := &a.decided[i]; d.Err == nil {
			d.From.Consent = byNobody
		}
	}
}

// unapproved returns the error of a step without consent. It tells why the calls need consent, unless they only write.
func (a *asking) unapproved(why string) *plan.Error {
	if a.twice {
		why = "this exact call was made before, and " + why
	}
	for _, d := range slices.Backward(a.decisions) {
		if d.Rule != trust.RuleWrite {
			why = printable(strings.TrimSuffix(d.Reason, "."), maxShownName) + ", and " + why
		}
	}
	return unapproved(why)
}

// consent obtains consent for the calls of a step if they need it. It returns who gave it, see downstream.Provenance.
func (c *decider) consent(ctx context.Context, a *asking) (by string, refused *plan.Error) {
	mode := c.s.router.opts.Execution.ConfirmWrites
	never, needed := mode == downstream.ConfirmNever, len(a.decisions) > 0
	switch {
	case never && a.twice:
		return "", unapproved("this exact call was made before")
	case never && !c.s.q.Approved && !a.tool.Reads() && c.nearlyRepeats(a.tool, a.open):
		a.needAll()
		return "", unapproved("it was called before with nearly the same arguments")
	case !needed && !a.twice:
		return "", nil
	case c.s.q.Approved:
		return byUser, nil
	case c.s.user.approved && (a.tool.Reads() || mode != downstream.ConfirmAlways):
		return byPlan, nil
	case c.s.user.declined.before(a):
		return "", &plan.Error{Reason: reason.Declined, Message: "the user declined this flow in an earlier round"}
	}
	if f := c.flowOf(a); f != nil {
		refused = f.ask(func(others []plan.Step) *plan.Error {
			a.others = others
			return c.ask(ctx, a)
		}, a.step.ID)
	} else {
		refused = c.ask(ctx, a)
	}
	return byUser, refused
}

// ask asks the user whether calls may be made.
func (c *decider) ask(ctx context.Context, a *asking) *plan.Error {
	record := c.s.record
	if c.s.q.Elicit == nil {
		record.Consents.Unanswered.Add(1)
		return a.unapproved("nobody can be asked")
	}
	refused, err := askApproval(ctx, c.s.q.Elicit, c.message(a))
	switch {
	case err == nil:
		record.Consents.Given.Add(1)
		return nil
	case refused:
		record.Consents.Declined.Add(1)
		c.s.user.declined.note(a)
		return &plan.Error{Reason: reason.Declined, Message: err.Error()}
	case ctx.Err() != nil:
		return execution.StepError(context.Cause(ctx))
	}
	record.Consents.Unanswered.Add(1)
	return a.unapproved(err.Error())
}

// nearlyRepeats reports whether a call nearly repeats one of an earlier round. In a replanned round every earlier
// success counts, because the model must not repeat what the user asked for once. In other rounds only calls with an
// unknown outcome count.
func (c *decider) nearlyRepeats(tool plan.Tool, calls []json.RawMessage) bool {
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
func (c *decider) earlier() map[callKey]bool {
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
func (c *decider) toolOf(step plan.Step) (tool plan.Tool, ok bool) {
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

func unapproved(why string) *plan.Error {
	return &plan.Error{Reason: reason.NeedsApproval, Message: "it needs your approval, and " + why}
}

// Bounds of a request for consent, in bytes.
const (
	maxShownName      = 200
	maxShownArguments = 2000
	maxShownCalls     = 8000 // of all calls of a loop
)

// message tells why calls need consent, and lists them. Names and arguments come from servers and planners, so
// each has a line of its own and cannot forge other lines.
func (c *decider) message(a *asking) string {
	ask := "Allow this call?"
	if len(a.calls) > 1 {
		ask = fmt.Sprintf("Allow these %d calls?", len(a.calls))
	}
	message := ask
	for _, d := range a.decisions {
		switch d.Rule {
		case trust.RuleWrite:
		case trust.RuleFlow:
			message += "\n" + c.s.router.describeFlow(a.from.Carries, a.tool.Server) + "."
		default:
			message += "\nReason: " + printable(d.Reason, maxShownName)
		}
	}
	message += fmt.Sprintf("\nServer: %s\nTool: %s", a.tool.Server, printable(texts.VisibleName(a.tool.Tool), maxShownName))
	for i, arguments := range a.calls {
		if i > 0 && len(message) > maxShownCalls {
			message += fmt.Sprintf("\n… and %d calls that are not shown", len(a.calls)-i)
			break
		}
		message += "\nArguments: " + printable(string(arguments), maxShownArguments)
	}
	for i, step := range a.others {
		if i == 0 {
			message += "\nThe answer also applies to:"
		} else if len(message) > 2*maxShownCalls {
			message += fmt.Sprintf("\n… and %d steps that are not shown", len(a.others)-i)
			break
		}
		message += "\nArguments: " + printable(string(step.Arguments), maxShownArguments)
		if step.Each != "" {
			message += "\n  for each of " + printable(step.Each, maxShownName)
		}
	}
	if a.tool.Annotations.Destructive() {
		message += "\nThis tool is marked destructive."
	}
	if a.twice {
		message += "\nThis exact call was made before."
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
