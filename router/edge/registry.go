package edge

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// registry owns the client sessions: it opens, finds and revives them, and drops them when they end. Their number is
// limited. A caller may have all sessions that nobody else wants. Beyond the limit, a caller with less than half of the
// sessions evicts one of the caller with the most: the least recently used one that is not in use.
type registry struct {
	homes
	edge *Edge
	ids  *sessionid.IDs

	mu     sync.RWMutex
	byID   map[string]*session
	ending map[string]*session // that have left byID, until Handler.Ended has returned
	owned  map[string]int      // number of evictable sessions by caller
	closed bool                // no more sessions
}

// errNoSession is returned for an unknown id, and for one that the caller may not use.
var errNoSession = errors.New("session not found")

// open opens a session for the client at src. The error means that there is no room.
func (r *registry) open(
	ep *endpoint, src source, version protocol.Version, client inbound.ClientInfo,
) (*session, *jsonrpc.Error) {
	if err := r.directory.Acts(); err != nil {
		return nil, routerError(version, "The router cannot begin a session: "+err.Error(), reason.Unavailable, true)
	}
	s := ep.newSession(src, version, client)
	if src.shared {
		s.id = r.prefix(s.home) + rand.Text()
	} else {
		s.path = src.path
		s.record = newRecord(src, version, client)
		s.record.Home = s.home
		s.id = r.ids.Issue(&s.record, s.path)
		s.named = r.named(&s.record)
		s.record.Client = inbound.ClientInfo{}
	}
	if _, err := r.add(s); err != nil {
		return nil, err
	}
	return s, nil
}

// newRecord returns the record of a new session of the client at src.
func newRecord(src source, version protocol.Version, client inbound.ClientInfo) sessionid.Record {
	return sessionid.Record{
		Start:   time.Now(),
		Owner:   sessionid.OwnerOf(src.caller.Owner()),
		Unkeyed: src.caller.Anonymous,
		Version: version,
		Client:  client,
	}
}

// add stores s. If a session with its id exists, or has ended and its handler does not know that yet, add returns that
// one.
func (r *registry) add(s *session) (*session, *jsonrpc.Error) {
	if r.edge.life.stopping.Load() {
		return nil, r.edge.noRoom("")
	}
	existing, evicted, ok := r.insert(s)
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

func (r *registry) insert(s *session) (existing, evicted *session, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || s.home != r.directory.Self() && !s.local {
		return nil, nil, false
	}
	if existing = cmp.Or(r.byID[s.id], r.ending[s.id]); existing != nil {
		return existing, nil, true
	}
	if len(r.byID) >= r.edge.limits.Sessions {
		if evicted = r.evictable(s.owner.ID); evicted == nil {
			return nil, nil, false
		}
		r.removeLocked(evicted)
	}
	r.byID[s.id] = s
	if !s.local {
		r.owned[s.owner.ID]++
	}
	return nil, evicted, true
}

// evictable returns the session that gives way to a new one of the caller; nil if there is none. Of callers with more
// sessions than that caller, the one with the most loses its least recently used session that is not in use. If it has
// more than its share, it may also lose one that merely has a stream open. A caller below its share may replace its
// own.
func (r *registry) evictable(caller string) (found *session) {
	share, own := max(r.edge.limits.Sessions/2, 1), r.owned[caller]
	if own >= share {
		return nil
	}
	most, streams := 0, false // of the caller of found; whether found has a stream open
	for _, s := range r.byID {
		n := r.owned[s.owner.ID]
		attached := s.own.Attached()
		switch {
		case s.local, n < most, n <= own && s.owner.ID != caller, attached && n <= share, n == most && attached && !streams:
			continue
		case n > most, streams && !attached, s.lastUsed() < found.lastUsed():
			if !s.inUse() {
				found, most, streams = s, n, attached
			}
		}
	}
	return found
}

// remove drops a session that has ended.
func (r *registry) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[s.id] == s {
		r.removeLocked(s)
	}
}

func (r *registry) removeLocked(s *session) {
	delete(r.byID, s.id)
	r.ending[s.id] = s
	if s.local {
		return
	}
	if r.owned[s.owner.ID]--; r.owned[s.owner.ID] == 0 {
		delete(r.owned, s.owner.ID)
	}
}

// forget drops a session whose handler knows that it has ended.
func forget(r *registry, s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending[s.id] == s {
		delete(r.ending, s.id)
	}
}

// awaitEnd waits a while until the handler knows that the session with an id has ended, so that it does not take that
// for the end of a session revived with the id. It reports whether it does.
func (r *registry) awaitEnd(ctx context.Context, id string) bool {
	r.mu.RLock()
	s := r.ending[id]
	r.mu.RUnlock()
	if s == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	select {
	case <-s.life.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// lookup returns the session with an id; nil if there is none.
func (r *registry) lookup(id string) *session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// all returns all sessions in no particular order.
func (r *registry) all() []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.byID))
}

func (r *registry) count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byID)
}

// close refuses further sessions.
func (r *registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// endAll ends all sessions.
func (r *registry) endAll(cause error) {
	for _, s := range r.all() {
		s.end(cause)
	}
}

// Fenced ends all sessions because other replicas may adopt them now. Calls in flight end as outcome_unknown.
func Fenced(e *Edge) {
	for _, s := range e.sessions.all() {
		if !s.local {
			s.end(errFenced)
		}
	}
	e.mrtrs.stop(errFenced)
}

// get returns the existing session of an endpoint with an id; else nil.
func (r *registry) get(ep *endpoint, src source, id string) *session {
	s := r.lookup(id)
	if s == nil || s.path == "" && s.endpoint != ep || s.path != "" && s.path != src.path {
		return nil
	}
	return s
}

// find returns the session with an id that lives here for a caller that is admitted. A session that its client did not
// end is revived, also after a restart of the router. The error is errNoSession, a *jsonrpc.Error if there is no room,
// or that of the directory.
func (r *registry) find(ep *endpoint, src source, id string, at place) (*session, error) {
	s := at.session
	if s != nil && s.outlived(src.caller) {
		s.end(ErrKeyRevoked)
		s = nil
	}
	switch {
	case s == nil:
		return r.revive(ep, src, id)
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

// revive reopens a session from the record in its id, with what its former home has saved.
func (r *registry) revive(ep *endpoint, src source, id string) (*session, error) {
	record, ok := r.sealed(src, id)
	if !ok || !r.mayRevive(record, src) {
		return nil, errNoSession
	}
	if !r.awaitEnd(src.ctx, id) {
		return nil, cluster.ErrUnavailable
	}
	s := ep.newSession(src, record.Version, record.Client)
	s.id, s.path, s.named = id, src.path, r.named(record)
	state, err := r.directory.Load(src.ctx, s.named)
	if err != nil && record.Home != s.home { // the home itself serves it without the store
		return nil, err
	}
	s.handshake.unserved.add(record.Client.InitializeParams(record.Version), true)
	s.moving.restore(state)
	s.handshake.unserved.moved = state != nil
	base := uint64(time.Now().UnixMilli())
	s.own.StartAt(base)
	s.requests.sent = base // answers to requests from before belong to nobody
	record.Client = inbound.ClientInfo{}
	s.record = *record
	other, full := r.add(s)
	switch {
	case full != nil:
		return nil, full
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
	if sessionid.OwnerOf(src.caller.Owner()) == record.Owner {
		return true
	}
	if !record.Unkeyed {
		return false
	}
	remote := r.edge.access.remote(&http.Request{Header: src.header, RemoteAddr: src.addr})
	return sessionid.OwnerOf(remote.Owner()) == record.Owner
}

// forbidRevival records that the client has ended the session of record. The error means that its home is not here, or
// no longer.
func (r *registry) forbidRevival(record *sessionid.Record) error {
	if !record.Fresh(time.Now()) {
		return nil
	}
	switch err := r.directory.End(context.Background(), r.named(record)); {
	case errors.Is(err, cluster.ErrMoved), errors.Is(err, cluster.ErrUnavailable):
		return err
	case err != nil:
		r.edge.log.Warn("recording the end of a session failed; another replica may serve it again", "error", err)
	}
	if err := r.ids.End(record); err != nil {
		r.edge.log.Warn("recording the end of a session failed; its id is valid again after a restart", "error", err)
	}
	return nil
}

// SessionInfo describes a client session. ID is a digest, because the id itself is a credential.
type SessionInfo struct {
	ID       string  `json:"id"`
	Caller   string  `json:"caller"`
	Path     string  `json:"path,omitempty"` // of streamable HTTP
	Protocol string  `json:"protocol_version"`
	Client   string  `json:"client,omitempty"` // name given by the client
	Version  string  `json:"client_version,omitempty"`
	Idle     float64 `json:"idle_seconds"`
	Attached bool    `json:"attached"` // it reads the session's own stream
	InFlight bool    `json:"in_flight"`
}

// List describes the sessions of the callers that see selects, at most limit, most recently used first. total is
// their full number.
func List(e *Edge, see func(caller string) bool, limit int) (list []SessionInfo, total int) {
	all := slices.DeleteFunc(e.sessions.all(), func(s *session) bool { return !see(s.owner.ID) })
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(b.lastUsed(), a.lastUsed()), cmp.Compare(a.id, b.id))
	})
	list = make([]SessionInfo, min(len(all), limit))
	now := e.now()
	for i := range list {
		s := all[i]
		version, client := s.handshake.agreed()
		var named struct{ Name, Version string }
		_ = json.Unmarshal(client.Info, &named) // untrusted; may be missing
		digest := sha256.Sum256([]byte(s.id))
		list[i] = SessionInfo{
			ID: hex.EncodeToString(digest[:6]), Caller: s.owner.ID, Path: s.path, Protocol: string(version),
			Client: named.Name, Version: named.Version,
			Idle:     (now - s.lastUsed()).Truncate(time.Second).Seconds(),
			Attached: s.own.Attached(), InFlight: s.inUse(),
		}
	}
	return list, len(all)
}
