package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// transport moves the messages of one session.
type transport interface {
	// exchange sends a request and returns its response. Other messages go to the inbox.
	exchange(ctx context.Context, c *pending, message []byte) (jsonrpc.Message, error)
	// post sends a notification or a response.
	post(ctx context.Context, message []byte) error
	// watching returns the number of the current stream for unsolicited messages, counted from 1; 0 while it is
	// closed.
	watching() int64
	// opened is called once the server has answered the handshake.
	opened()
	// close releases the transport after the session's context has ended; with notify it tells the server. The
	// transport's goroutines end soon after.
	close(ctx context.Context, notify bool)
}

// Session is one MCP session with a server.
type Session struct {
	*lifetime
	opts      Options
	transport transport
	calls     pendingCalls
	inbox     inbox
	unawaited unawaited
	listener  listener
	older     older
	rest      time.Duration // for a clean end if the handshake fails
	begun     atomic.Bool   // notifications/initialized has been sent
	batches   atomic.Bool   // the server may send batches: it speaks 2025-03-26

	modern bool // the server speaks 2026-07-28, which has no handshake

	// Initialized is the server's raw result of initialize; Version is its protocol version.
	Initialized []byte
	Version     string
}

func newSession(opts Options) *Session {
	if opts.Era == nil {
		opts.Era = &Era{}
	}
	s := &Session{opts: opts, lifetime: newLifetime(opts), rest: closeTimeout}
	s.inbox = inbox{s: s, replies: make(chan struct{}, maxReplies)}
	s.unawaited = unawaited{s: s, sent: make(chan struct{}, 1)}
	s.listener.s, s.older.s = s, s
	s.calls.start()
	return s
}

// Done is closed when the session is lost or closed.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns why the session ended; nil while it is open.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// Watching returns 0 if announced changes of the list of a capability do not arrive, else a number that changes
// whenever some may have been missed.
func (s *Session) Watching(capability string) int64 {
	switch {
	case s.Err() != nil:
		return 0
	case s.modern:
		return s.listener.watching(capability)
	}
	return s.transport.watching()
}

// InFlight returns the number of calls that wait for a response.
func (s *Session) InFlight() int { return s.calls.len() }

// Drain waits until no call is in flight or ctx is done. Calls over HTTP continue after the session is lost, because
// each response tells whether the server accepted the request.
func (s *Session) Drain(ctx context.Context) { s.calls.drain(ctx) }

// Close calls CloseWithin with the time that a healthy server needs.
func (s *Session) Close() { s.CloseWithin(closeTimeout) }

// CloseWithin ends the session and its calls and waits for its goroutines. Whatever does not end cleanly within limit
// is cut off. It may be called more than once; the shortest limit counts.
func (s *Session) CloseWithin(limit time.Duration) {
	defer time.AfterFunc(limit, s.hurry).Stop()
	s.once.Do(func() {
		s.unawaited.flush()
		s.end(s.failure(reason.Disconnected, "the session was closed")) // new calls use another session
		if s.transport != nil {
			s.transport.close(s.graceful, !s.forgotten.Load())
		}
		s.finish()
		s.calls.endAll()
		s.wg.Wait()
	})
}

// Call sends a request and waits for the response. The error is a *Failure, or the cause of ctx; then the server has
// received a cancellation.
func (s *Session) Call(ctx context.Context, call *Call) (Reply, error) {
	if err := s.Err(); err != nil {
		return Reply{}, err
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, context.Cause(ctx)
	}
	if s.modern {
		if reply, ok, err := s.older.serve(ctx, call); ok {
			if call.Sent != nil {
				call.Sent()
			}
			return reply, err
		}
	} else {
		s.older.heed(ctx, call)
	}
	c := s.calls.add(ctx, call)
	defer s.calls.remove(c)
	params := call.Params
	if call.Progress != nil {
		params = withToken(params, c.wire)
	}
	params = s.inEra(call, params)
	c.params = params
	message := jsonrpc.Request(c.wire, call.Method, params)
	s.trace("to server", message)
	m, err := s.transport.exchange(ctx, c, message)
	if err != nil {
		if ctx.Err() != nil {
			if !c.unsent && s.cancels(call) {
				s.unawaited.cancel(ctx, c.wire)
			}
			return Reply{}, context.Cause(ctx)
		}
		return Reply{}, err
	}
	if m.Result == nil && m.Err == nil {
		f := s.failure(reason.Protocol, "its response is invalid")
		f.MaybeDelivered = true
		return Reply{}, f
	}
	if s.replaced(call, m.Err) {
		return Reply{}, s.gone()
	}
	if !room(call.Reserve).allows(len(m.Raw)) { // for a shared stream
		return Reply{}, s.readFailure(errNoRoom, s.opts.MaxMessage)
	}
	return Reply{Result: m.Result, Err: m.Err, Modern: s.modern, Names: m.Names, raw: m.Raw}, nil
}

// Notify sends a notification. notifications/initialized is sent at most once per session.
func (s *Session) Notify(ctx context.Context, method string, params []byte) error {
	if err := s.Err(); err != nil {
		return err
	}
	switch method {
	case "notifications/initialized":
		if s.modern || s.begun.Swap(true) {
			return nil
		}
	case "notifications/roots/list_changed":
		if s.modern { // which has none
			return nil
		}
	}
	message := jsonrpc.Notification(method, params)
	s.trace("to server", message)
	err := s.transport.post(ctx, message)
	if s.established && method == "notifications/initialized" && isBadRequest(err) {
		lost := *s.asFailure(err) // the next session is of the other era
		s.opts.Era.lack(methodInitialize)
		s.lose(&lost)
		return &lost
	}
	return err
}

// isBadRequest reports whether the server refused a message with 400.
func isBadRequest(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.status == http.StatusBadRequest
}

// withToken returns raw params with the progress token.
func withToken(params []byte, token jsonrpc.ID) []byte {
	meta, _ := jsonrpc.Find(params, "_meta")
	if raw := meta.Of(params); len(raw) > 0 && raw[0] == '{' {
		return jsonrpc.Splice(params, jsonrpc.Edit{Span: meta, With: jsonrpc.Set(raw, "progressToken", []byte(token))})
	}
	return jsonrpc.Set(params, "_meta", []byte(`{"progressToken":`+string(token)+`}`))
}

// messages yields the messages in raw: one message or, in 2025-03-26, a batch. Invalid messages are logged.
func (s *Session) messages(raw []byte) iter.Seq[*jsonrpc.Message] {
	return func(yield func(*jsonrpc.Message) bool) {
		s.trace("from server", raw)
		if !s.batches.Load() || !jsonrpc.IsBatch(raw) {
			if m := s.parse(raw); m != nil {
				yield(m)
			}
			return
		}
		batch, err := jsonrpc.Batch(raw)
		if err != nil {
			s.warnInvalid(raw, err)
		}
		for _, raw := range batch {
			if m := s.parse(bytes.Clone(raw)); m != nil && !yield(m) { // results are freed independently
				return
			}
		}
	}
}

// parse reads one message; nil if it is invalid. An invalid response to a call is returned without result and error.
func (s *Session) parse(raw []byte) *jsonrpc.Message {
	m, err := jsonrpc.Parse(raw)
	if err == nil {
		return &m
	}
	s.warnInvalid(raw, err)
	if err.Code != jsonrpc.CodeInvalidRequest || jsonrpc.Get(raw, "method") != nil {
		return nil
	}
	id, ambiguous := jsonrpc.Find(raw, "id") // JSON, possibly not UTF-8
	if ambiguous || s.calls.find(id.Of(raw)) == nil {
		return nil
	}
	return &jsonrpc.Message{Raw: raw, ID: jsonrpc.ID(id.Of(raw))}
}

func (s *Session) warnInvalid(raw []byte, err *jsonrpc.Error) {
	s.opts.Logger.Warn("server sent an invalid message", "server", s.opts.Server, "error", err, "bytes", len(raw))
}

func (s *Session) trace(direction string, message []byte) {
	if l := s.opts.Logger; l.Enabled(s.ctx, jsonrpc.LevelTrace) {
		l.Log(s.ctx, jsonrpc.LevelTrace, direction, "server", s.opts.Server, "message", string(s.mask.KnownJSON(message)))
	}
}

// lifetime holds the lifecycle of a session and its goroutines.
type lifetime struct {
	server string
	logger *slog.Logger
	mask   *redact.Masker

	established bool        // the handshake is done; immutable once ctx has ended
	forgotten   atomic.Bool // the server no longer knows the session

	ctx      context.Context // ends when the session is lost or closed; its cause is the *Failure
	cancel   context.CancelCauseFunc
	closed   context.Context // ends with Close; calls over HTTP outlive the loss of the session
	finish   context.CancelFunc
	graceful context.Context // ends when the time for a clean end is over
	hurry    context.CancelFunc
	mu       sync.Mutex // orders spawn before the end of ctx, and thus before the wait in Close
	wg       sync.WaitGroup
	once     sync.Once
}

func newLifetime(opts Options) *lifetime {
	l := &lifetime{server: opts.Server, logger: opts.Logger, mask: opts.Mask}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.closed, l.finish = context.WithCancel(context.Background())
	l.graceful, l.hurry = context.WithCancel(context.Background())
	return l
}

// lose ends a session that no longer works and logs the reason. During the handshake, Connect returns it instead.
func (l *lifetime) lose(f *Failure) {
	if l.end(f) && l.established {
		l.logger.Warn("session with server lost", "server", l.server, "reason", f.Reason, "error", f.Message)
	}
}

// establish marks the end of the handshake. It fails if the session is already lost.
func (l *lifetime) establish() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.established = true
	}
	return context.Cause(l.ctx)
}

// end marks the session as ended. It reports false if it was ended before.
func (l *lifetime) end(f *Failure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	f.Lost = true
	l.cancel(f)
	return true
}

// failure returns a failure without secrets: its text may be what the server said or got.
func (l *lifetime) failure(reason, format string, args ...any) *Failure {
	return &Failure{Server: l.server, Reason: reason, Message: l.mask.Text(fmt.Sprintf(format, args...))}
}

// asFailure returns err as a *Failure of this session.
func (l *lifetime) asFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return l.failure(reason.Disconnected, "%v", err)
}

// spawn runs f in a goroutine that Close waits for. After the end of the session it does nothing and reports false.
func (l *lifetime) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.run(f)
	return true
}

// run runs f in a goroutine that Close waits for. A panic in it ends the session.
func (l *lifetime) run(f func()) {
	l.wg.Go(func() {
		defer safe.Recover(l.logger, "handling messages of server "+l.server, func(err error) {
			l.lose(l.failure(reason.Disconnected, "%v", err))
		})
		f()
	})
}

// gone ends a session that the server no longer knows.
func (l *lifetime) gone() *Failure {
	l.forgotten.Store(true)
	f := l.failure(reason.Disconnected, "the session is gone")
	l.lose(f)
	return &Failure{Server: f.Server, Reason: f.Reason, Message: f.Message, Lost: true, Unknown: true}
}
