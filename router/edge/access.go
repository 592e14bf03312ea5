package edge

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// authorize checks the key of a message and returns its caller. On stdio no key is needed.
func (e *Edge) authorize(in *inbound.Message, src source) (auth.Caller, access.Verdict) {
	if src.local {
		return src.caller, access.Admitted
	}
	return e.access.Admit(in, src.caller)
}

// revoked reports whether the key of x, which it needs, is no longer valid.
func (e *Edge) revoked(x *Exchange) bool {
	return !e.access.Valid(x.Caller) && !access.Open(x.Message.Method)
}

// Guard passes on only those requests whose Host and Origin the MCP endpoints accept.
func (e *Edge) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (replies{e}).checkOrigin(w, r, "GET, OPTIONS") {
			next.ServeHTTP(w, r)
		}
	})
}
