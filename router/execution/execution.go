// Package execution runs the plans of a query: it starts each step as soon as its inputs are available, and calls the
// tools.
//
// [Executor.Begin] begins a round. [Round.Start] starts a step while the plan is still being written, [Round.Execute]
// runs the plan, and [Round.Stop] ends the round. A round owns its goroutines, one per running step, and waits for
// them: Execute until every step has its outcome, Stop for the others.
//
// A step starts as soon as all steps that it refers to, or names in After, have succeeded. There are no waves. The
// order of steps matters only when parallel slots are scarce. Steps of a sequential plan run one at a time, in plan
// order among those that can run; the next starts when one has ended, whatever its outcome. A step that depends on a
// failed step fails without running. Every step has exactly one outcome, and no failure or panic affects independent
// steps.
//
// An Executor is safe for concurrent use. A Round is used by one goroutine.
package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// ToolCaller sends a request to a server. The errors are those of downstream.Manager.Call.
type ToolCaller interface {
	Call(ctx context.Context, r *downstream.Request) (link.Reply, error)
}

// Options of an Executor. Only Servers is required.
type Options struct {
	Servers     ToolCaller
	MaxParallel int             // concurrent calls of a round; 0 = the default
	Validator   *plan.Validator // nil creates one; share it to share compiled schemas
	Logger      *slog.Logger    // nil discards
	Mask        *redact.Masker  // of failures; nil knows no secrets
	Tracer      tracing.Tracer

	// Learn receives the arguments and the value of each successful step, and the servers whose results it carries. It
	// must not block; nil = unused.
	Learn func(t plan.Tool, carries []string, arguments, value json.RawMessage)
}

// Executor runs plans.
type Executor struct{ opts Options }

// New returns an Executor.
func New(opts Options) *Executor {
	opts.MaxParallel = cmp.Or(max(opts.MaxParallel, 0), downstream.DefaultExecution().MaxParallel)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Validator == nil {
		opts.Validator = plan.NewValidator()
	}
	return &Executor{opts}
}

// Request describes a round of a query.
type Request struct {
	Origin  Origin
	Began   time.Time      // when the query began
	Done    []plan.Outcome // of earlier rounds; steps may depend on them, and a step listed here does not run again
	Results *Budget        // bytes of results of all rounds; nil = no limit
	Calls   *Budget        // calls of all rounds; nil = no limit
	Span    *tracing.Lazy  // parent of step spans; nil = the context's span

	// Running is called with +1 when a call of a tool begins and -1 when it ends, concurrently; nil = unused.
	Running func(tool string, change int)
}

// Origin describes for whom the steps of a query run.
type Origin struct {
	Visible downstream.Visible
	Profile string              // of the surface, see downstream.Provenance
	Client  string              // session of the client
	Surface string              // see downstream.Provenance
	Caller  string              // charged for the steps: an API key or a remote address
	Login   string              // see downstream.Request
	Logins  string              // see downstream.Hooks
	Header  http.Header         // of the client's HTTP request, see downstream.Request
	Meta    []byte              // raw _meta for each step, or nil
	Ask     downstream.Asker    // answers requests of servers; nil = unsupported
	Yield   func(server string) // see downstream.Hooks
	Hold    downstream.Hold     // charges results to the caller while they are read; nil = no charge
}

// Work is a checked plan and how to run it.
type Work struct {
	Plan     plan.Plan
	Problems []plan.Problem // steps that must fail; the first problem of a step counts
	Lookup   plan.Lookup    // finds the tools of the steps; safe for concurrent use
	Decide   Decide         // asked before the calls of a step; nil allows all
	Progress ProgressFunc   // of the plan; called once at a time, in order; nil discards
}

// Decide decides whether a step may call its tool once with each of these final arguments; it may ask the user. It
// returns a decision on each call. An error becomes the error of the step, which then makes none of its calls. Decide
// must be safe for concurrent use.
type Decide func(
	ctx context.Context, step plan.Step, tool plan.Tool, calls []json.RawMessage,
) ([]Decision, *plan.Error)

// Decision is the decision on one call.
type Decision struct {
	From downstream.Provenance // what the call is decided on again on its way to the server
	Err  *plan.Error           // why it is not made; nil = it is
}

// MaxCalls is the maximum number of calls of one query.
const MaxCalls = 10_000

// Budget limits what a query uses: bytes of results held, or calls. It is safe for concurrent use. A nil Budget has
// no limit.
type Budget struct {
	most int64
	used atomic.Int64
}

// NewBudget returns a Budget with the given limit.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// take reserves n. It reports false, and reserves nothing, if less than n is left.
func (b *Budget) take(n int) bool {
	if b == nil {
		return true
	}
	for {
		used := b.used.Load()
		if used+int64(n) > b.most {
			return false
		}
		if b.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}

// StepError returns the error of a step whose call ended with err.
func StepError(err error) *plan.Error {
	var failure *link.Failure
	var unknown *downstream.UnknownError
	var input *downstream.InputError
	var forbidden *downstream.ForbiddenError
	switch {
	case errors.As(err, &forbidden):
		return &plan.Error{Reason: forbidden.Kind(), Message: forbidden.Error()}
	case errors.As(err, &input) && input.Declined:
		return &plan.Error{Reason: reason.Declined, Message: input.Error()}
	case errors.As(err, &input):
		return &plan.Error{Reason: reason.ToolError, Message: input.Error()}
	case errors.As(err, &unknown):
		return &plan.Error{Reason: reason.UnknownTool, Message: unknown.Error()}
	case errors.As(err, &failure) && failure.Reason == reason.Timeout:
		return &plan.Error{Reason: failure.Reason, Message: failure.Message}
	case errors.As(err, &failure):
		return &plan.Error{Reason: failure.Reason, Message: failure.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &plan.Error{Reason: reason.Timeout, Message: "the query's time was up"}
	}
	return &plan.Error{Reason: reason.Cancelled, Message: "cancelled: " + err.Error()}
}
