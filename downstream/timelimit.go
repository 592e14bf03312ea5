package downstream

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// limitTime ends a call that shows no activity within its limit. Progress restarts the limit, up to a cap. While the
// client answers a request of the server, the limit is paused; the total time for answers has the same cap.
func (c *callChain) limitTime(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		idle, most := c.opts.ProxyTimeout, max(c.opts.ProxyTimeout, c.opts.Execution.ToolTimeoutMax)
		if r.Step {
			idle, most = c.opts.Execution.ToolTimeout, c.opts.Execution.ToolTimeoutMax
		}
		if own := r.server.Config.Timeout; own > 0 {
			idle, most = own, max(own, c.opts.Execution.ToolTimeoutMax)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		patience := c.opts.Execution.ToolTimeoutMax
		w := &watchdog{idle: min(idle, most), most: most, end: time.Now().Add(most), patience: patience}
		w.begin(func(message string) {
			cancel(&link.Failure{Server: r.Server, Reason: reason.Timeout, Message: message})
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
	idle     time.Duration // limit without activity
	most     time.Duration // total limit
	end      time.Time     // deadline from most
	patience time.Duration // remaining time for the client's answers
	paused   int           // number of open requests to the client
	since    time.Time     // when the first was sent
}

// begin starts the timer. When it ends, expired is called with a message.
func (w *watchdog) begin(expired func(message string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.patience
	w.timer = time.AfterFunc(w.idle, func() {
		w.mu.Lock()
		message := timeoutText(w.idle)
		switch {
		case w.paused > 0:
			message = "the client did not answer the server's request within " + server.Seconds(limit)
		case time.Until(w.end) <= 0:
			message = timeoutText(w.most)
		}
		w.mu.Unlock()
		expired(message)
	})
}

// reset restarts the limit unless it has ended.
func (w *watchdog) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused == 0 && w.timer.Stop() {
		w.timer.Reset(max(0, min(w.idle, time.Until(w.end))))
	}
}

// pause stops the limit and the cap until resume is called, and starts the time for the client's answers.
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

// stop ends the timer, also for requests of the server that are still open.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.paused++
}

func timeoutText(d time.Duration) string {
	return "Tool execution timed out after " + server.Seconds(d)
}
