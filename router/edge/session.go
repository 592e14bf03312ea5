package edge

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// surface is one face of the router. A session belongs to the one it was opened on.
type surface struct {
	edge    *Edge
	handler Handler
}

// session is what a client opened with initialize, GET /sse or by starting us on stdio.
type session struct {
	greeting <-chan struct{} // closed when initialize is answered; guarded by scope.mu; nil without one

	id      string
	path    string           // that the id is good for; empty where it is not sealed
	record  sessionid.Record // what the id holds; zero where it is not sealed
	edge    *Edge
	surface *surface
	local   bool        // no key is asked for
	owner   auth.Caller // who opened it
	scope   scope
	order   order
	used    atomic.Int64  // when the client last sent something
	over    chan struct{} // closed by end
	deaf    chan struct{} // closed when the client will say nothing more
	done    chan struct{} // closed when Ended has returned

	own output.SessionStream

	debt debt // what the handler has to be told first

	// Guarded by scope.mu.
	version     protocol.Version
	client      inbound.ClientInfo
	initialized bool // on shared streams: the client has sent initialize
	ended       bool
	retired     bool
	refs        int // 1 for being open, 1 for each thing in flight
	asked       uint64
	waiting     map[string]chan<- response // our requests to the client
}

// open adds a session of who sends from src. The error is that there is no place.
func (f *surface) open(src source, version protocol.Version, client inbound.ClientInfo) (*session, *jsonrpc.Error) {
	s := f.newSession(src, version, client)
	if src.shared {
		s.id = rand.Text()
	} else {
		s.path = src.path
		s.record = sessionid.Record{Start: time.Now(), Owner: sessionid.OwnerOf(src.caller.ID), Unkeyed: src.caller.Anonymous, Version: version, Client: client}
		s.id = f.edge.ids.Issue(&s.record, s.path)
		s.record.Client = inbound.ClientInfo{}
	}
	if _, err := f.edge.addSession(s); err != nil {
		return nil, err
	}
	return s, nil
}

// newSession makes a session that has no id yet.
func (f *surface) newSession(src source, version protocol.Version, client inbound.ClientInfo) *session {
	e := f.edge
	s := &session{
		edge:    e,
		surface: f,
		local:   src.local,
		over:    make(chan struct{}),
		deaf:    make(chan struct{}),
		done:    make(chan struct{}),
		owner:   src.caller,
		version: version,
		client:  client,
		refs:    1,
	}
	s.scope.byID = make(map[string]*Exchange)
	if src.shared {
		s.own.InitShared(&e.out)
	} else {
		s.own.Init(e.budget, version == protocol.V20251125, src.caller.ID)
	}
	s.touch()
	return s
}

// addSession gives s a place among the sessions. Where there is one with the same id already it returns that.
func (e *Edge) addSession(s *session) (*session, *jsonrpc.Error) {
	if e.life.stopping.Load() {
		return nil, e.noRoom("")
	}
	existing, evicted, ok := e.sessions.Add(s)
	switch {
	case !ok:
		return nil, e.noRoom("")
	case existing != nil:
		return existing, nil
	case evicted != nil:
		e.log.Debug("Session evicted in favor of another caller", "caller", evicted.owner.Name)
		evicted.end(ErrSessionEnded)
	}
	return s, nil
}

func (s *session) touch() { s.used.Store(int64(s.edge.now())) }

// ID implements sessions.Session.
func (s *session) ID() string { return s.id }

// Owner implements sessions.Session.
func (s *session) Owner() string { return s.owner.ID }

// Evictable implements sessions.Session: nobody else can use the session of stdio.
func (s *session) Evictable() bool { return !s.local }

// LastUsed implements sessions.Session.
func (s *session) LastUsed() time.Duration { return time.Duration(s.used.Load()) }

// Attached implements sessions.Session. It reports whether a client reads the session's own stream.
func (s *session) Attached() bool { return s.own.Attached() }

// InFlight implements sessions.Session. It reports whether requests are in flight or notifications wait.
func (s *session) InFlight() bool {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	return s.refs > 1
}

// of reports whether the caller may use the session.
func (s *session) of(caller auth.Caller) bool {
	return s.local || !s.edge.access.NeedsKey() || s.owner.ID == caller.ID
}

// endIfRevoked ends what the keys do not admit any more, and the session if it is its caller who is not access.Admitted.
func (s *session) endIfRevoked() {
	if s.local {
		return
	}
	s.scope.cancel(ErrKeyRevoked, s.edge.revoked)
	if !s.edge.access.Valid(s.owner) {
		s.end(ErrKeyRevoked)
	}
}

// look does the periodic work of the session.
func (s *session) look(now time.Duration) {
	defer safe.Recover(s.edge.log, "watching a session", nil)
	inUse := s.scope.tick(now, s.edge.heartbeat)
	s.endIfRevoked()
	if !inUse && !s.Attached() && now-s.LastUsed() >= s.edge.limits.SessionIdle {
		s.end(ErrSessionEnded)
	}
}

// negotiated stores what initialize agreed on.
func (s *session) negotiated(version protocol.Version, client inbound.ClientInfo) {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	s.version, s.client, s.initialized = version, client, true
}

// negotiatedFirst stores what a client without a key agrees on, unless the session has been initialized.
func (s *session) negotiatedFirst(version protocol.Version, client inbound.ClientInfo) bool {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	if s.initialized {
		return false
	}
	s.version, s.client, s.initialized = version, client, true
	return true
}

// busyWith reports whether a request with the id is in flight.
func (s *session) busyWith(id jsonrpc.ID) bool {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	return s.scope.byID[id.Key()] != nil
}

func (s *session) agreed() (version protocol.Version, client inbound.ClientInfo) {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	return s.version, s.client
}

// send queues a message on the session's own stream.
func (s *session) send(m output.Message) bool {
	m.Payer = s.owner.ID
	logSent(s.edge.log, s, m)
	return s.own.Send(m)
}

// end ends the session: what is in flight is cancelled, and Ended is called when it has returned.
func (s *session) end(cause error) {
	s.scope.mu.Lock()
	if s.ended {
		s.scope.mu.Unlock()
		return
	}
	s.ended = true
	close(s.over)
	s.scope.mu.Unlock()
	s.scope.cancel(cause, all)
	s.retire()
}

// retire ends the session once all that is in flight has returned. The client says nothing more.
func (s *session) retire() {
	s.scope.mu.Lock()
	if s.retired {
		s.scope.mu.Unlock()
		return
	}
	s.retired = true
	close(s.deaf)
	s.scope.mu.Unlock()
	s.edge.sessions.Remove(s)
	s.release()
}

func (s *session) release() {
	s.scope.mu.Lock()
	s.refs--
	last := s.refs == 0
	s.scope.mu.Unlock()
	if last {
		s.finish()
	}
}

// finish tells the handler, and lets go of what the session holds. It runs beside its caller, which may
// have others waiting for it.
func (s *session) finish() {
	s.edge.life.spawn("ending a session", func() {
		defer close(s.done)
		s.own.End()
		s.surface.handler.Ended(s.id)
	})
}

// begin lists a request of the session. It fails with -32600 if its id is in flight, and with
// ErrSessionEnded when the session is over.
func (s *session) begin(x *Exchange) error {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	if s.retired {
		return ErrSessionEnded
	}
	if !s.scope.addLocked(x) {
		return inFlightError(x.Message.ID)
	}
	x.barrier = s.order.arrived
	s.refs++
	return nil
}

// leave takes x off the session: its handler has returned.
func (s *session) leave(x *Exchange) {
	s.scope.mu.Lock()
	s.scope.removeLocked(x)
	s.refs--
	last := s.refs == 0
	s.scope.mu.Unlock()
	if last {
		s.finish()
	}
}

// cancelRequest carries out notifications/cancelled.
func (s *session) cancelRequest(id jsonrpc.ID, c *Cancelled) bool {
	s.scope.mu.Lock()
	x := s.scope.byID[id.Key()]
	if x == nil || !x.state.CompareAndSwap(live, cancelled) {
		s.scope.mu.Unlock()
		return false
	}
	s.scope.settleLocked(x)
	s.scope.mu.Unlock()
	x.abort(c)
	return true
}

// response is a client's answer, which comes after so many of its notifications.
type response struct {
	jsonrpc.Message
	barrier uint64
}

// ask sends a request to the client by way of send, and waits for the response and for the notifications
// before it. send returns when nobody will read it any more, and whether it went out.
func (s *session) ask(ctx context.Context, method string, params []byte,
	send func(output.Message) (<-chan struct{}, bool)) (jsonrpc.Message, error) {
	if ctx.Err() != nil {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	reply := make(chan response, 1)
	s.scope.mu.Lock()
	s.asked++
	id := jsonrpc.StringID("nexus-" + strconv.FormatUint(s.asked, 10))
	if s.waiting == nil {
		s.waiting = make(map[string]chan<- response)
	}
	s.waiting[string(id)] = reply
	s.scope.mu.Unlock()
	defer func() {
		s.scope.mu.Lock()
		delete(s.waiting, string(id))
		s.scope.mu.Unlock()
	}()
	m := output.Whole(jsonrpc.Request(id, method, params))
	m.Keep = true
	lost, ok := send(m)
	if !ok {
		return jsonrpc.Message{}, ErrNoClient
	}
	var err error
	select {
	case r := <-reply:
		return s.inPlace(ctx, r)
	case <-lost:
		err = ErrClientGone
	case <-s.deaf:
		err = ErrClientGone
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case r := <-reply: // it came just before
		return s.inPlace(ctx, r)
	default:
	}
	if ctx.Err() != nil {
		s.withdraw(id, err, send)
	}
	return jsonrpc.Message{}, err
}

// inPlace returns a response after the notifications before it, which it must not overtake when ctx ends either.
func (s *session) inPlace(ctx context.Context, r response) (jsonrpc.Message, error) {
	if !s.inOrder(ctx, r.barrier) {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	return r.Message, nil
}

// withdraw tells the client that its answer to a request of ours is not waited for any more, in the words of
// the server whose request it was, if the cause knows them.
func (s *session) withdraw(id jsonrpc.ID, cause error, send func(output.Message) (<-chan struct{}, bool)) {
	var params []byte
	var told interface{ CancelParams() []byte }
	if errors.As(cause, &told) {
		params = told.CancelParams()
	}
	m := output.Whole(jsonrpc.Notification("notifications/cancelled", jsonrpc.Set(params, "requestId", []byte(id))))
	m.Keep = true
	if _, ok := send(m); !ok {
		s.send(m) // the stream of the question has ended, its client may still be asking
	}
}

// answered hands a client's response to whoever asked, and reports whether somebody did.
func (s *session) answered(m jsonrpc.Message) bool {
	s.scope.mu.Lock()
	defer s.scope.mu.Unlock()
	key := m.ID.Key()
	reply, ok := s.waiting[key]
	if ok {
		delete(s.waiting, key)
		reply <- response{m, s.order.arrived}
	}
	return ok
}
