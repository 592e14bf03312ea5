package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const (
	courtesyTime = 5 * time.Second        // for messages nobody waits for, such as cancellations
	lastWords    = 300 * time.Millisecond // for what is on its way when a session is closed
	farewellTime = 2 * time.Second        // for all that ends a session politely
)

// transport moves the messages of one session.
type transport interface {
	// roundTrip sends a request and returns its response. What else arrives goes to Session.receive.
	roundTrip(ctx context.Context, c *inflight, message []byte) (jsonrpc.Message, error)
	// post sends a notification or a response.
	post(ctx context.Context, message []byte) error
	// watching returns which opening of the server's own stream is current, counted from 1; 0 if it is
	// closed at the moment.
	watching() int64
	// opened is called once the server has answered the handshake.
	opened()
	// close ends what is left of a session, and says farewell to the server if that may still know it. The session's context has ended; the transport's goroutines end soon after.
	close(ctx context.Context, farewell bool)
}

// Session is one MCP session with a server.
type Session struct {
	opts      Options
	transport transport
	calls     calls
	questions questions
	replies   chan struct{} // a token for each answer that is given at once
	pending   atomic.Int64  // courtesies on their way
	said      chan struct{} // told when there are none left
	begun     atomic.Bool   // notifications/initialized has been sent
	forgotten atomic.Bool   // the server has said that it does not know the session

	established bool // the handshake is done; not changed once ctx has ended

	modern bool // the server speaks 2026-07-28, which has no handshake

	// Initialized is the server's raw answer to initialize; Version the protocol version in it.
	Initialized []byte
	Version     string

	ctx    context.Context // ends when the session is lost or closed; its cause is the *Failure
	cancel context.CancelCauseFunc
	closed context.Context // ends with Close; until then calls over HTTP outlive the loss of the session
	finish context.CancelFunc
	polite context.Context // ends when there is no time left to end politely
	hurry  context.CancelFunc
	mu     sync.Mutex // orders spawn before the end of ctx, and so before the wait in Close
	wg     sync.WaitGroup
	once   sync.Once
}

func newSession(opts Options) *Session {
	s := &Session{opts: opts, replies: make(chan struct{}, maxReplies), said: make(chan struct{}, 1)}
	s.calls.start()
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.closed, s.finish = context.WithCancel(context.Background())
	s.polite, s.hurry = context.WithCancel(context.Background())
	return s
}

// Done is closed when the session is lost or closed.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err says why the session ended; nil while it lives.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// Watching tells whether notifications of the server arrive: it returns 0 if not, and another number each
// time that some may have been missed.
func (s *Session) Watching() int64 {
	if s.Err() != nil || s.modern {
		return 0
	}
	return s.transport.watching()
}

// InFlight returns the number of calls that wait for a response.
func (s *Session) InFlight() int { return s.calls.len() }

// Drain waits until no call is in flight, or until ctx is done. Calls over HTTP go on after the session is
// lost: each gets an answer of its own, which tells whether the server took it.
func (s *Session) Drain(ctx context.Context) { s.calls.drain(ctx) }

// Close is CloseWithin a time that suffices for a server that is well.
func (s *Session) Close() { s.CloseWithin(farewellTime) }

// CloseWithin ends the session and its calls, and waits for its goroutines. What does not end politely
// within limit is cut off. It may be called more than once; the shortest limit counts.
func (s *Session) CloseWithin(limit time.Duration) {
	defer time.AfterFunc(limit, s.hurry).Stop()
	s.once.Do(func() {
		s.sayLast()
		s.end(s.failure(ReasonDisconnected, "the session was closed")) // new calls go elsewhere from here on
		if s.transport != nil {
			s.transport.close(s.polite, !s.forgotten.Load())
		}
		s.finish()
		s.calls.endAll()
		s.wg.Wait()
	})
}

// lose ends a session that is of no more use, and logs why. Before it is open, whoever connects gets to know.
func (s *Session) lose(f *Failure) {
	if s.end(f) && s.established {
		s.opts.Logger.Warn("session with server lost", "server", s.opts.Server, "reason", f.Reason, "error", f.Message)
	}
}

// establish makes the session one that can be lost. It fails if it was lost already.
func (s *Session) establish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.established = true
	}
	return s.Err()
}

// end marks the session as of no more use. It is false if it was so already.
func (s *Session) end(f *Failure) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	f.Lost = true
	s.cancel(f)
	return true
}

func (s *Session) failure(reason, format string, args ...any) *Failure {
	return &Failure{Server: s.opts.Server, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Call sends a request and waits for the answer. The error is a *Failure, or the cause of ctx: then the
// server has been told to stop.
func (s *Session) Call(ctx context.Context, call *Call) (Reply, error) {
	if err := s.Err(); err != nil {
		return Reply{}, err
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, context.Cause(ctx)
	}
	c := s.calls.add(ctx, call)
	defer s.calls.remove(c)
	params := call.Params
	if call.Progress != nil {
		params = withToken(params, c.wire)
	}
	params = s.inEra(params)
	c.params = params
	message := jsonrpc.Request(c.wire, call.Method, params)
	s.trace("to server", message)
	m, err := s.transport.roundTrip(ctx, c, message)
	if err != nil {
		if ctx.Err() != nil {
			if !c.unsent && s.cancels(call.Method) {
				s.sendCancel(ctx, c.wire)
			}
			return Reply{}, context.Cause(ctx)
		}
		return Reply{}, err
	}
	if !room(call.Reserve).allows(len(m.Raw)) { // of a stream that calls share
		return Reply{}, s.readFailure(errNoRoom)
	}
	return Reply{Result: m.Result, Err: m.Err, Modern: s.modern, Names: m.Names, raw: m.Raw}, nil
}

// Notify sends a notification. notifications/initialized is sent once in a session, whoever asks for it.
func (s *Session) Notify(ctx context.Context, method string, params []byte) error {
	if err := s.Err(); err != nil {
		return err
	}
	if method == "notifications/initialized" && (s.modern || s.begun.Swap(true)) {
		return nil
	}
	message := jsonrpc.Notification(method, params)
	s.trace("to server", message)
	err := s.transport.post(ctx, message)
	if s.established && method == "notifications/initialized" && isBadRequest(err) {
		lost := *s.asFailure(err) // the handshake of the session that follows finds out how to do without
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

// sendCancel tells the server that nobody waits for the request any more.
func (s *Session) sendCancel(ctx context.Context, id jsonrpc.ID) {
	var params []byte
	var known CancelParams
	if cause := context.Cause(ctx); errors.As(cause, &known) {
		params = known.CancelParams()
	} else if !errors.Is(cause, context.Canceled) { // that says nothing
		params = jsonrpc.Set(nil, "reason", []byte(jsonrpc.StringID(cause.Error())))
	}
	params = jsonrpc.Set(params, "requestId", []byte(id))
	s.goCourtesy(jsonrpc.Notification("notifications/cancelled", params))
}

// goCourtesy sends a message that nobody waits for.
func (s *Session) goCourtesy(message []byte) {
	s.pending.Add(1) // if the session is over, nobody looks at it
	s.spawn(func() {
		defer func() {
			if s.pending.Add(-1) == 0 {
				select {
				case s.said <- struct{}{}:
				default: // nobody waits, or somebody has been told
				}
			}
		}()
		s.courtesy(message)
	})
}

// endLater has cancel called when so much time has passed since the end of ctx, unless stop is called before that end.
func endLater(ctx context.Context, d time.Duration, cancel func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
}

// sayLast waits a moment for what is on its way to the server, such as cancellations.
func (s *Session) sayLast() {
	moment := time.NewTimer(lastWords)
	defer moment.Stop()
	for s.pending.Load() > 0 && s.Err() == nil {
		select {
		case <-s.said:
		case <-s.ctx.Done():
		case <-moment.C:
			return
		case <-s.polite.Done():
			return
		}
	}
}

func (s *Session) courtesy(message []byte) {
	if err := s.say(message, courtesyTime); err != nil {
		s.opts.Logger.Debug("cannot send to server", "server", s.opts.Server, "error", err)
	}
}

// say sends a message that has no answer.
func (s *Session) say(message []byte, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	s.trace("to server", message)
	return s.transport.post(ctx, message)
}

// spawn runs f in a goroutine that Close waits for. After the end of the session it does nothing and
// reports false.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.run(f)
	return true
}

// run runs f in a goroutine that Close waits for. A panic in it ends the session.
func (s *Session) run(f func()) {
	s.wg.Go(func() {
		defer safe.Recover(s.opts.Logger, "handling messages of server "+s.opts.Server, func(err error) {
			s.lose(s.failure(ReasonDisconnected, "%v", err))
		})
		f()
	})
}

// withToken returns raw params that ask for progress under the token.
func withToken(params []byte, token jsonrpc.ID) []byte {
	meta, _ := jsonrpc.Find(params, "_meta")
	if raw := meta.Of(params); len(raw) > 0 && raw[0] == '{' {
		return jsonrpc.Splice(params, jsonrpc.Edit{Span: meta, With: jsonrpc.Set(raw, "progressToken", []byte(token))})
	}
	return jsonrpc.Set(params, "_meta", []byte(`{"progressToken":`+string(token)+`}`))
}

// receive handles a message that is not the response its transport waits for. stream is the call on
// whose own stream it came, nil on a stream that all calls share.
func (s *Session) receive(m jsonrpc.Message, stream *inflight) {
	switch {
	case m.IsResponse():
		level, event := slog.LevelWarn, "server answered an unknown request"
		if s.calls.knew([]byte(m.ID)) {
			level, event = slog.LevelDebug, "server answered a request that is over" // it was cancelled, or answered twice
		}
		s.opts.Logger.Log(s.ctx, level, event, "server", s.opts.Server, "id", m.ID.Text())
	case m.IsRequest():
		s.answer(m, stream)
	case m.Method == "notifications/progress":
		if c := s.calls.byToken(m.Params); c != nil {
			c.report(m.Params)
		}
	case m.Method == "notifications/cancelled":
		if !s.questions.withdraw(m.Params) {
			s.opts.Logger.Debug("server cancelled a request that is over", "server", s.opts.Server)
		}
	case stream == nil && m.Method != "notifications/message":
		s.opts.Handler.Notified(m, nil) // on a stream that all calls share only log messages belong to calls
	default:
		s.opts.Handler.Notified(m, s.suspects(stream))
	}
}

// suspects returns the calls that may have caused what came on a stream, the likeliest first. On a stream
// that all calls share that can only be told while they are of one client.
func (s *Session) suspects(stream *inflight) []*Call {
	if stream != nil {
		return []*Call{stream.call}
	}
	return s.calls.ofOnlyClient()
}

// parse reads one message of the server; nil if it is none, which is logged.
func (s *Session) parse(raw []byte) *jsonrpc.Message {
	s.trace("from server", raw)
	m, err := jsonrpc.Parse(raw)
	if err != nil {
		s.opts.Logger.Warn("server sent an invalid message", "server", s.opts.Server, "error", err, "bytes", len(raw))
		return nil
	}
	return &m
}

func (s *Session) trace(direction string, message []byte) {
	if l := s.opts.Logger; l.Enabled(s.ctx, jsonrpc.LevelTrace) {
		l.Log(s.ctx, jsonrpc.LevelTrace, direction, "server", s.opts.Server, "message", string(message))
	}
}

// handshake initializes the session, or discovers that the server does without.
func (s *Session) handshake(ctx context.Context) error {
	err := s.initialize(ctx)
	if err == nil {
		return nil
	}
	// A server of the modern protocol alone refuses initialize or, with 400, what follows it.
	f := s.asFailure(err)
	refused := f.Reason == ReasonProtocol && !f.Lost && (s.Initialized == nil || isBadRequest(err))
	if !refused || !s.discover(ctx) {
		return err
	}
	s.transport.opened()
	return nil
}

func (s *Session) initialize(ctx context.Context) error {
	reply, err := s.Call(ctx, &Call{Method: "initialize", Params: s.opts.Initialize})
	if err != nil {
		return err
	}
	if reply.Err != nil {
		return s.failure(ReasonProtocol, "initialize was refused: %s", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	}
	s.Initialized = reply.Result
	if s.Version = jsonrpc.Text(jsonrpc.Get(reply.Result, "protocolVersion")); s.Version == "" {
		return s.failure(ReasonProtocol, "the answer to initialize names no protocol version")
	}
	s.transport.opened()
	if s.opts.ClientDriven {
		return nil
	}
	return s.Notify(ctx, "notifications/initialized", nil)
}

// asFailure returns err as a *Failure of this session.
func (s *Session) asFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return s.failure(ReasonDisconnected, "%v", err)
}
