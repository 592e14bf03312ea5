package edge

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// authorize checks the key of a message and returns its caller. On stdio no key is needed.
func (f *surface) authorize(in *inbound.Message, src source) (auth.Caller, access.Verdict) {
	if src.local {
		return src.caller, access.Admitted
	}
	return f.edge.access.Admit(in, src.caller)
}

// revoked reports whether x needs a key and its key is no longer valid. A request may outlive an access token, but not
// while it listens: without rights the client receives no more notifications.
func revoked(x *Exchange) bool {
	return !x.edge.access.Valid(x.Caller) && (!x.Caller.Expired() || x.out.listens.Load()) &&
		!access.Open(x.Message.Method)
}

// Access returns the policy that decides who may talk to the edge.
func (e *Edge) Access() *access.Policy { return e.access }

// Guard passes on only requests whose Host and Origin the MCP endpoints accept.
func (e *Edge) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (replies{e}).checkOrigin(w, r, "GET, OPTIONS") {
			next.ServeHTTP(w, r)
		}
	})
}
