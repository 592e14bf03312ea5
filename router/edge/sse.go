package edge

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// SSE serves h as HTTP+SSE of protocol version 2024-11-05: stream handles GET, messages handles POST. Clients post to
// messagesPath + "/?session_id=…".
func (e *Edge) SSE(messagesPath string, h Handler) (stream, messages http.Handler) {
	t := &sse{
		endpoint:    endpoint{edge: e, handler: h, surface: strings.TrimSuffix(messagesPath, "messages/") + "sse"},
		reply:       replies{e},
		messagesURL: strings.TrimRight(messagesPath, "/") + "/?session_id=",
	}
	return t.reply.handler("GET, OPTIONS", map[string]http.HandlerFunc{http.MethodGet: t.get}),
		t.reply.handler("POST, OPTIONS", map[string]http.HandlerFunc{http.MethodPost: t.post})
}

type sse struct {
	endpoint
	reply       replies
	messagesURL string // URL of POST without the session id
}

// get opens a session that ends with the connection.
func (t *sse) get(w http.ResponseWriter, r *http.Request) {
	caller, ok := t.reply.authenticate(w, r)
	if !ok {
		return
	}
	if (hop{replies: t.reply}).toAnother(w, r, caller, nil) {
		return
	}
	src := httpSource(r, caller)
	src.shared = true
	s, err := t.edge.sessions.open(&t.endpoint, src, protocol.V20241105, inbound.ClientInfo{})
	if err != nil {
		t.reply.unavailable(w, "", err)
		return
	}
	defer s.end(ErrSessionEnded)
	s.own.WriteEndpoint(&t.edge.out, w, r, t.messagesURL+s.id)
}

// post accepts a message of a session. Responses go to the session's own stream.
func (t *sse) post(w http.ResponseWriter, r *http.Request) {
	caller, ok := t.reply.identify(w, r)
	if !ok {
		return
	}
	id := r.URL.Query().Get("session_id")
	if id == "" {
		t.reply.error(w, http.StatusBadRequest, "", inbound.InvalidRequest("session_id is missing"))
		return
	}
	src := httpSource(r, caller)
	src.shared = true
	s := t.edge.sessions.get(&t.endpoint, src, id)
	if s == nil {
		t.elsewhere(w, r, caller, id)
		return
	}
	in, batch, ok := t.reply.receive(w, r, caller, false)
	switch {
	case !ok:
		return
	case in == nil:
		t.batch(w, r, src, s, batch)
		return
	}
	logReceived(t.edge.log, s, in)
	t.serve(w, r, src, s, in)
}

// serve authorizes a message and serves it.
func (t *sse) serve(w http.ResponseWriter, r *http.Request, src source, s *session, in *inbound.Message) {
	var v verdict
	src.caller, v = t.authorize(in, src)
	rejected := v == unauthenticated || v == keyWrong
	switch {
	case v == keyMissing, v == keyWrong && !in.IsRequest():
		t.reply.unauthorized(w, r, in.ID, v == keyWrong)
	case v != unauthenticated && !src.caller.Anonymous && !s.belongsTo(src.caller):
		t.reply.sessionNotFound(w, in.ID)
	case rejected && in.IsRequest() && s.inFlight.has(in.ID): // an error would answer the owner's request
		t.reply.error(w, http.StatusBadRequest, in.ID, inFlightError(in.ID))
	case v == keyWrong:
		s.respond(wrongKey(t.edge, &in.Message, ""))
		accepted(w)
	case in.Version != nil:
		// A client that probes for 2026-07-28 falls back to initialize if it gets a proper response.
		if in.IsRequest() {
			s.respond(output.Error(in.ID, inbound.CheckVersion(nil, in, false)))
		}
		accepted(w)
	case v == unauthenticated:
		t.serveUnauthenticated(w, s, in)
	case in.IsRequest():
		t.completeHandshake(s, src, in.Method)
		t.request(w, src, s, in)
	default:
		t.completeHandshake(s, src, in.Method)
		if err := t.accept(src, s, in); err != nil {
			t.reply.unavailable(w, "", err)
			return
		}
		accepted(w)
	}
}

func accepted(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

func (t *sse) request(w http.ResponseWriter, src source, s *session, in *inbound.Message) {
	if in.Method == "initialize" {
		if _, _, err := t.initialize(s, src, in); err != nil {
			s.respond(output.Error(in.ID, err))
			accepted(w)
			return
		}
	}
	err := t.serveShared(src, s, in)
	var wire *jsonrpc.Error
	switch {
	case err == nil:
		accepted(w)
	case !errors.As(err, &wire):
		t.reply.sessionNotFound(w, in.ID)
	case wire.Code == jsonrpc.CodeInvalidRequest:
		t.reply.error(w, http.StatusBadRequest, in.ID, wire)
	default:
		s.respond(output.Error(in.ID, wire))
		accepted(w)
	}
}

func (t *sse) batch(w http.ResponseWriter, r *http.Request, src source, s *session, body []byte) {
	version, _ := s.handshake.agreed()
	items, v, err := t.splitBatch(src, s, version, body)
	switch {
	case err != nil:
		t.reply.error(w, http.StatusBadRequest, "", err)
	case v != admitted:
		t.reply.unauthorized(w, r, "", v == keyWrong)
	default:
		t.completeHandshake(s, src, "")
		t.serveBatch(src, s, items, s.own.Sender)
		accepted(w)
	}
}
