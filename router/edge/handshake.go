package edge

import (
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// handshake is what a session has negotiated with its client.
type handshake struct {
	unserved unserved

	mu          sync.Mutex
	version     protocol.Version
	client      inbound.ClientInfo
	initialized bool            // on shared streams: the client has sent initialize
	serving     <-chan struct{} // closed when initialize is served; nil without one
}

// agreed returns the negotiated version and the client's description.
func (h *handshake) agreed() (protocol.Version, inbound.ClientInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.client
}

// agree stores the result of initialize.
func (h *handshake) agree(version protocol.Version, client inbound.ClientInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, h.client, h.initialized = version, client, true
}

// agreeFirst stores the handshake of an unauthenticated client unless the session is initialized. kept bytes are
// charged to the owner of the session; ok is false if the owner holds too much.
func (s *session) agreeFirst(version protocol.Version, client inbound.ClientInfo, kept int) (first, ok bool) {
	h := &s.handshake
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.initialized {
		return false, true
	}
	if !s.keep(kept) {
		return false, false
	}
	h.version, h.client, h.initialized = version, client, true
	return true, true
}

// follow prevents requests on a shared stream from overtaking initialize. A request with this method waits for before
// and calls served once it has been served.
func (h *handshake) follow(method string) (before []<-chan struct{}, served func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method == "initialize" {
		serving := make(chan struct{})
		h.serving = serving
		return nil, func() { close(serving) }
	}
	if h.serving != nil {
		before = []<-chan struct{}{h.serving}
	}
	return before, func() {}
}

// unserved holds the messages of a handshake that the edge answered without the handler: before the client sent a
// key, or before a restart. The handler serves them before any other message of the session.
type unserved struct {
	any atomic.Bool

	serving sync.Mutex // held while the handler is served

	mu          sync.Mutex
	initialize  []byte // params
	initialized bool   // notifications/initialized
	known       bool   // the handler has been served notifications/initialized
}

// add records messages that the handler has to serve. initialize may be nil.
func (u *unserved) add(initialize []byte, initialized bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if initialize != nil {
		u.initialize = initialize
	}
	u.initialized = u.initialized || initialized && !u.known
	u.any.Store(u.initialize != nil || u.initialized)
}

// take returns the messages to serve before a message with this method, which may replace them.
func (u *unserved) take(method string) (initialize []byte, initialized bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	initialize, initialized = u.initialize, u.initialized
	u.initialize, u.initialized = nil, false
	switch method {
	case "initialize":
		return nil, false
	case "notifications/initialized":
		initialized = false
	}
	u.known = u.known || initialized || method == "notifications/initialized"
	return initialize, initialized
}

// update sets any after messages were served.
func (u *unserved) update() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.any.Store(u.initialize != nil || u.initialized)
}

// completeHandshake lets the handler serve the missing handshake messages before a message with this method.
func (f *surface) completeHandshake(s *session, src source, method string) {
	u := &s.handshake.unserved
	if method == "notifications/initialized" && !u.any.Load() {
		u.take(method)
	}
	if !u.any.Load() {
		return
	}
	u.serving.Lock()
	defer u.serving.Unlock()
	initialize, initialized := u.take(method)
	if initialize != nil {
		f.serveAnswered(s, src, jsonrpc.Request(jsonrpc.StringID("nexus-initialize"), "initialize", initialize))
	}
	if initialized {
		in := inbound.Message{Message: parsed(jsonrpc.Notification("notifications/initialized", nil))}
		x := &Exchange{}
		s.notifications.accept(f.fill(x, src, s, &in), x)
	}
	u.update()
}

// serveAnswered lets the handler serve a request that the client already has a response to.
func (f *surface) serveAnswered(s *session, src source, raw []byte) {
	in := inbound.Message{Message: parsed(raw)}
	x := &Exchange{}
	ctx := f.fill(x, src, s, &in)
	x.entry.id = "" // the client may use the id
	if s.begin(x) != nil {
		return // the session has ended
	}
	f.serveRequest(ctx, x)
	x.abort(nil)
	s.leave(x)
}

// parsed parses a message written by the edge.
func parsed(raw []byte) jsonrpc.Message {
	m, _ := jsonrpc.Parse(raw) // it is valid
	return m
}
