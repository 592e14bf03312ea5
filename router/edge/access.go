package edge

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// needsKey reports whether callers must show a key.
func (e *Edge) needsKey() bool { return e.keys != nil && e.keys.Required() }

// admits reports whether a caller may go on with what it began: its key is valid still, or none is needed.
func (e *Edge) admits(c auth.Caller) bool {
	if c.Anonymous {
		return !e.needsKey()
	}
	_, valid := c.Now()
	return valid
}

// revoked reports whether a key is needed for x that its caller does not have any more.
func (e *Edge) revoked(x *Exchange) bool { return !e.admits(x.Caller) && !openTo(x.Message.Method) }

// identify tells by the headers of a request who calls. A wrong key is answered with 401. The keys are
// removed from the headers.
func (e *Edge) identify(w http.ResponseWriter, r *http.Request) (auth.Caller, bool) {
	var key string
	var present bool
	if e.needsKey() {
		key, present = e.keys.FromHeaders(r.Header)
	}
	delete(r.Header, "Authorization")
	delete(r.Header, "X-Api-Key")
	if !present {
		return e.remote(r), true
	}
	caller, ok := e.keys.Identify(key)
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

// verdict is what the key of a message, or the lack of one, leads to.
type verdict int

const (
	admitted   verdict = iota
	keyMissing         // 401
	keyWrong           // wrongKey
	stranger           // answered by the router alone, see strangers.go
)

// openTo reports whether a method is answered without a key, so that one can follow in _meta.
func openTo(method string) bool {
	switch method {
	case "initialize", "notifications/initialized", "ping", "server/discover":
		return true
	}
	return false
}

// admit judges a message by its _meta.api_key and by the caller that the headers named.
func (e *Edge) admit(in *inbound.Message, src source) (auth.Caller, verdict) {
	caller := src.caller
	if src.local || !e.needsKey() {
		return caller, admitted
	}
	if in.HasKey {
		named, ok := e.keys.Identify(in.Key)
		if !ok {
			return caller, keyWrong
		}
		if caller.Anonymous {
			caller = named
		}
	}
	switch {
	case !caller.Anonymous:
		return caller, admitted
	case openTo(in.Method):
		return caller, stranger
	}
	return caller, keyMissing
}

// wrongKey is the answer to a request whose _meta.api_key is wrong.
func wrongKey(m *jsonrpc.Message, modern bool) message {
	const text = "Invalid API key"
	if m.Method != "tools/call" {
		err := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}
		return message{form: failure, keep: true, id: m.ID, body: err.Encode()}
	}
	body := `{"content":[{"type":"text","text":"` + text + `"}],"isError":true}`
	if modern {
		body = `{"resultType":"complete",` + body[1:]
	}
	return message{form: result, keep: true, id: m.ID, body: []byte(body)}
}
