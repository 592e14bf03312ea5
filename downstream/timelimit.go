package downstream

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// limitTime ends a call that stays silent for its limit; progress begins the limit anew, up to a cap. While a client is
// asked something the limit stands still; the time for all its answers has the same cap.
func (c *calls) limitTime(next roundTrip) roundTrip {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		idle, most := c.opts.ProxyTimeout, max(c.opts.ProxyTimeout, c.opts.Execution.ToolTimeoutMax)
		if r.Step {
			idle, most = c.opts.Execution.ToolTimeout, c.opts.Execution.ToolTimeoutMax
		}
		if own := r.server.config.Timeout; own > 0 {
			idle, most = own, max(own, c.opts.Execution.ToolTimeoutMax)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		w := &watchdog{idle: min(idle, most), most: most, end: time.Now().Add(most), patience: c.opts.Execution.ToolTimeoutMax}
		w.begin(func(message string) {
			cancel(&link.Failure{Server: r.Server, Reason: link.ReasonTimeout, Message: message})
		})
		defer w.stop()
		report := r.Progress
		r.Progress = func(params []byte) {
			w.reset()
			if report != nil {
				report(params)
			}
		}
		r.pause = w.pause
		if r.Sent != nil {
			r.Sent = sync.OnceFunc(r.Sent) // not for each attempt
		}
		return next(ctx, r)
	}
}

// watchdog is the timer of limitTime.
type watchdog struct {
	mu       sync.Mutex
	timer    *time.Timer
	idle     time.Duration // without a sign of life
	most     time.Duration // in all
	end      time.Time     // of most
	patience time.Duration // left for answers of the client
	paused   int           // requests to the client that are open
	since    time.Time     // when the first of them was sent
}

// begin starts the time. bark is called with what took too long.
func (w *watchdog) begin(bark func(message string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.patience
	w.timer = time.AfterFunc(w.idle, func() {
		w.mu.Lock()
		message := timeoutText(w.idle)
		switch {
		case w.paused > 0:
			message = "the client did not answer the server's request within " + seconds(limit)
		case time.Until(w.end) <= 0:
			message = timeoutText(w.most)
		}
		w.mu.Unlock()
		bark(message)
	})
}

// reset begins the limit anew, unless it has fired.
func (w *watchdog) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused == 0 && w.timer.Stop() {
		w.timer.Reset(max(0, min(w.idle, time.Until(w.end))))
	}
}

// pause stops the time, the cap included, until the function that it returns is called, and begins that for answers.
func (w *watchdog) pause() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused++; w.paused == 1 && w.timer.Stop() {
		w.since = time.Now()
		w.timer.Reset(w.patience)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.paused--; w.paused == 0 && w.timer.Stop() {
			took := time.Since(w.since)
			w.end = w.end.Add(took)
			w.patience -= took
			w.timer.Reset(min(w.idle, time.Until(w.end)))
		}
	}
}

// stop ends the time, also for questions that are still open.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.paused++
}

func timeoutText(d time.Duration) string { return "Tool execution timed out after " + seconds(d) }
