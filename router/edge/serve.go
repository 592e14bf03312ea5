package edge

import (
	"context"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// noRoom counts a refused request and returns its error. During Stop the error says so instead.
func (e *Edge) noRoom(v protocol.Version) *jsonrpc.Error {
	if e.life.stopping.Load() {
		return routerError(v, "The router is shutting down", reason.Unavailable, true)
	}
	e.refusals.overloaded.Add(1)
	return routerError(v, "The router is overloaded", reason.Overloaded, true)
}

// track lists an exchange until untrack, so that it can be cancelled and counted. The error is a *jsonrpc.Error or
// ErrSessionEnded.
func (e *Edge) track(x *Exchange) error {
	e.life.begin() // before reading stopping: Stop waits for all that it does not refuse
	if e.life.stopping.Load() || !e.budget.Enter(x.Caller.ID, x.size()) {
		e.life.done()
		return e.noRoom(x.Version)
	}
	if x.session == nil {
		x.entry.table.add(x)
	} else if err := x.session.begin(x); err != nil {
		e.budget.Leave(x.Caller.ID, x.size())
		e.life.done()
		return err
	}
	return nil
}

func (e *Edge) untrack(x *Exchange) {
	x.abort(nil)
	e.budget.Leave(x.Caller.ID, x.size())
	if unused := x.out.reserved.Swap(released); unused > 0 {
		e.budget.Release(x.Caller.ID, int(unused))
	}
	if x.mrtr != nil {
		x.mrtr.end()
	}
	if x.session != nil {
		x.session.leave(x)
	} else {
		x.entry.table.remove(x)
	}
	e.life.done()
}

// serveRequest serves a tracked request after earlier notifications.
func (f *surface) serveRequest(ctx context.Context, x *Exchange) {
	ctx, o := f.observe(ctx, x)
	defer f.ended(x, o)
	if x.session != nil && x.entry.barrier > 0 {
		x.session.notifications.inOrder(ctx, x.entry.barrier)
	}
	if x.Message.Method != "ping" {
		defer f.edge.budget.Turn(ctx, x.Caller.ID)()
	}
	if x.out.state.Load() == live {
		f.run(ctx, x)
	}
	if x.out.state.Load() == live {
		x.Fail(noReply(context.Cause(ctx), x.Version))
	}
}

// run calls the handler. A panic is logged and ends only the call.
func (f *surface) run(ctx context.Context, x *Exchange) {
	defer safe.Recover(f.edge.log, "serving "+x.Message.Method, nil)
	f.handler.Serve(ctx, x)
}
