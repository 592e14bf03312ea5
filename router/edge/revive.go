package edge

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// errNoSession is the error for an id that is of no session, or of none that the caller may use.
var errNoSession = errors.New("session not found")

// session returns the session with an id, for a caller who is access.Admitted. A session that ended otherwise than by its
// client, with a router that is gone too, exists again when its caller comes back. The error is errNoSession or a
// *jsonrpc.Error that says that there is no room.
func (f *surface) session(src source, id string) (*session, error) {
	e := f.edge
	s := f.present(src, id)
	if s != nil && e.access.NeedsKey() && s.owner.Anonymous && !s.local {
		s.end(ErrKeyRevoked) // a key is needed by now: the session passes to the key
		s = nil
	}
	switch {
	case s == nil:
		return f.revive(src, id)
	case !s.of(src.caller):
		return nil, errNoSession
	}
	return s, nil
}

// present returns the session of the surface with an id that exists now; else nil.
func (f *surface) present(src source, id string) *session {
	s := f.edge.sessions.Get(id)
	if s == nil || s.path == "" && s.surface != f || s.path != "" && s.path != src.path {
		return nil
	}
	return s
}

// sealed returns what an id holds that could still be used to revive a session.
func (f *surface) sealed(src source, id string) (*sessionid.Record, bool) {
	e := f.edge
	if src.shared {
		return nil, false
	}
	r, ok := e.ids.Open(id, src.path)
	return r, ok && r.Fresh(time.Now()) && !e.ended(r)
}

// ended reports whether the client has ended the session of r, or whether that cannot be known.
func (e *Edge) ended(r *sessionid.Record) bool {
	ended, err := e.ids.Ended(r)
	if err != nil {
		e.log.Warn("cannot read which sessions have ended; they are not revived", "error", err)
	}
	return ended
}

// revive opens the session again that the router has sealed the id of.
func (f *surface) revive(src source, id string) (*session, error) {
	e := f.edge
	r, ok := f.sealed(src, id)
	if !ok || !e.mayRevive(r, src) {
		return nil, errNoSession
	}
	s := f.newSession(src, r.Version, r.Client)
	s.id, s.path = id, src.path
	s.debt.owe(r.Initialize(), true)
	s.own.StartAt(uint64(time.Now().UnixMilli()))
	r.Client = inbound.ClientInfo{}
	s.record = *r
	other, err := e.addSession(s)
	switch {
	case err != nil:
		return nil, err
	case e.ended(r): // while it was revived
		other.end(ErrSessionEnded)
		return nil, errNoSession
	case !other.of(src.caller):
		return nil, errNoSession
	}
	return other, nil
}

// mayRevive reports whether the session of r belongs to who sends from src.
func (e *Edge) mayRevive(r *sessionid.Record, src source) bool {
	if sessionid.OwnerOf(src.caller.ID) == r.Owner {
		return true
	}
	return r.Unkeyed && sessionid.OwnerOf(e.access.Remote(&http.Request{Header: src.header, RemoteAddr: src.addr}).ID) == r.Owner
}

// debt is what a session's client has said to the router alone: before it showed a key, or to a router that is
// gone. The handler is told before anything else of the session.
type debt struct {
	open atomic.Bool

	paying sync.Mutex // held while the handler is told

	mu          sync.Mutex
	hello       []byte // params of initialize
	initialized bool   // notifications/initialized
	greeted     bool   // the handler knows that
}

// owe notes what the handler has to be told; hello may be nil.
func (d *debt) owe(hello []byte, initialized bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if hello != nil {
		d.hello = hello
	}
	d.initialized = d.initialized || initialized && !d.greeted
	d.open.Store(d.hello != nil || d.initialized)
}

// take returns what is owed, which method makes good for.
func (d *debt) take(method string) (hello []byte, initialized bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hello, initialized = d.hello, d.initialized
	d.hello, d.initialized = nil, false
	switch method {
	case "initialize":
		return nil, false
	case "notifications/initialized":
		initialized = false
	}
	d.greeted = d.greeted || initialized || method == "notifications/initialized"
	return hello, initialized
}

// settle tells the handler what it is owed before a message with that method, and waits until it knows.
func (f *surface) settle(s *session, src source, method string) {
	d := &s.debt
	if method == "notifications/initialized" && !d.open.Load() {
		d.take(method)
	}
	if !d.open.Load() {
		return
	}
	d.paying.Lock()
	defer d.paying.Unlock()
	hello, initialized := d.take(method)
	if hello != nil {
		f.introduce(s, src, jsonrpc.Request(jsonrpc.StringID("nexus-initialize"), "initialize", hello))
	}
	if initialized {
		in := inbound.Message{Message: parsed(jsonrpc.Notification("notifications/initialized", nil))}
		x := &Exchange{}
		s.accept(f.fill(x, src, s, &in), x)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.Store(d.hello != nil || d.initialized)
}

// introduce has the handler serve an initialize whose answer the client has had already.
func (f *surface) introduce(s *session, src source, raw []byte) {
	in := inbound.Message{Message: parsed(raw)}
	x := &Exchange{}
	ctx := f.fill(x, src, s, &in)
	x.id = "" // the client may use the id
	if s.begin(x) != nil {
		return // the session has ended
	}
	f.edge.request(ctx, f.handler, x)
	x.abort(nil)
	s.leave(x)
}

// parsed parses a message of our own.
func parsed(raw []byte) jsonrpc.Message {
	m, _ := jsonrpc.Parse(raw) // it is valid
	return m
}
