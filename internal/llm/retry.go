package llm

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// waits are the pauses between the attempts of one request: as long as the endpoint requests, else growing with
// jitter. They end after the last attempt, or if the next pause would exceed the deadline.
type waits struct {
	grow     *backoff.ExponentialBackOff
	left     int
	asked    time.Duration // requested by the endpoint for the next pause; negative = none
	deadline time.Time     // zero = none
}

func newWaits(first time.Duration, deadline time.Time) *waits {
	return &waits{left: attempts - 1, asked: -1, deadline: deadline, grow: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.25),
		backoff.WithMaxElapsedTime(0),
	)}
}

// NextBackOff implements backoff.BackOff.
func (w *waits) NextBackOff() time.Duration {
	if w.left == 0 {
		return backoff.Stop
	}
	w.left--
	wait := w.grow.NextBackOff()
	if w.asked >= 0 {
		wait, w.asked = w.asked, -1
	}
	if !w.deadline.IsZero() && time.Until(w.deadline) <= wait {
		return backoff.Stop
	}
	return wait
}

// Reset implements backoff.BackOff. It does nothing, because waits serve one request.
func (w *waits) Reset() {}
