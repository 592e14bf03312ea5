package downstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// admit makes calls wait in the server's fair queue and refuses them while the circuit breaker is open. If a new
// configuration replaces the server while a call waits, the call moves to the successor.
func (c *calls) admit(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		for {
			reply, err := r.server.admit(ctx, r, next)
			if !errors.Is(err, admission.ErrRetired) {
				return reply, err
			}
			successor, err := c.serverFor(r)
			if err != nil {
				return link.Reply{}, err
			}
			r.server = successor
		}
	}
}

func (e *endpoint) admit(ctx context.Context, r *Request, next roundTrip) (link.Reply, error) {
	if no, wait := e.health.breaker.Refuses(); no {
		return link.Reply{}, e.broken(wait)
	}
	r.place = new(admission.Place)
	began := time.Now()
	err := e.queue.Enter(ctx, r.place, r.Caller, r.Client)
	r.place.Waited = time.Since(began)
	switch {
	case err == nil:
		return e.guarded(ctx, r, next)
	case errors.Is(err, admission.ErrFull):
		return link.Reply{}, refused{&link.Failure{Server: e.config.Name, Reason: reason.Overloaded,
			Message: fmt.Sprintf("%d calls are in flight and %d wait", e.config.places(), e.config.room())}}
	case timedOut(err): // in the queue
		return link.Reply{}, refused{&link.Failure{Server: e.config.Name, Reason: reason.Overloaded,
			Message: fmt.Sprintf("the %d calls in flight left no place in time", e.config.places())}}
	default:
		return link.Reply{}, err
	}
}

// broken returns the failure of calls that the breaker refuses.
func (e *endpoint) broken(wait time.Duration) error {
	message := fmt.Sprintf("calls keep failing; the next one is allowed in %v", wait.Round(time.Millisecond))
	if last := e.health.machine.LastError(); last != nil {
		message += ": " + last.Message
	}
	return refused{&link.Failure{Server: e.config.Name, Reason: reason.Unavailable, Message: message, After: wait}}
}

// guarded makes a call that has a place in the queue, unless the breaker refuses it, and reports the result to the
// breaker.
func (e *endpoint) guarded(ctx context.Context, r *Request, next roundTrip) (link.Reply, error) {
	defer r.place.Leave()
	if ok, wait := e.health.breaker.Allow(); !ok {
		return link.Reply{}, e.broken(wait)
	}
	before := e.health.breaker.Failures()
	reply, err := next(ctx, r)
	if err == nil {
		e.health.breaker.Succeeded()
		e.health.on(health.Answered, nil)
		return reply, nil
	}
	unreached, counts := e.blames(ctx, err)
	if counts && unreached {
		e.health.unreached(err)
	}
	if counts && e.health.breaker.Failed(before, unreached) {
		e.logger.WarnContext(ctx, "calls are refused temporarily: too many failed in a row",
			"server", e.config.Name, "error", err)
	}
	return reply, err
}

// blames reports whether the server was unreachable, and whether a failed call counts against the whole server. A
// timeout counts only against the tool, unless the server also fails to answer pings.
func (e *endpoint) blames(ctx context.Context, err error) (unreached, counts bool) {
	var failure *link.Failure
	if !errors.As(err, &failure) {
		return false, false
	}
	switch failure.Reason {
	case reason.Unavailable, reason.Disconnected, reason.OutcomeUnknown:
		return !failure.Delivered, ctx.Err() == nil && e.ctx.Err() == nil
	case reason.Timeout:
		return false, !e.health.machine.Connected()
	}
	return false, false
}
