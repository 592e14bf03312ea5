package edge

import (
	"context"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// noRoom is the error for a request that the router has no room for, which is counted, or no time any more.
func (e *Edge) noRoom(v protocol.Version) *jsonrpc.Error {
	if e.life.stopping.Load() {
		return routerError(v, "The router is shutting down", "unavailable", true)
	}
	e.refused.Add(1)
	return routerError(v, "The router is overloaded", "overloaded", true)
}

// track lists a request, so that it can be cancelled and counted. The error is a *jsonrpc.Error or
// ErrSessionEnded; otherwise untrack must be called when it is served.
func (e *Edge) track(x *Exchange) error {
	e.life.begin() // before stopping is looked at: Stop waits for what it does not refuse
	if e.life.stopping.Load() || !e.budget.Enter(x.Caller.ID, x.size()) {
		e.life.done()
		return e.noRoom(x.Version)
	}
	if x.session == nil {
		x.scope.add(x)
	} else if err := x.session.begin(x); err != nil {
		e.budget.Leave(x.Caller.ID, x.size())
		e.life.done()
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
	e.life.done()
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
		x.Fail(noReply(context.Cause(ctx), x.Version))
	}
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
