package edge

import (
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// session is opened by initialize, by GET /sse or by starting the router on stdio. The registry owns it; only end
// ends it.
type session struct {
	id      string
	path    string           // where the id is valid; empty if the id is not sealed
	record  sessionid.Record // sealed in the id; zero if the id is not sealed
	surface *surface
	owner   auth.Caller // caller that opened it
	local   bool        // on stdio: no key is needed

	used          atomic.Int64 // time of the client's last message
	handshake     handshake
	inFlight      inFlight
	notifications notifications
	requests      clientRequests
	own           output.SessionStream
	life          sessionLife
	kept          charge // for stored parts of initialize
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
	closing chan struct{} // closed when the session accepts no messages
	ending  chan struct{} // closed when exchanges in flight are cancelled
	done    chan struct{} // closed when Handler.Ended has returned
}

// newSession returns a session without an id.
func (f *surface) newSession(src source, version protocol.Version, client inbound.ClientInfo) *session {
	e := f.edge
	s := &session{
		surface:   f,
		owner:     src.caller,
		local:     src.local,
		handshake: handshake{version: version, client: client},
		life: sessionLife{
			refs:    1,
			closing: make(chan struct{}),
			ending:  make(chan struct{}),
			done:    make(chan struct{}),
		},
	}
	s.inFlight.byID = make(map[string]*Exchange)
	s.notifications.session, s.requests.session = s, s
	if src.shared {
		s.own.InitShared(&e.out)
	} else {
		s.own.Init(e.budget, version == protocol.V20251125, src.caller.ID)
	}
	s.touch()
	return s
}

// ID implements sessions.Session.
func (s *session) ID() string { return s.id }

// Owner implements sessions.Session.
func (s *session) Owner() string { return s.owner.ID }

// Evictable implements sessions.Session. The stdio session cannot be evicted, because no other client can use stdio.
func (s *session) Evictable() bool { return !s.local }

// LastUsed implements sessions.Session.
func (s *session) LastUsed() time.Duration { return time.Duration(s.used.Load()) }

// Attached implements sessions.Session. It reports whether a client reads the session's own stream.
func (s *session) Attached() bool { return s.own.Attached() }

// InFlight implements sessions.Session. It reports whether requests are in flight or notifications wait.
func (s *session) InFlight() bool {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	return s.life.refs > 1
}

func (s *session) touch() { s.used.Store(int64(s.surface.edge.now())) }

// belongsTo reports whether the caller may use the session.
func (s *session) belongsTo(caller auth.Caller) bool {
	return s.local || !s.surface.edge.access.NeedsKey() || s.owner.ID == caller.ID
}

// outlived reports whether the session must be reopened for the caller: it was opened without a key and keys are needed
// now, or the token that opened it has expired.
func (s *session) outlived(caller auth.Caller) bool {
	if s.local || !s.surface.edge.access.NeedsKey() {
		return false
	}
	return s.owner.Anonymous || s.owner.Expired() && s.owner.ID == caller.ID
}

// keep charges the owner for the stored parts of initialize until the session ends, replacing the previous charge. It
// reports false if the owner holds too much.
func (s *session) keep(bytes int) bool { return s.kept.set(s.surface.edge.budget, s.owner.ID, bytes) }

// check cancels requests of revoked keys, and ends a session that is idle or whose key is revoked.
// After the owner's token has expired, requests in flight go on; then the session ends if it has a stream. Without a
// stream nothing reaches the client, which may return with another token.
func (s *session) check(now time.Duration) {
	e := s.surface.edge
	defer safe.Recover(e.log, "watching a session", nil)
	inUse := s.inFlight.connected()
	if !s.local {
		s.inFlight.cancel(ErrKeyRevoked, revoked)
		if !e.access.Valid(s.owner) && (!s.owner.Expired() || s.Attached() && !inUse) {
			s.end(ErrKeyRevoked)
		}
	}
	if !inUse && !s.Attached() && now-s.LastUsed() >= e.limits.SessionIdle {
		s.end(ErrSessionEnded)
	}
}

// send queues a message on the session's own stream.
func (s *session) send(m output.Message) bool {
	m.Payer = s.owner.ID
	logSent(s.surface.edge.log, s, m)
	return s.own.Send(m)
}

// respond queues a response that needs no handler on the session's own stream.
func (s *session) respond(m output.Message) {
	m.Keep = true
	m.Payer = s.owner.ID
	logSent(s.surface.edge.log, s, m)
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
		close(s.life.closing)
		s.surface.edge.sessions.remove(s)
		s.release()
	}
}

// release ends one activity. The last one finishes the session.
func (s *session) release() {
	s.inFlight.mu.Lock()
	s.life.refs--
	last := s.life.refs == 0
	s.inFlight.mu.Unlock()
	if last {
		s.finish()
	}
}

// finish ends the stream and calls Handler.Ended in its own goroutine, because others may wait for finish's caller.
func (s *session) finish() {
	s.surface.edge.life.spawn("ending a session", func() {
		defer close(s.life.done)
		defer s.kept.end(s.surface.edge.budget, s.owner.ID)
		s.own.End()
		s.surface.handler.Ended(s.id)
	})
}

// begin lists a request of the session. The error is a *jsonrpc.Error if the id is in flight, or ErrSessionEnded.
func (s *session) begin(x *Exchange) error {
	s.inFlight.mu.Lock()
	defer s.inFlight.mu.Unlock()
	if s.life.state != sessionOpen {
		return ErrSessionEnded
	}
	if !s.inFlight.addLocked(x) {
		return inFlightError(x.Message.ID)
	}
	x.entry.barrier = s.notifications.arrived
	s.life.refs++
	return nil
}

// leave removes a request from the session after its handler has returned.
func (s *session) leave(x *Exchange) {
	s.inFlight.mu.Lock()
	s.inFlight.removeLocked(x)
	s.life.refs--
	last := s.life.refs == 0
	s.inFlight.mu.Unlock()
	if last {
		s.finish()
	}
}
