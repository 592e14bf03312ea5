package edge

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// session is opened by initialize, by GET /sse or by starting the router on stdio. The registry owns it; only end
// ends it.
type session struct {
	id       string
	path     string           // where the id is valid; empty if the id is not sealed
	record   sessionid.Record // sealed in the id; zero if the id is not sealed
	named    cluster.Session  // in the directory; zero without replicas
	endpoint *endpoint
	owner    auth.Caller // caller that opened it
	local    bool        // on stdio: no key is needed
	home     uint64      // incarnation of this replica that may serve it

	used      atomic.Int64 // time of the client's last message
	handshake handshake
	inFlight  inFlight
	requests  clientRequests
	moving    moving
	own       output.SessionStream
	life      sessionLife
}

// sessionState is the lifecycle state of a session. States only advance.
type sessionState uint8

const (
	sessionOpen    sessionState = iota
	sessionClosing              // accepts no messages; exchanges in flight go on
	sessionEnding               // exchanges in flight are cancelled
)

// sessionLife is the lifecycle of a session. The mutex of inFlight guards state and refs.
type sessionLife struct {
	state   sessionState
	refs    int           // 1 while open, plus 1 per activity
	idle    chan struct{} // closed when there is no activity; nil = nobody waits for that
	closing chan struct{} // closed when the session accepts no messages
	ending  chan struct{} // closed when exchanges in flight are cancelled
	done    chan struct{} // closed when Handler.Ended has returned
}

// newSession returns a session without an id.
func (ep *endpoint) newSession(src source, version protocol.Version, client inbound.ClientInfo) *session {
	e := ep.edge
	s := &session{
		endpoint:  ep,
		owner:     src.caller,
		local:     src.local,
		home:      e.sessions.directory.Self(),
		handshake: handshake{version: version, client: client},
		life: sessionLife{
			refs:    1,
			closing: make(chan struct{}),
			ending:  make(chan struct{}),
			done:    make(chan struct{}),
		},
	}
	s.inFlight.byID = make(map[string]*Exchange)
	s.requests.session = s
	if src.shared {
		s.own.InitShared(&e.out)
	} else {
		s.own.Init(e.budget, version == protocol.V20251125, src.caller.ID)
	}
	s.touch()
	return s
}

// lastUsed returns the time of the client's last message.
func (s *session) lastUsed() time.Duration { return time.Duration(s.used.Load()) }

// inUse reports whether requests are in flight.
func (s *session) inUse() bool {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	return s.life.refs > 1
}

// closes reports whether the session accepts no more messages, once it has left the registry.
func (s *session) closes() bool {
	s.inFlight.mu.Lock()
	open := s.life.state == sessionOpen
	s.inFlight.mu.Unlock()
	if !open {
		<-s.life.closing
	}
	return !open
}

func (s *session) touch() { s.used.Store(int64(s.endpoint.edge.now())) }

// belongsTo reports whether the caller may use the session.
func (s *session) belongsTo(caller auth.Caller) bool {
	return s.local || !s.endpoint.edge.access.needsKey() || caller.Owns(s.owner)
}

// outlived reports whether the session must be reopened for the caller: it was opened without a key and keys are needed
// now, or the token that opened it has expired.
func (s *session) outlived(caller auth.Caller) bool {
	if s.local || !s.endpoint.edge.access.needsKey() {
		return false
	}
	return s.owner.Anonymous || s.owner.Expired() && caller.Owns(s.owner)
}

// check cancels requests of revoked keys, and ends a session that is idle or whose key is revoked.
// After the owner's token has expired, requests in flight go on; then the session ends if it has a stream. Without a
// stream nothing reaches the client, which may return with another token.
func (s *session) check(now time.Duration) {
	e := s.endpoint.edge
	defer safe.Recover(e.log, "watching a session", nil)
	inUse := s.inFlight.connected()
	if !s.local {
		s.inFlight.cancel(ErrKeyRevoked, revoked)
		if !e.access.valid(s.owner) && (!s.owner.Expired() || s.own.Attached() && !inUse) {
			s.end(ErrKeyRevoked)
		}
	}
	if !inUse && !s.own.Attached() && now-s.lastUsed() >= e.limits.SessionIdle {
		s.end(ErrSessionEnded)
	}
}

// send queues a message on the session's own stream.
func (s *session) send(m output.Message) bool {
	m.Payer = s.owner.ID
	logSent(s.endpoint.edge.log, s, m)
	return s.own.Send(m)
}

// respond queues a response that needs no handler on the session's own stream.
func (s *session) respond(m output.Message) {
	m.Keep = true
	m.Payer = s.owner.ID
	logSent(s.endpoint.edge.log, s, m)
	s.own.Respond(m)
}

// end ends the session: it accepts no more messages, and exchanges in flight are cancelled with cause, unless cause
// is nil. When the last activity has returned, Handler.Ended is called. end may be called again, also with a cause
// after a call with nil.
func (s *session) end(cause error) {
	s.inFlight.mu.Lock()
	closes := s.life.state == sessionOpen
	cancels := cause != nil && s.life.state != sessionEnding
	switch {
	case cancels:
		s.life.state = sessionEnding
		close(s.life.ending)
	case closes:
		s.life.state = sessionClosing
	}
	s.inFlight.mu.Unlock()
	if cancels {
		s.inFlight.cancel(cause, all) // before closing is closed, so that contexts have the cause
	}
	if closes {
		s.close()
	}
}

// close goes on with the end of a session that has just stopped to accept messages.
func (s *session) close() {
	s.endpoint.edge.sessions.remove(s)
	close(s.life.closing)
	s.release()
}

// endIdle ends the session if it is open, has no activity and no response that its client is about to read. It reports
// whether it did.
func (s *session) endIdle() bool {
	s.inFlight.mu.Lock()
	idle := s.life.state == sessionOpen && s.life.refs == 1 && !s.own.Unread()
	if idle {
		s.life.state = sessionClosing
	}
	s.inFlight.mu.Unlock()
	if idle {
		s.close()
	}
	return idle
}

// awaitIdle waits until the session has no activity or ctx ends.
func (s *session) awaitIdle(ctx context.Context) {
	s.inFlight.mu.Lock()
	if s.life.refs > 1 && s.life.idle == nil {
		s.life.idle = make(chan struct{})
	}
	idle, busy := s.life.idle, s.life.refs > 1
	s.inFlight.mu.Unlock()
	if !busy {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// leaveLocked ends one activity and reports whether it was the last.
func (s *session) leaveLocked() (last bool) {
	s.life.refs--
	if s.life.refs == 1 && s.life.idle != nil {
		close(s.life.idle)
		s.life.idle = nil
	}
	return s.life.refs == 0
}

// release ends one activity. The last one finishes the session.
func (s *session) release() {
	s.inFlight.mu.Lock()
	last := s.leaveLocked()
	s.inFlight.mu.Unlock()
	if last {
		s.finish()
	}
}

// finish ends the stream and calls Handler.Ended in its own goroutine, because others may wait for finish's caller.
func (s *session) finish() {
	s.endpoint.edge.life.spawn("ending a session", func() {
		defer close(s.life.done)
		defer forget(&s.endpoint.edge.sessions, s)
		s.own.End()
		s.endpoint.handler.Ended(s.id)
	})
}

// begin lists an exchange of the session. The error is a *jsonrpc.Error if the id is in flight, or ErrSessionEnded.
func (s *session) begin(x *Exchange) error {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	if s.life.state != sessionOpen {
		return ErrSessionEnded
	}
	if !s.inFlight.addLocked(x) {
		return inFlightError(x.Message.ID)
	}
	s.life.refs++
	return nil
}

// leave removes an exchange from the session after its handler has returned.
func (s *session) leave(x *Exchange) {
	s.inFlight.mu.Lock()
	s.inFlight.removeLocked(x)
	last := s.leaveLocked()
	s.inFlight.mu.Unlock()
	if last {
		s.finish()
	}
}

// clientRequests are the router's requests to the client of a session. The session's inFlight.mu guards them.
type clientRequests struct {
	session *session
	sent    uint64
	waiting map[string]chan<- jsonrpc.Message // by id
}

// sendFunc queues a message for the client. lost is closed when nobody can read it; ok is false if it is not sent.
type sendFunc func(output.Message) (lost <-chan struct{}, ok bool)

// call sends a request to the client and waits for the response.
func (c *clientRequests) call(
	ctx context.Context, method string, params []byte, send sendFunc,
) (jsonrpc.Message, error) {
	if ctx.Err() != nil {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	s := c.session
	id, response := c.register()
	defer c.drop(id)
	m := output.Whole(jsonrpc.Request(id, method, params))
	m.Keep = true
	lost, ok := send(m)
	if !ok {
		return jsonrpc.Message{}, ErrNoClient
	}
	var err error
	select {
	case r := <-response:
		return r, nil
	case <-lost:
		err = ErrClientGone
	case <-s.life.closing:
		err = ErrClientGone
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case r := <-response: // it arrived at the last moment
		return r, nil
	default:
	}
	if ctx.Err() != nil {
		c.cancel(id, err, send)
	}
	return jsonrpc.Message{}, err
}

// register returns the id of a new request and the channel of its response.
func (c *clientRequests) register() (jsonrpc.ID, <-chan jsonrpc.Message) {
	response := make(chan jsonrpc.Message, 1)
	mu := &c.session.inFlight.mu
	mu.Lock()
	defer mu.Unlock()
	c.sent++
	id := jsonrpc.StringID("nexus-" + strconv.FormatUint(c.sent, 10))
	if c.waiting == nil {
		c.waiting = make(map[string]chan<- jsonrpc.Message)
	}
	c.waiting[string(id)] = response
	return id, response
}

func (c *clientRequests) drop(id jsonrpc.ID) {
	mu := &c.session.inFlight.mu
	mu.Lock()
	defer mu.Unlock()
	delete(c.waiting, string(id))
}

// cancel tells the client that its response is no longer needed. If the cause has the params of a server's
// cancellation, it sends those.
func (c *clientRequests) cancel(id jsonrpc.ID, cause error, send sendFunc) {
	var params []byte
	var relayed interface{ CancelParams() []byte }
	if errors.As(cause, &relayed) {
		params = relayed.CancelParams()
	}
	m := output.Whole(jsonrpc.Notification("notifications/cancelled", jsonrpc.Set(params, "requestId", []byte(id))))
	m.Keep = true
	if _, ok := send(m); !ok {
		c.session.send(m) // the stream of the request has ended; the client may still work on it
	}
}

// deliver passes a response to the waiting call. It reports false if there is none.
func (c *clientRequests) deliver(m jsonrpc.Message) bool {
	mu := &c.session.inFlight.mu
	mu.Lock()
	defer mu.Unlock()
	key := m.ID.Key()
	response, ok := c.waiting[key]
	if ok {
		delete(c.waiting, key)
		response <- m
	}
	return ok
}
