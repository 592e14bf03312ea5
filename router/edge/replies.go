package edge

import (
	"errors"
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// takeBody reads the whole body, or answers why it cannot.
func (e *Edge) takeBody(w http.ResponseWriter, r *http.Request, caller auth.Caller) ([]byte, bool) {
	b, err := inbound.ReadBody(w, r, e.budget, caller.ID, int64(e.limits.BodyBytes))
	if err == nil {
		return b, true
	}
	if errors.Is(err, inbound.ErrContentType) {
		e.writeError(w, http.StatusUnsupportedMediaType, "", &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: "Content-Type must be application/json"})
		return nil, false
	}
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, inbound.ErrTooLarge):
		e.writeError(w, http.StatusRequestEntityTooLarge, "", &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidRequest,
			Message: "The message is larger than " + e.limits.BodyBytes.String(),
		})
	case errors.Is(err, inbound.ErrOverloaded):
		e.tooBusy(w, "", e.noRoom(false))
	default:
		e.writeError(w, http.StatusBadRequest, "", &jsonrpc.Error{
			Code: jsonrpc.CodeParse, Message: "Parse error: the body could not be read to its end"})
	}
	return nil, false
}

// guard refuses requests whose Host or Origin is foreign and answers preflights. It reports whether to go on.
func (e *Edge) guard(w http.ResponseWriter, r *http.Request, methods string) bool {
	proceed, refusal := e.access.CheckOrigin(w, r, methods)
	if refusal != "" {
		e.writeError(w, http.StatusForbidden, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Forbidden: " + refusal})
	}
	return proceed
}

// Guard passes on only those requests whose Host and Origin the MCP endpoints would accept.
func (e *Edge) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.guard(w, r, "GET, OPTIONS") {
			next.ServeHTTP(w, r)
		}
	})
}

// identify returns the caller of a request by its headers, or answers that the key is wrong.
func (e *Edge) identify(w http.ResponseWriter, r *http.Request) (auth.Caller, bool) {
	caller, ok := e.access.Identify(r)
	if !ok {
		e.unauthorized(w, "", true)
	}
	return caller, ok
}

// unauthorized answers with 401.
func (e *Edge) unauthorized(w http.ResponseWriter, id jsonrpc.ID, wrong bool) {
	challenge, text := `Bearer realm="agenticnexus"`, "Unauthorized: an API key is needed"
	if wrong {
		challenge, text = challenge+`, error="invalid_token"`, "Unauthorized: the API key is not valid"
	}
	w.Header().Set("WWW-Authenticate", challenge)
	e.writeError(w, http.StatusUnauthorized, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text})
}

// wrongKey is the answer to a request whose _meta.api_key is wrong.
func wrongKey(m *jsonrpc.Message, modern bool) output.Message {
	const text = "Invalid API key"
	if m.Method != "tools/call" {
		err := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}
		return output.Error(m.ID, err)
	}
	body := `{"content":[{"type":"text","text":"` + text + `"}],"isError":true}`
	if modern {
		body = `{"resultType":"complete",` + body[1:]
	}
	return output.Result(m.ID, []byte(body))
}

// writeOwn answers with a message of our own making.
func (e *Edge) writeOwn(w http.ResponseWriter, status int, m output.Message) {
	e.trace("Message sent", nil, m)
	e.out.WriteMessage(w, status, m)
}

// writeError answers with a JSON-RPC error.
func (e *Edge) writeError(w http.ResponseWriter, status int, id jsonrpc.ID, err *jsonrpc.Error) {
	e.writeOwn(w, status, output.Error(id, err))
}
