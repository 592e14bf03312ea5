package edge

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// noRoom is the error for a request that the router has no room for, which is counted, or no time any more.
func (e *Edge) noRoom(modern bool) *jsonrpc.Error {
	if e.stopping.Load() {
		return ownError(modern, "The router is shutting down", "unavailable", true)
	}
	e.refused.Add(1)
	return ownError(modern, "The router is overloaded", "overloaded", true)
}

// ownError is the error for a request that the router itself does not see to its end.
func ownError(modern bool, text, reason string, retryable bool) *jsonrpc.Error {
	code := jsonrpc.CodeServer
	if modern {
		code = jsonrpc.CodeInternal
	}
	data := strconv.AppendBool([]byte(`{"server":"","reason":"`+reason+`","retryable":`), retryable)
	return &jsonrpc.Error{Code: code, Message: text, Data: append(data, '}')}
}

// track lists a request, so that it can be cancelled and counted. The error is a *jsonrpc.Error or
// ErrSessionEnded; otherwise untrack must be called when it is served.
func (e *Edge) track(x *Exchange) error {
	e.busy.Add(1) // before stopping is looked at: Stop waits for what it does not refuse
	if e.stopping.Load() || !e.budget.Enter(x.Caller.ID, x.size()) {
		e.done()
		return e.noRoom(x.Modern)
	}
	if x.session == nil {
		x.scope.add(x)
	} else if err := x.session.begin(x); err != nil {
		e.budget.Leave(x.Caller.ID, x.size())
		e.done()
		return err
	}
	return nil
}

// size is what an exchange itself holds.
func (x *Exchange) size() int { return len(x.Message.Raw) + output.SmallMessage }

func (e *Edge) untrack(x *Exchange) {
	x.abort(nil)
	e.budget.Leave(x.Caller.ID, x.size())
	if unused := x.reserved.Swap(over); unused > 0 {
		e.budget.Release(x.Caller.ID, int(unused))
	}
	if x.mrtr != nil {
		x.mrtr.end()
	}
	if x.session != nil {
		x.session.leave(x)
	} else {
		x.scope.remove(x)
	}
	e.done()
}

// done counts one less of what Stop waits for.
func (e *Edge) done() {
	if e.busy.Add(-1) == 0 && e.stopping.Load() {
		select {
		case e.idle <- struct{}{}:
		default:
		}
	}
}

// request serves a tracked request in its turn.
func (e *Edge) request(ctx context.Context, h Handler, x *Exchange) {
	if x.session != nil && x.barrier > 0 {
		x.session.inOrder(ctx, x.barrier)
	}
	if x.state.Load() == live {
		e.run(ctx, h, x)
	}
	if x.state.Load() == live {
		x.Fail(unanswered(context.Cause(ctx), x.Modern))
	}
}

// Ended reports whether err is why the edge ended a request. Its handler need not answer: the edge says what is
// to be said.
func Ended(err error) bool {
	return errors.Is(err, ErrSessionEnded) || errors.Is(err, ErrKeyRevoked) || errors.Is(err, ErrStopped)
}

// unanswered is the error for a request whose handler said nothing. Where it was ended from outside, what
// it has done already is not known.
func unanswered(cause error, modern bool) *jsonrpc.Error {
	if !Ended(cause) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "Internal error: the request was not answered"}
	}
	return ownError(modern, "The request was not answered: "+cause.Error(), "outcome_unknown", false)
}

// run calls the handler. A panic is logged and stays here.
func (e *Edge) run(ctx context.Context, h Handler, x *Exchange) {
	defer safe.Recover(e.log, "serving "+x.Message.Method, nil)
	h.Serve(ctx, x)
}

// cancelled carries out a client's notifications/cancelled. s is nil where requests cannot be named.
func (e *Edge) cancelled(s *session, m *jsonrpc.Message) {
	raw := jsonrpc.Get(m.Params, "requestId")
	id := jsonrpc.ID(raw)
	if jsonrpc.ValidID(raw) && s != nil {
		c := &Cancelled{Params: m.Params}
		if reason := jsonrpc.Get(m.Params, "reason"); len(reason) > 0 && reason[0] == '"' {
			c.Reason = reason
		}
		if s.cancelRequest(id, c) {
			return
		}
	}
	if raw == nil {
		id = "null"
	} else if len(raw) > jsonrpc.MaxID {
		id = id[:jsonrpc.MaxID]
	}
	e.log.Warn("Cannot route cancellation for unknown request " + id.Text())
}

// arrived logs a message that came in: all of it at level trace, and at level debug its _meta.session_id,
// which means nothing to us.
func (e *Edge) arrived(s *session, in *inbound.Message) {
	e.trace("Message received", s, output.Whole(in.Raw))
	if jsonrpc.ValidID(in.SessionID) && e.log.Enabled(context.Background(), slog.LevelDebug) {
		e.log.Debug("Request names a session", "method", in.Method, "session_id", jsonrpc.ID(in.SessionID).Text())
	}
}

func (e *Edge) trace(event string, s *session, m output.Message) {
	if !e.log.Enabled(context.Background(), jsonrpc.LevelTrace) {
		return
	}
	id := ""
	if s != nil {
		id = s.id
	}
	e.log.Log(context.Background(), jsonrpc.LevelTrace, event, "session", id, "message", string(m.Append(nil)))
}
