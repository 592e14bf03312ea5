package downstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// refused marks a failure as ours: the call did not get as far as its server.
type refused struct{ *link.Failure }

// Unwrap makes the Failure visible to errors.As.
func (r refused) Unwrap() error { return r.Failure }

// admit holds calls back from a server that has enough of them, and refuses them at once while it cannot be
// reached. A call that is not with its server when a new configuration replaces that, because it waits for a
// place, a connection or another attempt, goes to the successor.
func (m *Manager) admit(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		for {
			reply, err := r.server.admit(ctx, r, next)
			if !errors.Is(err, admission.ErrRetired) {
				return reply, err
			}
			successor, err := m.serverFor(r)
			if err != nil {
				return link.Reply{}, err
			}
			r.server = successor
		}
	}
}

func (s *server) admit(ctx context.Context, r *Request, next caller) (link.Reply, error) {
	if no, wait := s.breaker.Refuses(); no {
		return link.Reply{}, s.broken(wait)
	}
	r.place = new(admission.Place)
	switch err := s.queue.Enter(ctx, r.place, r.Caller, r.Client); {
	case err == nil:
		return s.guarded(ctx, r, next)
	case errors.Is(err, admission.ErrFull):
		return link.Reply{}, refused{&link.Failure{Server: s.config.Name, Reason: link.ReasonOverloaded,
			Message: fmt.Sprintf("%d calls are in flight and %d wait", s.config.places(), s.config.room())}}
	case timedOut(err): // it never began
		return link.Reply{}, refused{&link.Failure{Server: s.config.Name, Reason: link.ReasonOverloaded,
			Message: fmt.Sprintf("the %d calls in flight left no place in time", s.config.places())}}
	default:
		return link.Reply{}, err
	}
}

func timedOut(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Reason == link.ReasonTimeout
}

// broken is the failure of calls that the breaker refuses.
func (s *server) broken(wait time.Duration) error {
	message := fmt.Sprintf("calls keep failing; the next one is let through in %v", wait.Round(time.Millisecond))
	if last := s.health.LastError(); last != nil {
		message += ": " + last.Message
	}
	return refused{&link.Failure{Server: s.config.Name, Reason: link.ReasonUnavailable, Message: message, After: wait}}
}

// guarded makes a call that has a place, if the breaker still lets it through, and tells the breaker how it went.
func (s *server) guarded(ctx context.Context, r *Request, next caller) (link.Reply, error) {
	defer r.place.Leave()
	if ok, wait := s.breaker.Allow(); !ok {
		return link.Reply{}, s.broken(wait)
	}
	before := s.breaker.Failures()
	reply, err := next(ctx, r)
	if err == nil {
		s.breaker.Succeeded()
		s.on(health.Answered, nil)
		return reply, nil
	}
	unreached, counts := s.blames(ctx, err)
	if counts && unreached {
		s.unreached(err)
	}
	if counts && s.breaker.Failed(before, unreached) {
		s.logger.Warn("calls are refused for a moment: too many failed in a row", "server", s.config.Name, "error", err)
	}
	return reply, err
}

// blames reports whether a call failed because of the server as a whole, and whether it could not even be
// reached. Silence alone speaks of the tool, unless the server does not answer pings either.
func (s *server) blames(ctx context.Context, err error) (unreached, counts bool) {
	var failure *link.Failure
	if !errors.As(err, &failure) {
		return false, false
	}
	switch failure.Reason {
	case link.ReasonUnavailable, link.ReasonDisconnected, link.ReasonOutcomeUnknown:
		return !failure.Delivered, ctx.Err() == nil && s.ctx.Err() == nil
	case link.ReasonTimeout:
		return false, !s.health.Connected()
	}
	return false, false
}
