package link

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// inbox handles the messages that the server sends on its own initiative.
type inbox struct {
	s        *Session
	requests requests
	replies  chan struct{} // a token per response being sent by answerAtOnce
}

// deliver passes a message of a shared stream to the waiting call or to receive.
func (in *inbox) deliver(m *jsonrpc.Message) {
	if m.IsResponse() {
		if c := in.s.calls.find([]byte(m.ID)); c != nil {
			c.finish()
			select {
			case c.reply <- *m:
			default: // a second response to one request
				in.receive(*m, nil)
			}
			return
		}
	}
	in.receive(*m, nil)
}

// receive handles all messages except awaited responses. stream is the call on whose stream the message arrived, nil
// on a shared stream.
func (in *inbox) receive(m jsonrpc.Message, stream *pending) {
	if m.Method == protocol.MethodAcknowledged {
		in.s.listener.acknowledged(m.Params, stream)
		return
	}
	if m.Method == protocol.MethodTask && in.s.modern {
		in.announceTask(m, stream)
		return
	}
	if stream != nil && stream.call.listens != nil {
		stream = nil // what it carries belongs to no call
	}
	switch {
	case m.IsResponse():
		level, event := slog.LevelWarn, "response to an unknown request"
		if in.s.calls.knew([]byte(m.ID)) {
			level, event = slog.LevelDebug, "response to a request that is over" // cancelled, or answered twice
		}
		in.s.logger.Log(in.s.ctx, level, event, "server", in.s.server, "id", m.ID.Text())
	case m.IsRequest():
		in.answer(m, stream)
	case m.Method == "notifications/progress":
		if c := in.s.calls.byToken(m.Params); c != nil {
			c.report(m.Params)
		}
	case m.Method == "notifications/cancelled":
		if !in.requests.withdraw(m.Params) {
			in.s.logger.Debug("server cancelled a request that is over", "server", in.s.server)
		}
	case stream == nil && m.Method != "notifications/message":
		// On a shared stream, only log messages may belong to calls.
		in.s.opts.Handler.Notified(in.s.listener.withoutSubscription(m), nil)
	default:
		in.s.opts.Handler.Notified(m, in.suspects(stream))
	}
}

// announceTask passes a task on to the request that listens to it. Nobody else may see it.
func (in *inbox) announceTask(m jsonrpc.Message, stream *pending) {
	if stream == nil {
		stream = in.s.calls.find(jsonrpc.Get(m.Params, "_meta", protocol.MetaSubscription))
	}
	if stream == nil || stream.call.heard == nil {
		in.s.logger.Debug("server announced a task to which nobody listens", "server", in.s.server)
		return
	}
	stream.call.heard(m.Params)
}

// suspects returns the calls that may have caused a message on a stream, likeliest first. On a shared stream it
// returns none if several clients have calls.
func (in *inbox) suspects(stream *pending) []*Call {
	if stream != nil {
		return []*Call{stream.call}
	}
	return in.s.calls.ofOnlyClient()
}

// answer handles a request of the server. A ping that no call may have caused is for the router, as is one that the
// handler refuses.
func (in *inbox) answer(m jsonrpc.Message, stream *pending) {
	from := in.suspects(stream)
	if len(from) == 0 && m.Method != "ping" {
		in.s.calls.crowded(m.Method)
	}
	if m.Method == "ping" && len(from) == 0 {
		in.answerAtOnce(refuse(m, nil))
		return
	}
	ctx, cancel := context.WithCancelCause(in.s.ctx)
	caller := ""
	if len(from) > 0 {
		caller = from[0].Caller
	}
	of := in.requests.begin(m.ID, caller, cancel)
	if of == nil {
		cancel(nil)
		refusal := &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "Too many requests at once"}
		in.answerAtOnce(refuse(m, refusal.Encode()))
		return
	}
	in.s.spawn(func() {
		defer in.requests.end()
		defer cancel(nil)
		result, rpcErr := in.s.opts.Handler.Asked(ctx, m, from)
		if !in.requests.settle(of) {
			return
		}
		answer := jsonrpc.Result(m.ID, result)
		if rpcErr != nil {
			answer = refuse(m, rpcErr)
		}
		if err := in.s.unawaited.post(answer, answerTime); err != nil && in.s.Err() == nil {
			in.s.logger.Warn("cannot respond to server", "server", in.s.server, "method", m.Method, "error", err)
		}
	})
}

// refuse returns the response to a request that nobody answers. A ping is never refused: a server may end the session
// otherwise, also for other clients.
func refuse(m jsonrpc.Message, rpcErr []byte) []byte {
	if m.Method == "ping" {
		return jsonrpc.Result(m.ID, []byte("{}"))
	}
	return jsonrpc.RawError(m.ID, rpcErr)
}

// answerAtOnce sends a response that took no work. The number of such responses being sent is limited, because a
// server may send requests faster than it reads responses.
func (in *inbox) answerAtOnce(message []byte) {
	select {
	case in.replies <- struct{}{}:
		in.s.spawn(func() {
			defer func() { <-in.replies }()
			in.s.unawaited.send(message)
		})
	default:
		in.s.logger.Debug("server does not read responses", "server", in.s.server)
	}
}

const (
	maxAsked   = 128              // concurrent server requests per session; more are refused
	callerMax  = maxAsked / 2     // the same, for calls of one caller
	maxReplies = 1024             // pending responses to pings and refused requests; more are dropped
	answerTime = 30 * time.Second // to send a response
)

// requests are the server's requests being answered. The zero value is ready.
type requests struct {
	mu   sync.Mutex
	open map[string]*request // by id
	busy int                 // open requests, and those whose responses are being sent
}

type request struct {
	key       string
	caller    string // of the call that caused it; empty = unknown
	cancel    context.CancelCauseFunc
	withdrawn bool // guarded by requests.mu
}

// begin adds a request of the server that a call of a caller has caused; nil if there are too many or its id is in use.
func (q *requests) begin(id jsonrpc.ID, caller string, cancel context.CancelCauseFunc) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := id.Key()
	if q.open[key] != nil || q.busy == maxAsked {
		return nil
	}
	ofCaller := 0
	for _, of := range q.open {
		if of.caller == caller {
			ofCaller++
		}
	}
	if ofCaller == callerMax {
		return nil
	}
	q.busy++
	if q.open == nil {
		q.open = map[string]*request{}
	}
	of := &request{key: key, caller: caller, cancel: cancel}
	q.open[key] = of
	return of
}

// settle removes a request before its response is sent, because the server may reuse the id after the response. It
// reports whether the server still waits for the response.
func (q *requests) settle(of *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, of.key)
	return !of.withdrawn
}

// end lets another request begin once the response was sent: this limits the number of goroutines.
func (q *requests) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
}

// withdraw ends a request that the server cancels and reports whether there was one.
func (q *requests) withdraw(params []byte) bool {
	key := jsonrpc.ID(jsonrpc.Get(params, "requestId")).Key()
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.open[key]
	if of == nil || of.withdrawn {
		return false
	}
	of.withdrawn = true
	of.cancel(&withdrawn{params})
	return true
}

// withdrawn is the cause of a context whose request the server has cancelled.
type withdrawn struct{ params []byte }

// Error implements error.
func (*withdrawn) Error() string { return "the server has cancelled its request" }

// CancelParams returns the raw params of the notification, which are relayed to the client.
func (w *withdrawn) CancelParams() []byte { return w.params }

const (
	messageTimeout = 5 * time.Second        // to send one message
	flushTimeout   = 300 * time.Millisecond // for messages being sent when a session is closed
	closeTimeout   = 2 * time.Second        // for a clean end of a session
)

// unawaited sends the messages to the server that no call waits for, such as cancellations.
type unawaited struct {
	s       *Session
	pending atomic.Int64  // being sent
	sent    chan struct{} // signalled when none is left
}

// cancel tells the server that a request is cancelled.
func (c *unawaited) cancel(ctx context.Context, id jsonrpc.ID) {
	var params []byte
	var known CancelParams
	if cause := context.Cause(ctx); errors.As(cause, &known) {
		params = known.CancelParams()
	} else if !errors.Is(cause, context.Canceled) { // which carries no reason
		params = jsonrpc.Set(nil, "reason", []byte(jsonrpc.StringID(cause.Error())))
	}
	params = jsonrpc.Set(params, "requestId", []byte(id))
	c.later(jsonrpc.Notification("notifications/cancelled", params))
}

// later sends a message in the background.
func (c *unawaited) later(message []byte) {
	c.pending.Add(1) // irrelevant once the session is over
	c.s.spawn(func() {
		defer func() {
			if c.pending.Add(-1) == 0 {
				select {
				case c.sent <- struct{}{}:
				default: // already signalled
				}
			}
		}()
		c.send(message)
	})
}

// flush waits, at most flushTimeout, for the messages being sent.
func (c *unawaited) flush() {
	moment := time.After(flushTimeout)
	for c.pending.Load() > 0 && c.s.Err() == nil {
		select {
		case <-c.sent:
		case <-c.s.ctx.Done():
		case <-moment:
			return
		case <-c.s.graceful.Done():
			return
		}
	}
}

// send sends a message and waits until it is sent.
func (c *unawaited) send(message []byte) {
	if err := c.post(message, messageTimeout); err != nil {
		c.s.logger.Debug("cannot send to server", "server", c.s.server, "error", err)
	}
}

// post sends a message that has no response.
func (c *unawaited) post(message []byte, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(c.s.ctx, limit)
	defer cancel()
	c.s.trace("to server", message)
	return c.s.transport.post(ctx, message)
}

// endLater calls cancel when d has passed after the end of ctx, unless stop is called before ctx ends.
func endLater(ctx context.Context, d time.Duration, cancel func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
}
