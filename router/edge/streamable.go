package edge

import (
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// Streamable serves h as streamable HTTP of every protocol version, on one path. A session belongs to the path that
// it was opened on.
func (e *Edge) Streamable(h Handler) http.Handler {
	return &streamable{surface{edge: e, handler: h}, replies{e}}
}

type streamable struct {
	surface
	reply replies
}

const streamableMethods = "GET, POST, DELETE, OPTIONS"

// ServeHTTP implements http.Handler.
func (t *streamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !t.reply.enter(w) {
		return
	}
	defer t.edge.life.leave()
	if !t.reply.checkOrigin(w, r, streamableMethods) {
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
		t.reply.methodNotAllowed(w, streamableMethods)
	}
}

func sessionID(h http.Header) string {
	if v := h["Mcp-Session-Id"]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (t *streamable) post(w http.ResponseWriter, r *http.Request) {
	e := t.edge
	caller, ok := t.reply.identify(w, r)
	if !ok {
		return
	}
	body, ok := t.reply.readBody(w, r, caller)
	if !ok {
		return
	}
	if jsonrpc.IsBatch(body) {
		t.batch(w, r, caller, body)
		return
	}
	in, err := inbound.Parse(body)
	status := http.StatusBadRequest
	if err == nil && in.Version == nil {
		err = inbound.CheckHeader(r.Header, &in)
	} else if err == nil {
		if err = inbound.CheckVersion(r.Header, &in, true); err != nil {
			status = inbound.HTTPStatus(err.Code)
		}
	}
	if err != nil {
		t.reply.error(w, status, in.ID, err)
		return
	}
	id := ""
	if in.Version == nil {
		id = sessionID(r.Header)
	}
	src := httpSource(r, caller)
	logReceived(e.log, t.present(src, id), &in)
	var v access.Verdict
	switch src.caller, v = e.admit(&in, src); {
	case v == access.KeyMissing, v == access.KeyWrong && !in.IsRequest():
		t.reply.unauthorized(w, in.ID, v == access.KeyWrong)
		return
	case v == access.KeyWrong:
		t.reply.message(w, http.StatusOK, wrongKey(&in.Message, in.DeclaredVersion()))
		return
	case v == access.Unauthenticated:
		t.serveUnauthenticated(w, src, id, &in)
		return
	}
	var s *session
	if id != "" {
		var err error
		if s, err = t.session(src, id); err != nil {
			t.reply.noSession(w, in.ID, err)
			return
		}
		t.settle(s, src, in.Method)
	}
	if in.IsRequest() {
		t.request(w, r, src, s, &in)
	} else {
		t.take(w, src, s, &in)
	}
}

// call is an exchange with its answer, made in one piece.
type call struct {
	Exchange
	answer output.Response
}

// statusOf returns the HTTP status for the code of an error, as answer.status has it.
func statusOf(v protocol.Version) func(code int) int {
	if v.AtLeast(protocol.V20260728) {
		return inbound.HTTPStatus
	}
	return nil
}

// request serves one request and writes its answer.
func (t *streamable) request(w http.ResponseWriter, r *http.Request, src source, s *session, in *inbound.Message) {
	e := t.edge
	opening := false
	if in.Method == "initialize" && in.Version == nil {
		var err *jsonrpc.Error
		if s, opening, err = t.initialize(s, src, in.Params); err != nil {
			t.reply.error(w, initializeStatus(err), in.ID, err)
			return
		}
		w.Header()["Mcp-Session-Id"] = []string{s.id}
	}
	if t.serveMRTR(w, r, src, in) {
		return
	}
	c := &call{}
	x := &c.Exchange
	ctx := t.fill(x, src, s, in)
	c.answer.Begin(&e.out, w, r, statusOf(x.Version))
	if s != nil {
		c.answer.UseReplay(&s.own)
	}
	x.out = &c.answer
	if err := e.track(x); err != nil {
		if opening {
			s.end(ErrSessionEnded)
			w.Header().Del("Mcp-Session-Id")
		}
		t.reply.refused(w, x, err)
		return
	}
	e.request(ctx, t.handler, x)
	e.life.begin() // until the answer is written
	defer e.life.done()
	e.untrack(x)
	if s != nil {
		s.touch()
	}
	if opening && x.state.Load() != succeeded {
		s.end(ErrSessionEnded)
		if !c.answer.Streaming() {
			w.Header().Del("Mcp-Session-Id")
		}
	}
	c.answer.Finish()
}

func initializeStatus(err *jsonrpc.Error) int {
	if err.Code == jsonrpc.CodeServer {
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// named identifies who sends a GET or DELETE and returns the session id that it names, or answers why it is refused.
func (t *streamable) named(w http.ResponseWriter, r *http.Request) (src source, id string, ok bool) {
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

// endPatience is how long DELETE waits for the handler.
const endPatience = 5 * time.Second

// delete ends a session, which cannot be revived then, and waits a little for its end.
func (t *streamable) delete(w http.ResponseWriter, r *http.Request) {
	e := t.edge
	src, id, ok := t.named(w, r)
	switch {
	case !ok:
		return
	case id == "":
		t.reply.invalidRequest(w, http.StatusBadRequest, "", "The Mcp-Session-Id header is missing")
		return
	}
	s := t.present(src, id)
	if s == nil {
		record, ok := t.sealed(src, id)
		if !ok || !e.mayRevive(record, src) {
			t.reply.sessionNotFound(w, "")
			return
		}
		e.bury(record)
		s = t.present(src, id) // it was being revived
	} else if !s.of(src.caller) {
		t.reply.sessionNotFound(w, "")
		return
	} else {
		e.bury(&s.record)
	}
	if s != nil {
		s.end(ErrSessionEnded)
		patience := time.NewTimer(endPatience)
		defer patience.Stop()
		select {
		case <-s.done:
		case <-r.Context().Done():
		case <-patience.C:
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// bury has the session of r never revived.
func (e *Edge) bury(r *sessionid.Record) {
	if !r.Fresh(time.Now()) {
		return
	}
	if err := e.ids.End(r); err != nil {
		e.log.Warn("cannot note that a session has ended; after a restart its id counts again", "error", err)
	}
}
