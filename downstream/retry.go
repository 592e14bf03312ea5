package downstream

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// retry repeats a call that certainly never reached the tool or that is safe to repeat. If the session is lost, the
// next attempt reconnects. Any other call whose response was lost has an unknown outcome and is not
// repeated.
func (c *callChain) retry(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		var waits backoff.BackOff
		for unknown := 0; ; {
			*r.Attempts++
			began := time.Now()
			reply, err := next(ctx, r)
			if r.Tried != nil {
				r.Tried(began, err)
			}
			if err == nil {
				return reply, nil
			}
			if errors.Is(err, admission.ErrRetired) {
				*r.Attempts-- // there was no attempt
			}
			var failure *link.Failure
			if ctx.Err() != nil || !errors.As(err, &failure) {
				return reply, err
			}
			if failure.MaybeDelivered && !c.repeatable(r) {
				if failure.Reason == reason.Disconnected || failure.Reason == reason.Unavailable {
					unknown := *failure
					unknown.Reason = reason.OutcomeUnknown
					failure = &unknown
				}
				return link.Reply{}, failure
			}
			if failure.Unknown { // the server, or a proxy, may reject this call in every session
				if unknown++; unknown > 1 && !c.repeatable(r) {
					return link.Reply{}, failure
				}
			}
			if !retryable(failure) || *r.Attempts >= c.opts.Execution.Attempts {
				return link.Reply{}, failure
			}
			if waits == nil {
				waits = backoff.NewExponentialBackOff(backoff.WithInitialInterval(c.opts.Execution.RetryDelay),
					backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.1), backoff.WithMaxElapsedTime(0))
			}
			wait := waits.NextBackOff()
			if failure.Lost && !failure.MaybeDelivered && *r.Attempts == 1 {
				wait = 0 // the server no longer knows the session; a new one may succeed
			}
			c.opts.Logger.InfoContext(ctx, "retrying call", "server", r.Server, "method", r.Method,
				"attempt", *r.Attempts+1, "wait", wait, "error", failure)
			select {
			case <-time.After(max(wait, min(failure.After, 20*time.Second))):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-r.server.Queue.Retired():
				err = admission.ErrRetired
			case <-r.server.Stopped():
				err = failure
			}
			return link.Reply{}, err
		}
	}
}

// repeatable reports whether a call may safely be repeated.
func (c *callChain) repeatable(r *Request) bool {
	if r.Tool == "" {
		return reads[r.Method]
	}
	if !r.server.Config.TrustsAnnotations() {
		return false
	}
	tool := r.connection().Lists.Tool(r.Tool)
	return tool != nil && tool.Annotations.Repeatable()
}
