package edge

import (
	"errors"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Streamable serves h as streamable HTTP of every protocol version, on one path.
func (e *Edge) Streamable(h Handler) http.Handler {
	return &streamable{surface{edge: e, handler: h}}
}

type streamable struct{ surface }

const streamableMethods = "GET, POST, DELETE, OPTIONS"

// ServeHTTP implements http.Handler.
func (t *streamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := t.edge
	if !e.enter() {
		e.writeError(w, http.StatusServiceUnavailable, "", e.noRoom(false))
		return
	}
	defer e.work.Done()
	e.partWays(w.Header())
	if !e.guard(w, r, streamableMethods) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		t.post(w, r)
	case http.MethodGet:
		t.get(w, r)
	case http.MethodDelete:
		t.delete(w, r)
	default:
		e.notAllowed(w, streamableMethods)
	}
}

func (e *Edge) notAllowed(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	e.writeError(w, http.StatusMethodNotAllowed, "", &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidRequest, Message: "Method not allowed; use " + methods})
}

// notFound answers a request of a session that is not there: it has ended, or shutdown has ended it.
func (e *Edge) notFound(w http.ResponseWriter, id jsonrpc.ID) {
	if e.stopping.Load() {
		e.writeError(w, http.StatusServiceUnavailable, id, e.noRoom(false))
		return
	}
	e.writeError(w, http.StatusNotFound, id, &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidRequest, Message: "Session not found"})
}

func sessionID(h http.Header) string {
	if v := h["Mcp-Session-Id"]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (t *streamable) post(w http.ResponseWriter, r *http.Request) {
	e := t.edge
	caller, ok := e.identify(w, r)
	if !ok {
		return
	}
	body, ok := e.readBody(w, r)
	if !ok {
		return
	}
	if jsonrpc.IsBatch(body) {
		t.batch(w, r, caller, body)
		return
	}
	in, err := parse(body)
	status := http.StatusBadRequest
	if err == nil && in.version == nil {
		err = checkHandshakeHeader(r.Header, &in)
	} else if err == nil {
		if err = checkModern(r.Header, &in, true); err != nil {
			status = modernStatus(err.Code)
		}
	}
	if err != nil {
		e.writeError(w, status, in.msg.ID, err)
		return
	}
	modern := in.version != nil
	id := ""
	var s *session
	if !modern {
		if id = sessionID(r.Header); id != "" {
			s = t.session(id)
		}
	}
	e.arrived(s, &in)
	src := httpSource(r, caller)
	var v verdict
	src.caller, v = e.admit(&in, src, s)
	switch {
	case v == keyMissing, v == keyWrong && !in.msg.IsRequest():
		e.unauthorized(w, in.msg.ID, v == keyWrong)
	case v == keyWrong:
		e.writeOwn(w, http.StatusOK, wrongKey(&in.msg, modern))
	case id != "" && (s == nil || !s.claim(src.caller)):
		e.notFound(w, in.msg.ID)
	case in.msg.IsRequest():
		t.request(w, r, src, s, &in)
	default:
		t.take(w, src, s, &in)
	}
}

// call is an exchange with its answer, made in one piece.
type call struct {
	Exchange
	answer answer
}

// request serves one request and writes its answer.
func (t *streamable) request(w http.ResponseWriter, r *http.Request, src source, s *session, in *inbound) {
	e := t.edge
	opening := false
	if in.msg.Method == "initialize" && in.version == nil {
		var err *jsonrpc.Error
		if s, opening, err = t.initialize(s, src, in.msg.Params); err != nil {
			e.writeError(w, initializeStatus(err), in.msg.ID, err)
			return
		}
		w.Header()["Mcp-Session-Id"] = []string{s.id}
	}
	if t.travelled(w, r, src, in) {
		return
	}
	c := &call{}
	x := &c.Exchange
	ctx := t.fill(x, src, s, in)
	c.answer.begin(e, w, r, x.Modern)
	if s != nil {
		c.answer.replay = s.replay
	}
	x.out = &c.answer
	if err := e.track(x); err != nil {
		if opening {
			s.end(ErrSessionEnded)
			w.Header().Del("Mcp-Session-Id")
		}
		e.refuse(w, x, err)
		return
	}
	e.request(ctx, t.handler, x)
	e.busy.Add(1) // until the answer is written
	defer e.done()
	e.untrack(x)
	if s != nil {
		s.touch()
	}
	if opening && x.state.Load() != succeeded {
		s.end(ErrSessionEnded)
		if !c.answer.streaming() {
			w.Header().Del("Mcp-Session-Id")
		}
	}
	held := c.answer.final.size() // as long as a slow client reads
	e.memory.Hold(held)
	c.answer.finish()
	e.memory.Release(held)
}

func initializeStatus(err *jsonrpc.Error) int {
	if err.Code == jsonrpc.CodeServer {
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// refuse answers a request that track would not have.
func (e *Edge) refuse(w http.ResponseWriter, x *Exchange, err error) {
	x.abort(nil)
	var wire *jsonrpc.Error
	switch {
	case !errors.As(err, &wire):
		e.notFound(w, x.Message.ID)
	case wire.Code == jsonrpc.CodeInvalidRequest:
		e.writeError(w, http.StatusBadRequest, x.Message.ID, wire)
	case e.stopping.Load():
		e.writeError(w, http.StatusServiceUnavailable, x.Message.ID, wire)
	default:
		e.tooBusy(w, x.Message.ID, wire)
	}
}

// tooBusy answers a request that there is no room for.
func (e *Edge) tooBusy(w http.ResponseWriter, id jsonrpc.ID, err *jsonrpc.Error) {
	w.Header()["Retry-After"] = []string{"1"}
	e.writeError(w, http.StatusTooManyRequests, id, err)
}

// existing returns the session that a GET or DELETE names, or answers why not. It is nil if none is named.
func (t *streamable) existing(w http.ResponseWriter, r *http.Request) (*session, bool) {
	e := t.edge
	caller, ok := e.identify(w, r)
	if !ok {
		return nil, false
	}
	if e.needsKey() && caller.Anonymous {
		e.unauthorized(w, "", false)
		return nil, false
	}
	if v := headerVersion(r.Header); v != "" && v != versionModern && !knownHandshake(v) {
		e.writeError(w, http.StatusBadRequest, "", unsupported(v, true))
		return nil, false
	}
	id := sessionID(r.Header)
	if id == "" {
		return nil, true
	}
	s := t.session(id)
	if s == nil || !s.claim(caller) {
		e.notFound(w, "")
		return nil, false
	}
	return s, true
}

// endPatience is how long DELETE waits for the handler.
const endPatience = 5 * time.Second

// delete ends a session and waits a little for its end.
func (t *streamable) delete(w http.ResponseWriter, r *http.Request) {
	s, ok := t.existing(w, r)
	if !ok {
		return
	}
	if s == nil {
		t.edge.writeError(w, http.StatusBadRequest, "", &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: "The Mcp-Session-Id header is missing"})
		return
	}
	s.end(ErrSessionEnded)
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	select {
	case <-s.done:
	case <-r.Context().Done():
	case <-patience.C:
	}
	w.WriteHeader(http.StatusNoContent)
}
