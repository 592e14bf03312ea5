package router

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/synth"
)

// Query is one question and what its caller wants of the answer.
type Query struct {
	Text      string
	Context   []llm.Message
	Servers   []string        // the only servers to use; empty = all
	Plan      json.RawMessage // replaces the planner; nil = plan
	DryRun    bool
	MaxRounds int           // 0 = as configured
	Timeout   time.Duration // 0 = as configured
	Visible   downstream.Visible
	Client    string           // session of the client
	Caller    string           // whose share of the servers it takes: an API key or a remote address
	Meta      []byte           // raw _meta for each step, or nil
	Ask       downstream.Asker // answers requests of servers; nil = nobody
	Hold      downstream.Hold  // charges the caller for what is read; nil = nobody pays
	Elicit    Elicit           // asks the user; nil = cannot be asked
	Lent      llm.Model        // of the client, for where no model is configured and this is allowed; nil = none
	Report    *Reporter
}

// Record is what one query did. It is the only account of it: results, logs and traces are made from it.
type Record struct {
	Answer        synth.Answer
	NeedsApproval bool
	Warnings      []string
	TraceID       string
	Plan          plan.Plan
	Outcomes      []plan.Outcome
	PlannerUsage  llm.Usage
	Planning      time.Duration
	Executing     time.Duration
	Synthesizing  time.Duration
	Total         time.Duration

	failed []plan.Outcome // that no later round made good
}

// Called returns the number of steps that reached a tool.
func (r *Record) Called() int {
	n := 0
	for _, o := range r.Outcomes {
		if o.Attempts > 0 {
			n++
		}
	}
	return n
}

// add notes the outcomes of a round. A failed call is made good by one of the same tool that succeeds in a later round.
func (r *Record) add(round []plan.Outcome) {
	r.Outcomes = append(r.Outcomes, round...)
	r.failed = slices.DeleteFunc(r.failed, func(f plan.Outcome) bool {
		return slices.ContainsFunc(round, func(o plan.Outcome) bool {
			return o.OK() && o.Step.Tool == f.Step.Tool && o.Step.Server == f.Step.Server
		})
	})
	for _, o := range round {
		if !o.OK() {
			r.failed = append(r.failed, o)
		}
	}
}

// nameServers fills in the servers of steps whose tools could not be found, as far as their names tell. servers are those
// that the caller may know of.
func (r *Record) nameServers(servers []string) {
	name := func(s *plan.Step) {
		if s.Server == "" {
			s.Server = serverOf(s.Tool, servers)
		}
	}
	for i := range r.Plan.Steps {
		name(&r.Plan.Steps[i])
	}
	for i := range r.Outcomes {
		name(&r.Outcomes[i].Step)
	}
}

// errQueryTimeout is a deadline that was exceeded, so that steps which it ends fail as timed out.
var errQueryTimeout = fmt.Errorf("the query's time was up: %w", context.DeadlineExceeded)

// Query plans, executes and composes. The error is a *Refusal for what the caller did wrong.
func (r *Router) Query(ctx context.Context, q Query) (*Record, error) {
	began := time.Now()
	ctx, span := r.tracer.Start(ctx, "process_query", trace.WithAttributes(attribute.Int("query.length", utf8.RuneCountInString(q.Text))))
	defer span.End()
	record, err := r.answer(ctx, q, began)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		outcome, level := outcomeOf(err), slog.LevelError
		if outcome == OutcomeCancelled {
			level = slog.LevelInfo // nothing went wrong
		}
		r.logger.Log(ctx, level, "Query failed: "+err.Error())
		r.observe(outcome, time.Since(began))
		return nil, err
	}
	record.Total = time.Since(began)
	record.TraceID = span.SpanContext().TraceID().String()
	outcome := OutcomeOK
	if record.Answer.Degraded {
		outcome = OutcomeDegraded
	}
	r.observe(outcome, record.Total)
	r.logger.Info(fmt.Sprintf("Query processed in %.2fs", record.Total.Seconds()),
		"query_length", utf8.RuneCountInString(q.Text), "tools_called", record.Called(),
		"duration_ms", record.Total.Milliseconds(), "trace_id", record.TraceID)
	return record, nil
}

// Outcomes of queries, for metrics.
const (
	OutcomeOK        = "ok"
	OutcomeDegraded  = "degraded"
	OutcomeRefused   = "refused" // the caller did something wrong
	OutcomeCancelled = "cancelled"
	OutcomeFailed    = "failed"
)

func outcomeOf(err error) string {
	var cancelled *edge.Cancelled
	switch _, refused := refusalText(err); {
	case refused:
		return OutcomeRefused
	case errors.As(err, &cancelled), edge.Ended(err):
		return OutcomeCancelled
	}
	return OutcomeFailed
}

func (r *Router) answer(ctx context.Context, q Query, began time.Time) (*Record, error) {
	text, err := r.validator.check(q.Text)
	if err != nil {
		return nil, err
	}
	q.Text = text
	var given *plan.Plan
	if q.Plan != nil {
		p, err := plan.ParseJSON(q.Plan)
		if err != nil {
			return nil, refuse("Invalid argument: plan: %v", err)
		}
		p.Source = plan.SourceGiven
		given = &p
	}
	if err := r.knowServers(q); err != nil {
		return nil, err
	}
	limit := r.opts.Query.Timeout
	if q.Timeout > 0 {
		limit = min(q.Timeout, r.opts.Query.TimeoutMax)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errQueryTimeout)
	defer cancel()

	q.Report.station(atPlanning, "Planning tool calls...")
	j := &job{
		Router: r, q: q, given: given, visible: within(q), began: began,
		record: &Record{Plan: plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}}},
	}
	record := j.record
	err = j.work(bounded)
	record.nameServers(r.serversFor(q.Visible))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the caller is gone
	}
	if err != nil && !errors.Is(context.Cause(bounded), errQueryTimeout) {
		return nil, err
	}
	late := bounded.Err() != nil
	if late {
		record.Warnings = append(record.Warnings, fmt.Sprintf("the query's time of %v was up; the answer rests on what was there", limit))
	}
	if q.DryRun || record.NeedsApproval {
		record.Answer = synth.Answer{Text: describePlan(record, j.note), Degraded: record.Answer.Degraded || late || len(record.failed) > 0, Citations: []synth.Citation{}}
		q.Report.station(atComplete, "Complete!")
		return record, nil
	}
	q.Report.station(atSynthesizing, "Synthesizing response...")
	j.synthesize(bounded)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	record.Answer.Degraded = record.Answer.Degraded || late || len(record.failed) > 0
	q.Report.station(atComplete, "Complete!")
	return record, nil
}

// knowServers refuses a restriction to servers that the caller cannot use.
func (r *Router) knowServers(q Query) error {
	for _, name := range q.Servers {
		if !slices.Contains(r.serversFor(q.Visible), name) {
			return refuse("Invalid argument: servers: Unknown server: %s", name)
		}
	}
	return nil
}

// within is what a query may use: what its caller may, of the servers that it names.
func within(q Query) downstream.Visible {
	if len(q.Servers) == 0 {
		return q.Visible
	}
	return func(server, tool string) bool {
		return slices.Contains(q.Servers, server) && (q.Visible == nil || q.Visible(server, tool))
	}
}

// describePlan is the answer where the plan, or what is left of it, was not called. note is what the planner says of it.
func describePlan(r *Record, note string) string {
	var b strings.Builder
	switch {
	case len(r.Plan.Steps) == 0:
		return cmp.Or(note, "No tool is needed, or none fits.")
	case !r.NeedsApproval:
		b.WriteString("Nothing was called. The plan:\n")
	case len(r.Outcomes) == 0:
		b.WriteString("Nothing was called: the plan has a tool that may destroy something and needs your approval. To approve, call its steps with run.\n")
	default:
		b.WriteString("The plan goes on with a tool that may destroy something and needs your approval. To approve, call the steps that are left with run.\n")
	}
	called := func(id string) bool {
		return slices.ContainsFunc(r.Outcomes, func(o plan.Outcome) bool { return o.Step.ID == id })
	}
	for _, s := range r.Plan.Steps {
		fmt.Fprintf(&b, "- %s: %s(%s)", s.ID, s.Tool, short.Text(string(s.Arguments), 500))
		if len(s.After) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(s.After, ", "))
		}
		if called(s.ID) {
			b.WriteString(", called already")
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
