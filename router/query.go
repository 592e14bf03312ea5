package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// Query is one question and how to answer it.
type Query struct {
	Text      string
	Context   []llm.Message
	Servers   []string        // servers to use; empty = all
	Plan      json.RawMessage // plan to run unchanged; nil = use the planner
	DryRun    bool
	MaxRounds int              // 0 = as configured
	Timeout   time.Duration    // 0 = as configured
	Origin    execution.Origin // for whom the steps run
	Elicit    Elicit           // asks the user; nil = not possible
	Approved  bool             // the user has approved every call
	Sampling  llm.Model        // the client's model, used if none is configured and sampling is allowed; nil = none
	Report    *Reporter
}

// errQueryTimeout wraps context.DeadlineExceeded, so that the steps it ends fail as timed out.
var errQueryTimeout = fmt.Errorf("the query's time was up: %w", context.DeadlineExceeded)

// Query answers a question and reports it to the trace, the log and Follow. The error is a *Refusal if the caller
// caused it.
func (r *Router) Query(ctx context.Context, q Query) (*Record, error) {
	began := time.Now()
	r = r.As(q.Origin.Login)
	length := utf8.RuneCountInString(q.Text)
	ctx, span, id := r.tracer.Root(ctx, tracing.SpanQuery, tracing.With(tracing.Operation.String(tracing.OperationAgent),
		tracing.AgentName.String(Name), tracing.QueryLength.Int(length)))
	defer span.End()
	r.tracer.Message(span, tracing.InputMessages, llm.RoleUser, q.Text)
	ended := r.opts.Follow(&q, began, id.String())
	record, err := r.attempt(ctx, q, began)
	if err != nil {
		outcome, level := outcomeOf(err), slog.LevelError
		r.tracer.Fail(span, outcome, err.Error())
		if outcome == OutcomeCancelled {
			level = slog.LevelInfo // nothing went wrong
		}
		r.logger.Log(ctx, level, "Query failed: "+err.Error(), "outcome", outcome, "query_length", length,
			"duration_ms", time.Since(began).Milliseconds())
		ended(nil, outcome, err)
		return nil, err
	}
	record.Timings.Total = time.Since(began)
	record.TraceID = id.String()
	outcome := OutcomeOK
	if record.Answer.Degraded {
		outcome = OutcomeDegraded
	}
	span.SetAttributes(tracing.Outcome.String(outcome))
	r.tracer.Message(span, tracing.OutputMessages, llm.RoleAssistant, record.Answer.Text)
	r.logger.InfoContext(ctx, fmt.Sprintf("Query processed in %.2fs", record.Timings.Total.Seconds()),
		"outcome", outcome, "query_length", length, "tools_called", record.Called(),
		"duration_ms", record.Timings.Total.Milliseconds())
	ended(record, outcome, nil)
	return record, nil
}

// Outcomes of queries in metrics.
const (
	OutcomeOK        = "ok"
	OutcomeDegraded  = "degraded"
	OutcomeRefused   = "refused" // the caller caused the error
	OutcomeCancelled = "cancelled"
	OutcomeFailed    = "failed"
)

func outcomeOf(err error) string {
	switch _, refused := refusalText(err); {
	case refused:
		return OutcomeRefused
	case cancelled(err) || edge.Ended(err):
		return OutcomeCancelled
	}
	return OutcomeFailed
}

// attempt is process with a panic as an error, so that the query is reported as failed.
func (r *Router) attempt(ctx context.Context, q Query, began time.Time) (record *Record, err error) {
	defer safe.Recover(r.logger, "processing a query", func(failure error) { record, err = nil, failure })
	return r.process(ctx, q, began)
}

// process plans, executes and composes within the query's time.
func (r *Router) process(ctx context.Context, q Query, began time.Time) (*Record, error) {
	given, err := r.accept(&q)
	if err != nil {
		return nil, err
	}
	limit := r.opts.Query.Timeout
	if q.Timeout > 0 {
		limit = min(q.Timeout, r.opts.Query.TimeoutMax)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errQueryTimeout)
	defer cancel()

	working, stop := context.WithTimeoutCause(bounded, limit*4/5, errQueryTimeout) // the rest is for the answer
	defer stop()

	q.Report.milestone(atPlanning, "Planning tool calls...")
	s := r.newState(q, given, began)
	late := false
	for written := false; !written; {
		if s.last == nil || hasTime(working, began) {
			err = s.run(working)
			late = working.Err() != nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx) // the caller is gone
		}
		if err != nil && !errors.Is(context.Cause(working), errQueryTimeout) {
			return nil, err
		} // if only the time for steps is up, the answer uses the results so far
		if late {
			s.warn("answered from partial results: the steps still running after 80 %% of the query's %v were cancelled", limit)
		}
		s.record.nameServers(func(tool string) string {
			server, _, _ := r.directory.qualified(tool, q.Origin.Visible)
			return server
		})
		mayAsk := s.record.mayGrow(s.reads) && s.last.number < s.maxRounds && hasTime(working, began)
		written = s.compose(bounded, late, mayAsk)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	q.Report.milestone(atComplete, "Complete!")
	return s.record, nil
}

// hasTime reports whether a quarter of the time of a context is left.
func hasTime(ctx context.Context, began time.Time) bool {
	end, _ := ctx.Deadline()
	return time.Until(end) > end.Sub(began)/4
}

// accept validates a query. It trims the text and returns the given plan, if any.
func (r *Router) accept(q *Query) (given *plan.Plan, err error) {
	if q.Text, err = r.validator.check(q.Text); err != nil {
		return nil, err
	}
	for _, name := range q.Servers {
		if !slices.Contains(r.directory.serversFor(q.Origin.Visible), name) {
			return nil, refuse("Invalid argument: servers: Unknown server: %s", name)
		}
	}
	if q.Plan == nil {
		return nil, nil
	}
	p, err := plan.ParseJSON(q.Plan)
	if err != nil {
		return nil, refuse("Invalid argument: plan: %v", err)
	}
	p.Source = plan.SourceGiven
	return &p, nil
}

// Refusal is an error whose text is meant for the caller: bad arguments, limits, keys.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) *Refusal { return &Refusal{Text: fmt.Sprintf(format, args...)} }

// validator checks the text of queries.
type validator struct {
	maxChars int
	deny     []*regexp.Regexp
}

func newValidator(maxChars int, patterns []string) (*validator, error) {
	v := &validator{maxChars: maxChars}
	for _, p := range patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, fmt.Errorf("validation.deny_patterns: %w", err)
		}
		v.deny = append(v.deny, re)
	}
	return v, nil
}

// check returns the trimmed query, or an error if it is refused.
func (v *validator) check(query string) (string, error) {
	query = strings.TrimSpace(query)
	switch {
	case query == "":
		return "", refuse("Query is empty")
	case utf8.RuneCountInString(query) > v.maxChars:
		return "", refuse("Query too long")
	}
	for _, re := range v.deny {
		if re.MatchString(query) {
			return "", refuse("Invalid query content")
		}
	}
	return query, nil
}
