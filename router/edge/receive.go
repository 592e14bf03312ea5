package edge

import (
	"context"
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// source is where a message came from.
type source struct {
	ctx    context.Context
	caller auth.Caller
	header http.Header
	addr   string
	path   string
	local  bool // no key is asked for
	shared bool // answered on the own stream of the session, not on a connection of its own
}

func httpSource(r *http.Request, caller auth.Caller) source {
	return source{ctx: r.Context(), caller: caller, header: r.Header, addr: r.RemoteAddr, path: r.URL.Path}
}

// fill describes a message for its handler and returns its context. A session's messages outlive the
// connection they came on; others end with it.
func (f *surface) fill(x *Exchange, src source, s *session, in *inbound.Message) context.Context {
	ctx := src.ctx
	x.edge = f.edge
	x.Message, x.id = in.Message, in.ID
	x.Caller = src.caller
	x.Header = src.header
	x.RemoteAddr = src.addr
	x.scope = &f.edge.loose
	if s != nil {
		s.touch()
		x.session, x.scope = s, &s.scope
		ctx = context.WithoutCancel(ctx)
	}
	if !src.shared {
		x.conn = src.ctx.Done()
	}
	switch {
	case in.Version != nil:
		x.Modern = true
		x.Version = protocol.V20260728
		x.Client = inbound.ClientInfo{Capabilities: in.Capabilities, Info: inbound.Object(in.ClientInfo)}
	case s != nil:
		x.Session = s.id
		x.Version, x.Client = s.agreed()
	default:
		x.Version = protocol.V20250326
		if v := inbound.HeaderVersion(src.header); v.IsHandshake() {
			x.Version = v
		}
	}
	ctx, x.cancel = context.WithCancelCause(ctx)
	return ctx
}

// initialize agrees on the version, and opens a session unless there is one.
func (f *surface) initialize(s *session, src source, params []byte) (_ *session, opened bool, _ *jsonrpc.Error) {
	client, err := inbound.ReadClientInfo(params)
	if err != nil {
		return nil, false, err
	}
	version := inbound.Negotiate(params)
	if s == nil {
		s, err = f.open(src, version, client)
		return s, true, err
	}
	s.negotiated(version, client)
	return s, false, nil
}

// take accepts a notification or a response.
func (t *streamable) take(w http.ResponseWriter, src source, s *session, in *inbound.Message) {
	switch err := t.takeOne(src, s, in); {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case s != nil || t.edge.life.stopping.Load():
		t.reply.unavailable(w, "", err)
	default:
		t.reply.tooManyRequests(w, "", err)
	}
}

// takeOne accepts a notification or a response. The error is that there is no room: those of a session may wait
// for their turn in some number, others take a place among the requests in flight.
func (f *surface) takeOne(src source, s *session, in *inbound.Message) *jsonrpc.Error {
	e := f.edge
	if s != nil {
		s.touch()
	}
	switch {
	case in.IsResponse():
		if s == nil || !s.answered(in.Message) {
			e.log.Debug("Dropped a response that nobody waits for", "id", in.ID.Text())
		}
		return nil
	case in.Method == "notifications/cancelled":
		e.cancelled(s, &in.Message)
		return nil
	}
	x := &Exchange{}
	ctx := f.fill(x, src, s, in)
	if s != nil {
		if !s.accept(ctx, x) {
			return e.noRoom(x.Version)
		}
		return nil
	}
	if err := e.track(x); err != nil {
		x.abort(nil)
		return wireError(err)
	}
	e.run(ctx, f.handler, x)
	e.untrack(x)
	return nil
}

// serveShared serves a request whose answer goes to the session's own stream, on a goroutine of its own.
// The error is that of track.
func (f *surface) serveShared(src source, s *session, in *inbound.Message) error {
	e := f.edge
	if m, err := f.findMRTR(src.caller, in); err != nil {
		return err
	} else if m != nil {
		if !s.scope.relist(m.x, in.ID) {
			return inFlightError(in.ID)
		}
		if !m.resume(newRound(in, s.own.Outlet()), jsonrpc.Get(in.Params, "inputResponses")) {
			s.scope.settle(m.x)
			return staleState()
		}
		return nil
	}
	x := &Exchange{}
	ctx := f.fill(x, src, s, in)
	x.out = s.own.Outlet()
	if in.TakesRequests() {
		f.newMRTR(ctx, x, newRound(in, x.out))
	}
	if err := e.track(x); err != nil {
		x.abort(nil)
		return err
	}
	before, greeted := s.greet(x)
	e.life.spawn("serving a request", func() {
		defer greeted()
		defer e.untrack(x)
		s.waitFor(before)
		e.request(ctx, f.handler, x)
		s.touch()
	})
	return nil
}

// greet keeps what a client sends behind its initialize from overtaking it. It returns what x waits for,
// and what to call when x is done.
func (s *session) greet(x *Exchange) (before []<-chan struct{}, done func()) {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	if x.Message.Method == "initialize" {
		greeting := make(chan struct{})
		s.greeting = greeting
		return nil, func() { close(greeting) }
	}
	if s.greeting != nil {
		before = []<-chan struct{}{s.greeting}
	}
	return before, func() {}
}

// answerShared sends a response of our own making on the session's own stream.
func (s *session) answerShared(m output.Message) {
	m.Keep = true
	m.Payer = s.owner.ID
	logSent(s.edge.log, s, m)
	s.own.Respond(m)
}
