package app

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// operators are those who may use the ops paths.
type operators struct {
	keys *auth.Keys
	edge *edge.Edge
}

// authorize guards an ops path: from where, and with the keys, where there are any.
func (o *operators) authorize(next http.Handler) http.Handler {
	return o.edge.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.keys.Required() {
			if _, ok := o.operator(r); !ok {
				w.Header().Add("WWW-Authenticate", `Bearer realm="agenticnexus"`)
				w.Header().Add("WWW-Authenticate", `Basic realm="agenticnexus", charset="UTF-8"`)
				http.Error(w, "a valid API key is needed", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	}))
}

// visible is what the key of a request that authorize has let pass may see; nil = everything.
func (o *operators) visible(r *http.Request) downstream.Visible {
	if !o.keys.Required() {
		return nil
	}
	caller, _ := o.operator(r)
	return caller.Visible()
}

// visibleServers is visible for servers as such.
func (o *operators) visibleServers(r *http.Request) func(server string) bool {
	see := o.visible(r)
	if see == nil {
		return nil
	}
	return func(server string) bool { return see(server, "") }
}

// operator identifies who asks for an ops path: by a key as on every path, or by one as the password, which
// browsers ask for when they show /ui/.
func (o *operators) operator(r *http.Request) (auth.Caller, bool) {
	key, present := o.keys.FromHeaders(r.Header)
	if !present {
		_, key, present = r.BasicAuth()
	}
	caller, ok := o.keys.Identify(key)
	return caller, present && ok
}
