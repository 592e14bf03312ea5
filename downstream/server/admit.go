package server

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

// Admit makes a call once it has a permit of the server's fair queue, and refuses it while the circuit breaker is
// open. The error is admission.ErrRetired if a new configuration has replaced the server while the call waited.
func (s *Server) Admit(
	ctx context.Context, p *admission.Permit, caller, client string, call func() (link.Reply, error),
) (link.Reply, error) {
	if no, wait := s.health.breaker.Refuses(); no {
		return link.Reply{}, s.broken(wait)
	}
	began := time.Now()
	err := s.Queue.Enter(ctx, p, caller, client)
	p.Waited = time.Since(began)
	var f *link.Failure
	switch {
	case err == nil:
		defer p.Leave()
		return s.guard(ctx, call)
	case errors.Is(err, admission.ErrFull):
		return link.Reply{}, s.refused(reason.Overloaded,
			fmt.Sprintf("%d calls are in flight and %d wait", s.Config.maxCalls(), s.Config.maxWaiting()))
	case errors.As(err, &f) && f.Reason == reason.Timeout: // in the queue
		return link.Reply{}, s.refused(reason.Overloaded,
			fmt.Sprintf("the %d calls in flight did not end in time", s.Config.maxCalls()))
	default:
		return link.Reply{}, err
	}
}

// refused returns the failure of a call that does not reach the server.
func (s *Server) refused(why, message string) *link.Failure {
	return &link.Failure{Server: s.Config.Name, Reason: why, Message: message, Refused: true}
}

// broken returns the failure of calls that the breaker refuses.
func (s *Server) broken(wait time.Duration) error {
	f := s.refused(reason.Unavailable, fmt.Sprintf("calls keep failing; the next one is allowed in %v", wait.Round(time.Millisecond)))
	f.After = wait
	if last := s.health.machine.LastError(); last != nil {
		f.Message += ": " + last.Message
	}
	return f
}

// guard makes a call unless the breaker refuses it, and reports the result to the breaker.
func (s *Server) guard(ctx context.Context, call func() (link.Reply, error)) (link.Reply, error) {
	if ok, wait := s.health.breaker.Allow(); !ok {
		return link.Reply{}, s.broken(wait)
	}
	before := s.health.breaker.Failures()
	reply, err := call()
	if err == nil {
		s.health.breaker.Succeeded()
		s.health.on(health.Answered, nil)
		return reply, nil
	}
	unreached, counts := s.blames(ctx, err)
	if counts && unreached {
		s.health.unreached(err)
	}
	if counts && s.health.breaker.Failed(before, unreached) {
		s.opts.Logger.WarnContext(ctx, "calls are refused temporarily: too many failed in a row",
			"server", s.Config.Name, "error", err)
	}
	return reply, err
}

// blames reports whether the server was unreachable, and whether a failed call counts against the whole server. A
// timeout counts only against the tool, unless the server also fails to answer pings.
func (s *Server) blames(ctx context.Context, err error) (unreached, counts bool) {
	var failure *link.Failure
	if !errors.As(err, &failure) {
		return false, false
	}
	switch failure.Reason {
	case reason.Unavailable, reason.Disconnected, reason.OutcomeUnknown:
		return !failure.MaybeDelivered, ctx.Err() == nil && s.ctx.Err() == nil
	case reason.Timeout:
		return false, !s.health.machine.Connected()
	}
	return false, false
}
