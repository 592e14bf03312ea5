package edge

import (
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// Streamable serves h as streamable HTTP of every protocol version. A session is valid only on the path that it was
// opened on. scope restricts callers; nil does not.
func (e *Edge) Streamable(h Handler, scope *auth.Scope) http.Handler {
	t := &streamable{endpoint{edge: e, handler: h, scope: scope}, replies{e}}
	return t.reply.handler("GET, POST, DELETE, OPTIONS", map[string]http.HandlerFunc{
		http.MethodPost: t.post, http.MethodGet: t.get, http.MethodDelete: t.delete})
}

type streamable struct {
	endpoint
	reply replies
}

func sessionID(h http.Header) string {
	if v := h["Mcp-Session-Id"]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// current returns the existing session of the endpoint with an id; else nil.
func (t *streamable) current(src source, id string) *session {
	return t.edge.sessions.get(&t.endpoint, src, id)
}

// post serves one message or a batch.
func (t *streamable) post(w http.ResponseWriter, r *http.Request) {
	caller, ok := t.reply.identify(w, r)
	if !ok {
		return
	}
	in, batch, ok := t.reply.receive(w, r, caller, true)
	if !ok {
		return
	}
	if in == nil || in.Method != "subscriptions/listen" { // that goes on until the edge stops
		t.edge.life.posts.begin()
		defer t.edge.life.posts.end()
	}
	if in == nil {
		t.batch(w, r, caller, batch)
		return
	}
	id := ""
	if in.Version == nil { // only the handshake eras have sessions
		id = sessionID(r.Header)
	}
	src := httpSource(r, caller)
	logReceived(t.edge.log, t.current(src, id), in) // serve may revive the session later
	var v verdict
	switch src.caller, v = t.authorize(in, src); { // by the key in _meta, if any
	case v == keyMissing, v == keyWrong && !in.IsRequest():
		t.reply.unauthorized(w, r, in.ID, v == keyWrong)
	case v == keyWrong:
		t.reply.message(w, http.StatusOK, wrongKey(t.edge, &in.Message, in.DeclaredVersion()))
	case v == unauthenticated:
		t.serveUnauthenticated(w, r, src, id, in)
	default:
		t.serve(w, r, src, id, in)
	}
}

// serve serves an admitted message of the session with an id, or without a session if id is empty.
func (t *streamable) serve(w http.ResponseWriter, r *http.Request, src source, id string, in *inbound.Message) {
	var s *session
	if id != "" {
		if s = t.session(w, r, src, id, in.Method, in.Sent); s == nil {
			return
		}
	} else if t.elsewhere(w, r, src, in) {
		return
	}
	switch {
	case !in.IsRequest():
		t.notification(w, r, src, s, in)
	case in.Method == "initialize" && in.Version == nil:
		t.open(w, r, src, s, in)
	case isRetry(in):
		t.retryHTTP(w, r, src, in)
	case in.Outlives():
		t.firstRoundTrip(w, r, src, in)
	default:
		t.request(w, r, src, s, in, false)
	}
}

// session returns the session with an id for a message with this method, after completing its handshake. nil = the
// request is answered. body is that of a POST.
func (t *streamable) session(
	w http.ResponseWriter, r *http.Request, src source, id, method string, body []byte,
) *session {
	owner := &t.edge.sessions
	for range homeTries {
		at, ok := t.here(w, r, src, id, body)
		if !ok {
			return nil
		}
		s, err := owner.find(&t.endpoint, src, id, at)
		switch {
		case err != nil:
			t.reply.noSession(w, idOf(body), err)
			return nil
		case s == at.session || owner.remains(src.ctx, s):
			t.completeHandshake(s, src, method) // of a revived session
			return s
		}
		s.end(errFenced)
	}
	t.reply.homeUnavailable(w, idOf(body), "", cluster.ErrMoved)
	return nil
}

// notification serves a notification or a response.
func (t *streamable) notification(
	w http.ResponseWriter, r *http.Request, src source, s *session, in *inbound.Message,
) {
	switch err := t.accept(src, s, in); {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case s != nil && s.closes():
		t.serve(w, r, src, s.id, in) // it is revived, perhaps elsewhere
	case s != nil || t.edge.life.stopping.Load():
		t.reply.unavailable(w, "", err)
	default:
		t.reply.tooManyRequests(w, "", err)
	}
}

// httpExchange is an exchange and its HTTP response, allocated together.
type httpExchange struct {
	Exchange
	response output.Response
}

// statusOf returns the mapping of error codes to HTTP statuses; before 2026-07-28 it is nil, which means 200.
func statusOf(v protocol.Version) func(code int) int {
	if v.AtLeast(protocol.V20260728) {
		return inbound.HTTPStatus
	}
	return nil
}

// open serves initialize, which opens a session unless there is one.
func (t *streamable) open(w http.ResponseWriter, r *http.Request, src source, s *session, in *inbound.Message) {
	s, opening, err := t.initialize(s, src, in)
	if err != nil {
		status := http.StatusBadRequest
		if err.Code == jsonrpc.CodeServer {
			status = http.StatusServiceUnavailable
		}
		t.reply.error(w, status, in.ID, err)
		return
	}
	w.Header()["Mcp-Session-Id"] = []string{s.id}
	t.request(w, r, src, s, in, opening)
}

// request serves one request and writes its response. If it is opening the session, the session ends unless the request
// succeeds.
func (t *streamable) request(
	w http.ResponseWriter, r *http.Request, src source, s *session, in *inbound.Message, opening bool,
) {
	e := t.edge
	c := &httpExchange{}
	x := &c.Exchange
	ctx := t.fill(x, src, s, in)
	var own *output.SessionStream
	if s != nil {
		own = &s.own
	}
	c.response.Begin(&e.out, w, r, statusOf(x.Version), own)
	x.reply.sender = &c.response
	if err := e.track(x); err != nil {
		c.response.Discard()
		if opening {
			s.end(ErrSessionEnded)
			w.Header().Del("Mcp-Session-Id")
		} else if s != nil && s.closes() {
			x.abort(nil)
			t.serve(w, r, src, s.id, in) // it is revived, perhaps elsewhere
			return
		}
		t.reply.refused(w, x, err)
		return
	}
	t.serveRequest(ctx, x)
	e.life.busy.begin() // Stop waits until the response is written; untrack ends the count of the request
	defer e.life.busy.end()
	e.untrack(x)
	if s != nil {
		s.touch()
	}
	if opening && x.reply.state.Load() != succeeded {
		s.end(ErrSessionEnded)
		if !c.response.Streaming() {
			w.Header().Del("Mcp-Session-Id")
		}
	}
	c.response.Finish()
}

// bodyless checks a GET or DELETE and returns its source and session id. If it reports false, it has answered.
func (t *streamable) bodyless(w http.ResponseWriter, r *http.Request) (src source, id string, ok bool) {
	caller, ok := t.reply.authenticate(w, r)
	if !ok {
		return src, "", false
	}
	if v := inbound.HeaderVersion(r.Header); v != "" && v != protocol.V20260728 && !v.IsHandshake() {
		t.reply.error(w, http.StatusBadRequest, "", inbound.Unsupported(v, protocol.Versions()))
		return src, "", false
	}
	return httpSource(r, caller), sessionID(r.Header), true
}

// endTimeout is how long DELETE waits for the session to end.
const endTimeout = 5 * time.Second

// delete ends a session and forbids its revival.
func (t *streamable) delete(w http.ResponseWriter, r *http.Request) {
	src, id, ok := t.bodyless(w, r)
	switch {
	case !ok:
		return
	case id == "":
		t.reply.invalidRequest(w, http.StatusBadRequest, "", "The Mcp-Session-Id header is missing")
		return
	}
	owner := &t.edge.sessions
	for range homeTries {
		at, ok := t.here(w, r, src, id, nil)
		if !ok {
			return
		}
		s, record := at.session, at.record
		var may bool
		if s != nil {
			record, may = &s.record, s.belongsTo(src.caller)
		} else {
			may = owner.mayRevive(record, src)
		}
		if !may {
			t.reply.sessionNotFound(w, "")
			return
		}
		if owner.forbidRevival(record) != nil {
			continue // it has moved, or the lease has ended
		}
		if s == nil {
			s = t.current(src, id) // revived in the meantime
		}
		if s != nil {
			s.end(ErrSessionEnded)
			timeout := time.NewTimer(endTimeout)
			defer timeout.Stop()
			select {
			case <-s.life.done:
			case <-r.Context().Done():
			case <-timeout.C:
			}
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	t.reply.homeUnavailable(w, "", "", cluster.ErrMoved)
}

// get opens a session's own stream, or resumes the stream that Last-Event-ID names.
func (t *streamable) get(w http.ResponseWriter, r *http.Request) {
	src, id, ok := t.bodyless(w, r)
	if !ok {
		return
	}
	if id == "" {
		t.reply.methodNotAllowed(w, "POST, OPTIONS") // only sessions have a GET stream
		return
	}
	s := t.session(w, r, src, id, "", nil)
	if s == nil {
		return
	}
	if !output.ParseAccept(r.Header).Events {
		t.reply.invalidRequest(w, http.StatusNotAcceptable, "", "Accept must allow text/event-stream")
		return
	}
	s.touch()
	defer s.touch()
	number, seq := uint64(0), uint64(0)
	last := r.Header.Get("Last-Event-ID")
	if last != "" && s.own.Resumable() {
		if number, seq, ok = output.ParseEventID(last); !ok {
			t.reply.noEvents(w)
			return
		}
	}
	if number > 0 {
		if !s.own.Resume(&t.edge.out, w, r, number, seq) {
			t.reply.noEvents(w)
		}
		return
	}
	s.own.WriteEvents(&t.edge.out, w, r, last != "", seq)
}
