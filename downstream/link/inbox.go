package link

import (
	"context"
	"log/slog"

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
	if stream != nil && stream.call.listens {
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
	if m.Method == "ping" && len(from) == 0 {
		in.answerAtOnce(refuse(m, nil))
		return
	}
	ctx, cancel := context.WithCancelCause(in.s.ctx)
	of := in.requests.begin(m.ID, cancel)
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
