package downstream

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// audited records each call with its decision and its outcome; what the router does by itself has no line. If the log
// cannot take its line, the call may be refused.
func audited(opts *Options, next callFunc) callFunc {
	if opts.Audit == nil {
		return next
	}
	return func(ctx context.Context, r *Request) (reply link.Reply, err error) {
		// Lists are of the router itself; those of clients are answered elsewhere.
		if r.Method == "tools/list" || r.Decided {
			return next(ctx, r)
		}
		if err := opts.Audit.Begin(); err != nil {
			return link.Reply{}, &link.Failure{Reason: reason.Unavailable, Refused: true,
				Message: "the call was not made, because the audit log cannot record it: " + err.Error() +
					"; make the log writable, or set audit.on_failure: continue"}
		}
		own := *r
		own.verdict = new(audit.Verdict)
		var sent atomic.Bool
		own.Sent = func() {
			sent.Store(true)
			if r.Sent != nil {
				r.Sent()
			}
		}
		began := time.Now()
		outcome, why := audit.OutcomeUnknown, reason.Internal // of a panic
		defer func() {
			opts.Audit.End(record(ctx, &own, time.Since(began), outcome, why), recordedArguments(r))
		}()
		reply, err = next(ctx, &own)
		outcome, why = recordedOutcome(reply, err, sent.Load())
		return reply, err
	}
}

// ErrRateLimited is the error of a request beyond the rate limit of its caller, for Refused.
var ErrRateLimited error = &link.Failure{Reason: reason.Overloaded, Message: "Rate limit exceeded"}

// Refused records in the audit log a request that names a server, or something of one, and that was refused before
// Call. The error is one of Call, ErrRateLimited, a *jsonrpc.Error or a *plan.Error. The Consent of the request is
// "none" if the call needs consent for a reason that is no decision, such as an equal call before.
func (m *Manager) Refused(ctx context.Context, r *Request, err error) {
	if m.opts.Audit == nil || r.Decided || m.opts.Audit.Begin() != nil { // the log has warned
		return
	}
	d, _ := m.Decide(r) // of what is unknown, the zero value
	own := *r
	own.verdict = new(audit.Verdict)
	outcome, why := recordedOutcome(link.Reply{}, err, false)
	switch {
	case errors.Is(err, ErrRateLimited):
		d = trust.Decision{Action: trust.Deny, Rule: trust.RuleRateLimit}
	case errors.As(err, new(*jsonrpc.Error)):
		d = trust.Decision{Action: trust.Deny}
	case d.Action == trust.Allow && r.Consent != "":
		d = trust.Decision{Action: trust.Ask}
	case d.Action != trust.Allow || why == reason.NeedsApproval: // which another call of the loop needs
	case outcome == audit.OutcomeDenied:
		d = trust.Decision{Action: trust.Deny}
	}
	own.decided(d)
	m.opts.Audit.End(record(ctx, &own, 0, outcome, why), recordedArguments(r))
}

// decided notes the decision on a request, and the consent to it, for the audit log.
func (r *Request) decided(d trust.Decision) {
	if r.verdict == nil {
		return
	}
	r.verdict.Decision, r.verdict.Rule = string(cmp.Or(d.Action, trust.Deny)), d.Rule
	if r.verdict.Consent = r.Consent; d.Action == trust.Ask {
		r.verdict.Consent = cmp.Or(r.Consent, "none")
	}
}

// record describes a call for the audit log.
func record(ctx context.Context, r *Request, took time.Duration, outcome, why string) audit.Record {
	e := audit.Record{
		Subject: audit.Subject{
			Caller: cmp.Or(callerName(r.Caller), "local"), Profile: r.Profile, Surface: cmp.Or(r.Surface, "command"),
			Server: r.Server, Method: r.Method, Tool: recordedItem(r), Source: cmp.Or(r.Source, trust.SourceClient),
		},
		Verdict: *r.verdict, Outcome: outcome, Reason: why,
		Duration: float64(took.Microseconds()) / 1e3, TraceID: recordedTrace(ctx, r),
	}
	if e.Decision == string(trust.Deny) && outcome == audit.OutcomeError {
		e.Outcome = audit.OutcomeDenied // such as a tool that waits for approval
	}
	return e
}

// recordedTrace returns the id of the trace of a request; empty without one.
func recordedTrace(ctx context.Context, r *Request) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.HasTraceID() { // the client may have sent one that the router does not join
		sent := tracing.Remote{Parent: jsonrpc.Get(r.Params, "_meta", "traceparent"), Header: r.Header}
		ctx, _ = sent.Context(ctx, true)
		span = trace.SpanContextFromContext(ctx)
	}
	if !span.HasTraceID() {
		return ""
	}
	return span.TraceID().String()
}

// recordedItem returns the tool, prompt or resource of a request.
func recordedItem(r *Request) string {
	switch {
	case r.calledTool() != "":
		return r.calledTool()
	case strings.HasPrefix(r.Method, "prompts/"):
		return jsonrpc.Text(jsonrpc.Get(r.Params, "name"))
	case strings.HasPrefix(r.Method, "resources/"):
		return jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))
	}
	return ""
}

// recordedArguments returns the arguments of a call of a tool or prompt, and the params of other requests without their
// _meta.
func recordedArguments(r *Request) []byte {
	if r.calledTool() != "" || r.Method == "prompts/get" {
		return jsonrpc.Get(r.Params, "arguments")
	}
	return jsonrpc.Remove(r.Params, "_meta")
}

// recordedOutcome returns how a call ended and why.
func recordedOutcome(reply link.Reply, err error, sent bool) (outcome, why string) {
	var wrong *plan.Error
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, new(*UnknownError)):
		why = reason.UnknownTool
	case errors.As(err, &wrong):
		why = wrong.Reason
	case errors.As(err, &answer):
		why = strconv.Itoa(answer.Code)
	default:
		why = errorType(reply, err)
	}
	outcome = outcomeOf(why, sent)
	if why == "" && NeedsInput(reply) {
		why = inputRequired // the client's next request continues the call
	}
	return outcome, why
}

// outcomeOf returns the outcome of a call that ended for a reason. sent means that the server has the request.
func outcomeOf(why string, sent bool) string {
	switch why {
	case "":
		return audit.OutcomeOK
	case reason.Declined:
		return audit.OutcomeDeclined
	case reason.Forbidden, reason.NeedsApproval, reason.UnknownTool:
		return audit.OutcomeDenied
	case reason.Cancelled:
		return audit.OutcomeCancelled
	case reason.OutcomeUnknown:
		return audit.OutcomeUnknown
	case reason.Timeout:
		if sent {
			return audit.OutcomeUnknown
		}
	}
	return audit.OutcomeError
}
