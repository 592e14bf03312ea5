package edge

import (
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// sessionStore stores the client sessions. sessions.Table implements it in memory.
type sessionStore interface {
	// Add stores s. If a session with its id exists, Add returns it as existing instead. evicted lost its place.
	Add(s *session) (existing, evicted *session, ok bool)
	Get(id string) *session // nil if there is none
	Remove(s *session)
	All() []*session
	Count() int
	Close() // refuses further sessions
}

// registry owns the client sessions: it opens, finds and revives them, and drops them when they end.
type registry struct {
	edge  *Edge
	store sessionStore
	ids   *sessionid.IDs
}

// errNoSession is returned for an unknown id, and for one that the caller may not use.
var errNoSession = errors.New("session not found")

// open opens a session for the client at src, which is charged for the stored bytes of initialize. The error means
// that there is no room.
func (r *registry) open(
	f *surface, src source, version protocol.Version, client inbound.ClientInfo, kept int,
) (*session, *jsonrpc.Error) {
	s := f.newSession(src, version, client)
	if !s.keep(kept) {
		return nil, r.edge.noRoom(version)
	}
	if src.shared {
		s.id = rand.Text()
	} else {
		s.path = src.path
		s.record = newRecord(src, version, client)
		s.id = r.ids.Issue(&s.record, s.path)
		s.record.Client = inbound.ClientInfo{}
	}
	if _, err := r.add(s); err != nil {
		s.keep(0)
		return nil, err
	}
	return s, nil
}

// newRecord returns the record of a new session of the client at src.
func newRecord(src source, version protocol.Version, client inbound.ClientInfo) sessionid.Record {
	return sessionid.Record{
		Start:   time.Now(),
		Owner:   sessionid.OwnerOf(src.caller.ID),
		Unkeyed: src.caller.Anonymous,
		Version: version,
		Client:  client,
	}
}

// add stores s. If a session with its id exists, add returns that one.
func (r *registry) add(s *session) (*session, *jsonrpc.Error) {
	if r.edge.life.stopping.Load() {
		return nil, r.edge.noRoom("")
	}
	existing, evicted, ok := r.store.Add(s)
	switch {
	case !ok:
		return nil, r.edge.noRoom("")
	case existing != nil:
		return existing, nil
	case evicted != nil:
		r.edge.log.Debug("Session evicted in favor of another caller", "caller", evicted.owner.Name)
		evicted.end(ErrSessionEnded)
	}
	return s, nil
}

// remove drops a session that has ended.
func (r *registry) remove(s *session) { r.store.Remove(s) }

// endAll ends all sessions.
func (r *registry) endAll(cause error) {
	for _, s := range r.store.All() {
		s.end(cause)
	}
}

// get returns the existing session of a surface with an id; else nil.
func (r *registry) get(f *surface, src source, id string) *session {
	s := r.store.Get(id)
	if s == nil || s.path == "" && s.surface != f || s.path != "" && s.path != src.path {
		return nil
	}
	return s
}

// find returns the session with an id for a caller that is access.Admitted. A session that its client did not end is
// revived, also after a restart of the router. The error is errNoSession, or a *jsonrpc.Error if there is no room.
func (r *registry) find(f *surface, src source, id string) (*session, error) {
	s := r.get(f, src, id)
	if s != nil && s.outlived(src.caller) {
		s.end(ErrKeyRevoked)
		s = nil
	}
	switch {
	case s == nil:
		return r.revive(f, src, id)
	case !s.belongsTo(src.caller):
		return nil, errNoSession
	}
	return s, nil
}

// sealed returns the record in an id if it still allows a revival.
func (r *registry) sealed(src source, id string) (*sessionid.Record, bool) {
	if src.shared {
		return nil, false
	}
	record, ok := r.ids.Open(id, src.path)
	return record, ok && record.Fresh(time.Now()) && !r.endedByClient(record)
}

// endedByClient reports whether the client has ended the session of record; true also if that is unknown.
func (r *registry) endedByClient(record *sessionid.Record) bool {
	ended, err := r.ids.Ended(record)
	if err != nil {
		r.edge.log.Warn("reading ended sessions failed; no session is revived", "error", err)
	}
	return ended
}

// revive reopens a session from the record in its id.
func (r *registry) revive(f *surface, src source, id string) (*session, error) {
	record, ok := r.sealed(src, id)
	if !ok || !r.mayRevive(record, src) {
		return nil, errNoSession
	}
	s := f.newSession(src, record.Version, record.Client)
	s.id, s.path = id, src.path
	s.handshake.unserved.add(record.Initialize(), true)
	s.own.StartAt(uint64(time.Now().UnixMilli()))
	record.Client = inbound.ClientInfo{}
	s.record = *record
	other, err := r.add(s)
	switch {
	case err != nil:
		return nil, err
	case r.endedByClient(record): // ended during the revival
		other.end(ErrSessionEnded)
		return nil, errNoSession
	case !other.belongsTo(src.caller):
		return nil, errNoSession
	}
	return other, nil
}

// mayRevive reports whether the session of record belongs to the client at src.
func (r *registry) mayRevive(record *sessionid.Record, src source) bool {
	if sessionid.OwnerOf(src.caller.ID) == record.Owner {
		return true
	}
	if !record.Unkeyed {
		return false
	}
	remote := r.edge.access.Remote(&http.Request{Header: src.header, RemoteAddr: src.addr})
	return sessionid.OwnerOf(remote.ID) == record.Owner
}

// forbidRevival records that the client has ended the session of record.
func (r *registry) forbidRevival(record *sessionid.Record) {
	if !record.Fresh(time.Now()) {
		return
	}
	if err := r.ids.End(record); err != nil {
		r.edge.log.Warn("recording the end of a session failed; its id is valid again after a restart", "error", err)
	}
}
