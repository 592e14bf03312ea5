package edge

import (
	"errors"
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// replies checks HTTP requests and writes the responses that need no handler.
type replies struct{ edge *Edge }

// message answers with a message.
func (a replies) message(w http.ResponseWriter, status int, m output.Message) {
	logSent(a.edge.log, nil, m)
	a.edge.out.WriteMessage(w, status, m)
}

// error answers with a JSON-RPC error.
func (a replies) error(w http.ResponseWriter, status int, id jsonrpc.ID, err *jsonrpc.Error) {
	a.message(w, status, output.Error(id, err))
}

// invalidRequest answers with a JSON-RPC error of code -32600.
func (a replies) invalidRequest(w http.ResponseWriter, status int, id jsonrpc.ID, text string) {
	a.error(w, status, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text})
}

// handler returns a handler that checks requests and serves them by their method. methods lists the methods.
func (a replies) handler(methods string, serve map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := !a.edge.sessions.left() && a.edge.life.beginWork() // else nothing is served here any more
		if begun {
			defer a.edge.life.endWork()
		}
		a.edge.out.CloseConnection(w.Header())
		if a.edge.sessions.replicated {
			r = keepCredentials(r)
		}
		f := serve[r.Method]
		switch {
		case !a.checkOrigin(w, r, methods):
		case !begun:
			if !(hop{a, true}).late(w, r) {
				a.unavailable(w, "", a.edge.noRoom(""))
			}
		case f == nil:
			a.methodNotAllowed(w, methods)
		default:
			f(w, r)
		}
	})
}

// checkOrigin refuses requests with a foreign Host or Origin, answers preflights and sets CORS headers. methods are
// the methods of the endpoint. It reports whether to go on.
func (a replies) checkOrigin(w http.ResponseWriter, r *http.Request, methods string) bool {
	p := a.edge.access
	sent := r.Header["Origin"]
	refusal := p.checkHost(r.Host)
	if refusal == "" && (len(sent) > 1 || len(sent) == 1 && !p.allows(sent[0], r.Host)) {
		refusal = "the Origin is not allowed"
	}
	if refusal != "" {
		a.edge.refusals.forbidden.Add(1)
		a.invalidRequest(w, http.StatusForbidden, "", "Forbidden: "+refusal)
		return false
	}
	h := w.Header()
	if len(sent) > 0 {
		h.Set("Access-Control-Allow-Origin", sent[0])
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
	}
	if r.Method != http.MethodOptions {
		return true
	}
	h.Set("Allow", methods)
	if r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", methods)
		h.Set("Access-Control-Allow-Headers", p.allowedHeaders(r.Header))
		h.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
	return false
}

// identify returns the caller named by a request's headers. It answers a wrong key or token.
func (a replies) identify(w http.ResponseWriter, r *http.Request) (auth.Caller, bool) {
	caller, refused := a.edge.access.identify(r)
	if refused != nil {
		a.notAdmitted(w, r, "", refused)
	}
	return caller, refused == nil
}

// authenticate is like identify, but also answers a request without a key or token if one is needed.
func (a replies) authenticate(w http.ResponseWriter, r *http.Request) (auth.Caller, bool) {
	caller, ok := a.identify(w, r)
	if ok && a.edge.access.needsKey() && caller.Anonymous {
		a.unauthorized(w, r, "", false)
		return caller, false
	}
	return caller, ok
}

// receive reads the message of a POST; if it is a batch, in is nil. modern allows 2026-07-28. If receive reports false,
// it has answered.
func (a replies) receive(
	w http.ResponseWriter, r *http.Request, caller auth.Caller, modern bool,
) (in *inbound.Message, batch []byte, ok bool) {
	body, ok := a.readBody(w, r, caller)
	if !ok || jsonrpc.IsBatch(body) {
		return nil, body, ok
	}
	m, err := inbound.Parse(body)
	status := http.StatusBadRequest
	switch {
	case err != nil:
	case m.Version == nil:
		err = inbound.CheckHeader(r.Header, &m)
	case modern:
		if err = inbound.CheckVersion(r.Header, &m, true); err != nil {
			status = inbound.HTTPStatus(err.Code)
		}
	}
	if err != nil {
		a.error(w, status, m.ID, err)
		return nil, nil, false
	}
	return &m, nil, true
}

// readBody reads the whole body. If that fails, it answers the request.
func (a replies) readBody(w http.ResponseWriter, r *http.Request, caller auth.Caller) ([]byte, bool) {
	e := a.edge
	b, err := inbound.ReadBody(w, r, e.budget, caller.ID, int64(e.limits.BodyBytes))
	if err == nil {
		return b, true
	}
	if errors.Is(err, inbound.ErrContentType) {
		a.invalidRequest(w, http.StatusUnsupportedMediaType, "", "Content-Type must be application/json")
		return nil, false
	}
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, inbound.ErrTooLarge):
		a.invalidRequest(w, http.StatusRequestEntityTooLarge, "",
			"The message is larger than "+e.limits.BodyBytes.String())
	case errors.Is(err, inbound.ErrOverloaded):
		a.tooManyRequests(w, "", e.noRoom(""))
	default:
		a.error(w, http.StatusBadRequest, "", &jsonrpc.Error{
			Code: jsonrpc.CodeParse, Message: "Parse error: the body could not be read to its end"})
	}
	return nil, false
}

// unauthorized answers 401 to a message with a wrong key, or with no key if one is needed.
func (a replies) unauthorized(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, wrong bool) {
	if wrong {
		a.notAdmitted(w, r, id, auth.WrongKey())
		return
	}
	a.edge.refusals.unauthorized.Add(1)
	w.Header().Set("WWW-Authenticate", Challenge(a.edge, r, nil))
	a.invalidRequest(w, http.StatusUnauthorized, id, "Unauthorized: "+a.edge.access.missing())
}

// notAdmitted answers a request whose key or token is refused.
func (a replies) notAdmitted(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, refused *auth.Refusal) {
	a.edge.log.Debug("Credentials refused", "status", refused.Status, "reason", refused.Text)
	CountRefused(a.edge, refused)
	if refused.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "10")
		a.unavailable(w, id, routerError("", "Unavailable: "+refused.Text, reason.Unavailable, true))
		return
	}
	if refused.Code != "" {
		w.Header().Set("WWW-Authenticate", Challenge(a.edge, r, refused))
	}
	a.invalidRequest(w, refused.Status, id, http.StatusText(refused.Status)+": "+refused.Text)
}

// methodNotAllowed answers with 405.
func (a replies) methodNotAllowed(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	a.invalidRequest(w, http.StatusMethodNotAllowed, "", "Method not allowed; use "+methods)
}

// unavailable answers with 503.
func (a replies) unavailable(w http.ResponseWriter, id jsonrpc.ID, err *jsonrpc.Error) {
	a.error(w, http.StatusServiceUnavailable, id, err)
}

// tooManyRequests answers 429: there is no room for the request, and the connection may not wait for room either.
func (a replies) tooManyRequests(w http.ResponseWriter, id jsonrpc.ID, err *jsonrpc.Error) {
	w.Header()["Retry-After"] = []string{"1"}
	w.Header()["Connection"] = []string{"close"}
	a.error(w, http.StatusTooManyRequests, id, err)
}

// sessionNotFound answers 404 for an unknown session, or 503 during Stop, which may have ended it.
func (a replies) sessionNotFound(w http.ResponseWriter, id jsonrpc.ID) {
	if a.edge.life.stopping.Load() {
		a.unavailable(w, id, a.edge.noRoom(""))
		return
	}
	a.invalidRequest(w, http.StatusNotFound, id, "Session not found")
}

// noSession answers an error of registry.find.
func (a replies) noSession(w http.ResponseWriter, id jsonrpc.ID, err error) {
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		a.unavailable(w, id, wire)
	case errors.Is(err, errNoSession):
		a.sessionNotFound(w, id)
	default:
		a.homeUnavailable(w, id, "", err)
	}
}

// noEvents answers an unknown Last-Event-ID.
func (a replies) noEvents(w http.ResponseWriter) {
	a.invalidRequest(w, http.StatusBadRequest, "", "Last-Event-ID does not name a resumable stream")
}

// refused answers an error of Edge.track.
func (a replies) refused(w http.ResponseWriter, x *Exchange, err error) {
	x.abort(nil)
	var wire *jsonrpc.Error
	switch {
	case !errors.As(err, &wire):
		a.sessionNotFound(w, x.Message.ID)
	case wire.Code == jsonrpc.CodeInvalidRequest:
		a.error(w, http.StatusBadRequest, x.Message.ID, wire)
	case a.edge.life.stopping.Load():
		a.unavailable(w, x.Message.ID, wire)
	default:
		a.tooManyRequests(w, x.Message.ID, wire)
	}
}

// revoked reports whether x needs a key and its key is no longer valid. A request may outlive an access token, but not
// while it listens: without rights the client receives no more notifications.
func revoked(x *Exchange) bool {
	return !x.edge.access.valid(x.Caller) && (!x.Caller.Expired() || x.reply.listens.Load()) &&
		!opens(x.Message.Method)
}

// Guard passes on only requests whose Host and Origin the MCP endpoints accept.
func (e *Edge) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (replies{e}).checkOrigin(w, r, "GET, OPTIONS") {
			next.ServeHTTP(w, r)
		}
	})
}
