package edge

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// endpoint is a path of the router, or stdio, with its handler. A session belongs to the endpoint that opened it.
type endpoint struct {
	edge    *Edge
	handler Handler
	scope   *auth.Scope // limits its callers; nil = no limit
	surface string      // name of the endpoint, see Exchange.Surface; empty = the path of the request
}

// source describes where a message came from.
type source struct {
	ctx     context.Context
	caller  auth.Caller
	header  http.Header
	addr    string
	path    string
	request *http.Request // nil on stdio
	local   bool          // no key is needed
	shared  bool          // responses go to the session's own stream
}

func httpSource(r *http.Request, caller auth.Caller) source {
	return source{ctx: r.Context(), caller: caller, header: r.Header, addr: r.RemoteAddr, path: r.URL.Path, request: r}
}

// fill fills in the exchange for a message and returns its context. A message of a session outlives its connection;
// others end with it.
func (ep *endpoint) fill(x *Exchange, src source, s *session, in *inbound.Message) context.Context {
	ctx := src.ctx
	x.edge = ep.edge
	x.Message, x.entry.id = in.Message, in.ID
	x.Caller = src.caller.Within(ep.scope)
	x.Visible = x.Caller.Visible()
	x.Surface = cmp.Or(ep.surface, src.path)
	x.ProgressToken = in.ProgressToken
	x.Header, x.request = src.header, src.request
	x.remote = remote(src.header, in)
	x.entry.table = &ep.edge.sessionless
	if s != nil {
		s.touch()
		x.session, x.entry.table = s, &s.inFlight
		ctx = context.WithoutCancel(ctx)
	}
	if !src.shared {
		x.reply.conn = src.ctx.Done()
	}
	switch {
	case in.Version != nil:
		x.Version = in.DeclaredVersion()
		x.Client = inbound.ClientInfo{Capabilities: in.Capabilities, Info: inbound.Object(in.ClientInfo)}
	case s != nil:
		x.Session = s.id
		x.Version, x.Client = s.handshake.agreed()
	default:
		x.Version = protocol.V20250326
		if v := inbound.HeaderVersion(src.header); v.IsHandshake() {
			x.Version = v
		}
	}
	ctx, x.cancel = context.WithCancelCause(ctx)
	return ctx
}

// initialize negotiates the version and opens a session if there is none.
func (ep *endpoint) initialize(
	s *session, src source, in *inbound.Message,
) (_ *session, opened bool, _ *jsonrpc.Error) {
	version, client, err := in.ReadInitialize()
	if err != nil {
		return nil, false, err
	}
	if s == nil {
		s, err = ep.edge.sessions.open(ep, src, version, client)
		return s, true, err
	}
	s.handshake.agree(version, client, true)
	return s, false, nil
}

// accept takes a notification or a response. The error means that there is no room for the notification: without a
// session it counts as a request in flight.
func (ep *endpoint) accept(src source, s *session, in *inbound.Message) *jsonrpc.Error {
	e := ep.edge
	if s != nil {
		s.touch()
	}
	switch {
	case in.IsResponse():
		if s == nil || !s.requests.deliver(in.Message) {
			e.log.Debug("Dropped a response to an unknown request", "id", in.ID.Text())
		}
		return nil
	case in.Method == "notifications/cancelled":
		cancelByClient(e.log, s, &in.Message)
		return nil
	}
	x := &Exchange{}
	ctx := ep.fill(x, src, s, in)
	defer x.abort(nil)
	if s != nil {
		if s.begin(x) != nil {
			return e.noRoom(x.Version)
		}
		defer s.leave(x)
	} else {
		if err := e.track(x); err != nil {
			return wireError(err)
		}
		defer e.untrack(x)
	}
	ep.run(ctx, x)
	return nil
}

// cancelByClient handles a client's notifications/cancelled. s is nil if the client has no session; then its requests
// cannot be identified.
func cancelByClient(log *slog.Logger, s *session, m *jsonrpc.Message) {
	raw := jsonrpc.Get(m.Params, "requestId")
	id := jsonrpc.ID(raw)
	if jsonrpc.ValidID(raw) && s != nil {
		c := &Cancelled{Params: m.Params}
		if reason := jsonrpc.Get(m.Params, "reason"); len(reason) > 0 && reason[0] == '"' {
			c.Reason = reason
		}
		if s.inFlight.cancelRequest(id, c) {
			return
		}
	}
	if raw == nil {
		id = "null"
	} else if len(raw) > jsonrpc.MaxID {
		id = id[:jsonrpc.MaxID]
	}
	log.Warn("Cannot route cancellation for unknown request " + id.Text())
}

// serveShared serves a request in its own goroutine. The response goes to the session's own stream. The error is that
// of track.
func (ep *endpoint) serveShared(src source, s *session, in *inbound.Message) error {
	e := ep.edge
	x := &Exchange{}
	x.reply.sender = s.own.Sender()
	if isRetry(in) {
		if _, _, err := ep.retry(src.caller, in, x.reply.sender, nil); err != nil {
			return err
		}
		return nil
	}
	ctx := ep.fill(x, src, s, in)
	if in.Outlives() {
		ep.newMRTR(ctx, x, newRoundTrip(in, x.reply.sender, nil))
	}
	if err := e.track(x); err != nil {
		x.abort(nil)
		return err
	}
	before, served := s.handshake.follow(x.Message.Method)
	e.life.spawn("serving a request", func() {
		defer served()
		defer e.untrack(x)
		s.await(before)
		ep.serveRequest(ctx, x)
		s.touch()
	})
	return nil
}

// noRoom counts a refused request and returns its error. During Stop the error says so instead.
func (e *Edge) noRoom(v protocol.Version) *jsonrpc.Error {
	if e.life.stopping.Load() {
		return routerError(v, "The router is shutting down", reason.Unavailable, true)
	}
	e.refusals.overloaded.Add(1)
	return routerError(v, "The router is overloaded; end requests or sessions, or try again later", reason.Overloaded, true)
}

// track lists an exchange until untrack, so that it can be cancelled and counted. The error is a *jsonrpc.Error or
// ErrSessionEnded.
func (e *Edge) track(x *Exchange) error {
	e.life.busy.begin() // before reading stopping: Stop waits for all that it does not refuse
	stops := e.life.stopping.Load() && (e.life.ending.Load() || !e.sessions.keeps(x.session))
	if stops || !e.budget.Enter(x.Caller.ID, x.size()) {
		e.life.busy.end()
		return e.noRoom(x.Version)
	}
	if x.session == nil {
		x.entry.table.add(x)
	} else if err := x.session.begin(x); err != nil {
		e.budget.Leave(x.Caller.ID, x.size())
		e.life.busy.end()
		return err
	}
	return nil
}

func (e *Edge) untrack(x *Exchange) {
	x.abort(nil)
	e.budget.Leave(x.Caller.ID, x.size())
	if unused := x.reply.reserved.Swap(released); unused > 0 {
		e.budget.Release(x.Caller.ID, int(unused))
	}
	if x.reply.mrtr != nil {
		x.reply.mrtr.end()
	}
	if x.session != nil {
		x.session.leave(x)
	} else {
		x.entry.table.remove(x)
	}
	e.life.busy.end()
}

// serveRequest serves a tracked request.
func (ep *endpoint) serveRequest(ctx context.Context, x *Exchange) {
	ctx, o := ep.observe(ctx, x)
	defer ep.ended(x, o)
	if x.reply.state.Load() == live {
		ep.run(ctx, x)
	}
	if x.session != nil && x.reply.state.Load() == succeeded {
		note(x.session, &x.Message)
	}
	if x.reply.state.Load() == live {
		x.Fail(noReply(context.Cause(ctx), x.Version))
	}
}

// run calls the handler. A panic is logged and ends only the call.
func (ep *endpoint) run(ctx context.Context, x *Exchange) {
	defer safe.Recover(ep.edge.log, "serving "+x.Message.Method, nil)
	ep.handler.Serve(ctx, x)
}
