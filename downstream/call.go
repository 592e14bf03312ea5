package downstream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Request is one request to a server.
type Request struct {
	Server   string
	Method   string
	Params   []byte // raw, with the names that the server knows
	Tool     string // the tool's own name, for tools/call
	Client   string // the client session that causes it; empty for the router itself
	Caller   string // whose share of the server it takes: an API key or a remote address; empty for the router itself
	Proxied  bool   // on a proxy surface: the client's own session is used, where the server has one for each
	Visible  Visible
	Progress func(params []byte)        // raw params of progress notifications; may be nil
	Ask      Asker                      // who answers the server's own requests; may be nil
	Notify   func(jsonrpc.Message) bool // takes notifications of the server that belong to this call, other than progress; false = it is over; may be nil
	Gone     func() bool                // the client's connection has ended; may be nil
	Sent     func()                     // the request is on its way; may be nil
	Streams  func()                     // the server answers with a stream; may be nil
	Reserve  func(total int) bool       // asked before an answer takes more memory, which the caller pays for; may be nil
	Hold     Hold                       // charges what is kept of the request after the call; may be nil
	Step     bool                       // a step of a plan: the limits of execution apply
	Attempts *int                       // counts the calls made; may be nil
	Modern   bool                       // the client takes input_required results of a modern server itself

	pause  func() (resume func()) // stops the time limit; set by limitTime
	place  *admission.Place       // in the server's queue; set by admit
	server *server                // which handles it; set by authorize and admit
}

// session is the client whose session is used; empty for the router's own.
func (r *Request) session() string {
	if r.Proxied {
		return r.Client
	}
	return ""
}

// caller sends a request; each of the wrappers below adds one concern.
type caller func(ctx context.Context, r *Request) (link.Reply, error)

// Call sends a request to a server and returns its raw answer. The error is a *link.Failure, an
// *UnknownError, or the cause of ctx.
func (m *Manager) Call(ctx context.Context, r *Request) (link.Reply, error) { return m.chain(ctx, r) }

// authorize refuses servers and tools that the caller may not use, as if they were not there.
func (m *Manager) authorize(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		s, err := m.serverFor(r)
		if err != nil {
			return link.Reply{}, err
		}
		own := *r // the caller's request stays as it is; what follows may change this one
		own.server = s
		return next(ctx, &own)
	}
}

// serverFor returns the server that handles a request. The error is an *UnknownError.
func (m *Manager) serverFor(r *Request) (*server, error) {
	s := m.server(r.Server)
	switch {
	case s == nil || s.config.Disabled:
		return nil, &UnknownError{"server", r.Server}
	case r.Tool != "" && (!s.config.Tools.allows(r.Tool) || r.Visible != nil && !r.Visible(r.Server, r.Tool)):
		return nil, &UnknownError{"tool", FullName(r.Server, r.Tool)}
	}
	return s, nil
}

// observe measures, traces and counts the call.
func (m *Manager) observe(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		ctx, span := m.opts.Tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
		if span.IsRecording() {
			span.SetAttributes(attribute.String("mcp.method.name", r.Method), attribute.String("server.name", r.Server))
			if r.Tool != "" {
				span.SetAttributes(attribute.String("gen_ai.tool.name", r.Tool))
			}
		}
		if r.Attempts == nil {
			r.Attempts = new(int)
		}
		began := time.Now()
		reply, err := next(ctx, r)
		took := time.Since(began)
		r.server.observed(took, err)
		outcome := outcomeOf(reply, err)
		m.opts.Observe(Observation{Server: r.Server, Outcome: outcome, Duration: took, Attempts: *r.Attempts})
		if err != nil {
			span.SetStatus(codes.Error, outcome)
		}
		return reply, err
	}
}

func outcomeOf(reply link.Reply, err error) string {
	if err == nil && reply.Err == nil {
		return "ok"
	}
	var failure *link.Failure
	var input *InputError
	switch {
	case errors.As(err, &failure):
		return failure.Reason
	case errors.As(err, &input):
		return "error"
	case err != nil:
		return "cancelled"
	}
	return "error"
}

// limitTime ends a call that stays silent for its limit; progress begins the limit anew, up to a cap. While a client is
// asked something the limit stands still; the time for all its answers has the same cap.
func (m *Manager) limitTime(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		idle, most := m.opts.ProxyTimeout, max(m.opts.ProxyTimeout, m.opts.Execution.ToolTimeoutMax)
		if r.Step {
			idle, most = m.opts.Execution.ToolTimeout, m.opts.Execution.ToolTimeoutMax
		}
		if own := r.server.config.Timeout; own > 0 {
			idle, most = own, max(own, m.opts.Execution.ToolTimeoutMax)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		w := &watchdog{idle: min(idle, most), most: most, end: time.Now().Add(most), patience: m.opts.Execution.ToolTimeoutMax}
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

// seconds writes whole seconds without a fraction.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

// retry repeats a call that surely never reached the tool, or that may be repeated, and connects anew
// in between. Another call whose answer was lost has an unknown outcome and is not repeated.
func (m *Manager) retry(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		var waits backoff.BackOff
		for unknown := 0; ; {
			*r.Attempts++
			reply, err := next(ctx, r)
			if err == nil {
				return reply, nil
			}
			if errors.Is(err, admission.ErrRetired) {
				*r.Attempts-- // this one was none
			}
			var failure *link.Failure
			if ctx.Err() != nil || !errors.As(err, &failure) {
				return reply, err
			}
			if failure.Delivered && !m.repeatable(r) {
				if failure.Reason == link.ReasonDisconnected || failure.Reason == link.ReasonUnavailable {
					unknown := *failure
					unknown.Reason = link.ReasonOutcomeUnknown
					failure = &unknown
				}
				return link.Reply{}, failure
			}
			if failure.Unknown {
				if unknown++; unknown > 1 && !m.repeatable(r) {
					return link.Reply{}, refusedAnew(failure)
				}
			}
			if !retryable(failure) || *r.Attempts >= m.opts.Execution.Attempts || r.server.ctx.Err() != nil {
				return link.Reply{}, failure
			}
			if waits == nil {
				waits = backoff.NewExponentialBackOff(backoff.WithInitialInterval(m.opts.Execution.RetryDelay),
					backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.1), backoff.WithMaxElapsedTime(0))
			}
			wait := waits.NextBackOff()
			if failure.Lost && !failure.Delivered && *r.Attempts == 1 {
				wait = 0 // the server does not know the session any more: begin a new one at once
			}
			m.opts.Logger.Info("call is tried again", "server", r.Server, "method", r.Method, "attempt", *r.Attempts+1, "wait", wait, "error", failure)
			timer := time.NewTimer(max(wait, min(failure.After, 20*time.Second)))
			select {
			case <-timer.C:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-r.server.queue.Retired():
				err = admission.ErrRetired
			case <-r.server.ctx.Done():
				err = failure
			}
			timer.Stop()
			return link.Reply{}, err
		}
	}
}

// refusedAnew is the failure of a call that the server answered with "unknown session" in a session that had just begun
// for it. The server, or a proxy before it, answers so to this call, whatever the session.
func refusedAnew(f *link.Failure) *link.Failure {
	return &link.Failure{Server: f.Server, Reason: link.ReasonProtocol, Message: "it does not know the session that has just begun"}
}

// repeatable reports whether a call does no harm if it is made twice.
func (m *Manager) repeatable(r *Request) bool {
	if r.Tool == "" {
		return reads[r.Method]
	}
	s := r.server
	if !s.config.TrustsAnnotations() {
		return false
	}
	tool := s.slot(r.session()).tool(r.Tool)
	return tool != nil && tool.Annotations.Repeatable()
}

// send makes one attempt.
func (m *Manager) send(ctx context.Context, r *Request) (link.Reply, error) {
	sl := r.server.slot(r.session())
	sl.callers.add(r.Caller)
	session, err := sl.get(ctx)
	if err != nil {
		var failure *link.Failure
		if errors.As(err, &failure) {
			// What happened to the handshake did not happen to the call.
			unsent := *failure
			unsent.Delivered, unsent.Lost, unsent.Unknown = false, false, false
			err = &unsent
		}
		return link.Reply{}, err
	}
	call := &link.Call{
		Method: r.Method, Params: r.Params, Progress: r.Progress, Sent: r.Sent, Streams: r.Streams, Reserve: r.Reserve,
		Client: r.Client, Caller: r.Caller, Gone: r.Gone, Origin: &origin{r.Ask, r.Notify, r.pause, r.place, ctx},
	}
	if r.Tool != "" && session.ChecksParamHeaders() {
		return sl.callMirrored(ctx, session, call, r.Tool)
	}
	return session.Call(ctx, call)
}
