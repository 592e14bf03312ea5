package edge

import (
	"net/http"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
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

// agree stores the result of an initialize. Only with again it replaces that of an earlier one.
func (h *handshake) agree(version protocol.Version, client inbound.ClientInfo, again bool) (agreed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.initialized && !again {
		return false
	}
	h.version, h.client, h.initialized = version, client, true
	return true
}

// follow prevents requests on a shared stream from overtaking initialize. A request with this method waits for before
// and calls served once it has been served.
func (h *handshake) follow(method string) (before <-chan struct{}, served func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method == "initialize" {
		serving := make(chan struct{})
		h.serving = serving
		return nil, func() { close(serving) }
	}
	return h.serving, func() {}
}

// await waits for served of an earlier request, at most orderTimeout or until the session ends. nil is no request.
func (s *session) await(served <-chan struct{}) {
	if served == nil {
		return
	}
	timeout := time.NewTimer(orderTimeout)
	defer timeout.Stop()
	select {
	case <-served:
	case <-s.life.ending:
	case <-timeout.C:
	}
}

// unserved holds the messages of a handshake that the edge answered without the handler: before the client sent a
// key, or before a restart. The handler serves them before any other message of the session.
type unserved struct {
	mu          sync.Mutex // held while the handler is served
	initialize  []byte     // params
	initialized bool       // notifications/initialized
	known       bool       // the handler has been served notifications/initialized
	moved       bool       // the session comes from another replica, see moving
}

// add records messages that the handler has to serve. initialize may be nil.
func (u *unserved) add(initialize []byte, initialized bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if initialize != nil {
		u.initialize = initialize
	}
	u.initialized = u.initialized || initialized && !u.known
}

// completeHandshake lets the handler serve the missing handshake messages before a message with this method, which may
// replace them.
func (ep *endpoint) completeHandshake(s *session, src source, method string) {
	u := &s.handshake.unserved
	u.mu.Lock()
	defer u.mu.Unlock()
	initialize, initialized := u.initialize, u.initialized
	u.initialize, u.initialized = nil, false
	switch method {
	case "initialize":
		return
	case "notifications/initialized":
		u.known, initialized = true, false
	}
	if initialize != nil {
		ep.serveAnswered(s, src, jsonrpc.Request(jsonrpc.StringID("nexus-initialize"), "initialize", initialize))
	}
	if initialized {
		u.known = true
		ep.serveAnswered(s, src, jsonrpc.Notification("notifications/initialized", nil))
	}
	if u.moved {
		u.moved = false
		ep.restore(s, src)
	}
}

// serveAnswered lets the handler serve a message that needs no response any more.
func (ep *endpoint) serveAnswered(s *session, src source, raw []byte) {
	m, _ := jsonrpc.Parse(raw) // it is valid
	x := &Exchange{}
	ctx := ep.fill(x, src, s, &inbound.Message{Message: m})
	defer x.abort(nil)
	x.entry.id = "" // the client may use the id
	if s.begin(x) != nil {
		return // the session has ended
	}
	defer s.leave(x)
	if m.IsRequest() {
		ep.serveRequest(ctx, x)
	} else {
		ep.run(ctx, x)
	}
}

// An unauthenticated client has sent no key although one is needed. The edge answers it without the handler and
// stores only the data in the session id, so that a key may follow in _meta.api_key.

// serveUnauthenticated answers a message without a key over streamable HTTP. id is its session id.
func (t *streamable) serveUnauthenticated(
	w http.ResponseWriter, r *http.Request, src source, id string, in *inbound.Message,
) {
	e := t.edge
	s := t.current(src, id)
	if s == nil && id != "" {
		if _, ok := e.sessions.sealed(src, id); !ok {
			t.reply.sessionNotFound(w, in.ID)
			return
		}
	}
	var version protocol.Version // of initialize
	switch {
	case !in.IsRequest():
		if id != "" {
			at, ok := t.here(w, r, src, id, in.Sent)
			if !ok {
				return
			}
			s = at.session
		}
		if s != nil {
			s.handshake.unserved.add(nil, true) // it is notifications/initialized
		}
		w.WriteHeader(http.StatusAccepted)
		return
	case e.life.stopping.Load():
		t.reply.unavailable(w, in.ID, e.noRoom(in.DeclaredVersion()))
		return
	case in.Method == "initialize":
		agreed, client, err := in.ReadInitialize()
		if err != nil {
			t.reply.error(w, http.StatusBadRequest, in.ID, err)
			return
		}
		version = agreed
		record := newRecord(src, version, client)
		w.Header()["Mcp-Session-Id"] = []string{e.sessions.ids.Issue(&record, src.path)}
	}
	t.reply.message(w, http.StatusOK, t.unauthenticated(in, version))
}

// serveUnauthenticated answers a message without a key on the stream of a session that was opened with one.
func (t *sse) serveUnauthenticated(w http.ResponseWriter, s *session, in *inbound.Message) {
	var version protocol.Version // of initialize
	switch {
	case !in.IsRequest():
		s.handshake.unserved.add(nil, true)
	case in.Method == "initialize":
		agreed, client, err := in.ReadInitialize()
		if err != nil {
			s.respond(output.Error(in.ID, err))
			break
		}
		version = agreed
		if s.handshake.agree(version, client, false) {
			s.handshake.unserved.add(client.InitializeParams(version), false)
		}
		fallthrough
	default:
		s.respond(t.unauthenticated(in, version))
	}
	accepted(w)
}

// unauthenticated returns the response to a request without a key; version is that of the response to initialize. Its
// capabilities name only tools, which every endpoint has.
func (ep *endpoint) unauthenticated(in *inbound.Message, version protocol.Version) output.Message {
	info := jsonrpc.Set(nil, "version", []byte(jsonrpc.StringID(ep.edge.version)))
	info = jsonrpc.Set(info, "name", []byte(jsonrpc.StringID(ep.edge.name)))
	var body []byte
	switch in.Method {
	case "initialize":
		body = append(append([]byte(`{"protocolVersion":`), jsonrpc.StringID(string(version))...),
			`,"capabilities":{"tools":{"listChanged":true}},"serverInfo":`...)
		body = append(append(body, info...), '}')
	case "server/discover":
		body = append([]byte(`{"resultType":"complete","supportedVersions":`), protocol.JSON(protocol.Versions())...)
		body = append(body, `,"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":`...)
		body = append(append(body, info...), "}}"...)
	default: // ping
		body = []byte("{}")
	}
	return output.Result(in.ID, body)
}
