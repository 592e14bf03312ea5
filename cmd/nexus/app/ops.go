package app

import (
	"net/http"
	"net/netip"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/console"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// page is the operators' page, and the journal that it shows.
type page struct {
	console *console.Console
	journal console.Journal
	history *history.Log
}

func newConsole(a *App, o *operators) *console.Console {
	return console.New(console.Options{
		Router: a.router, Servers: a.servers, Edge: a.edge, Journal: &a.page.journal, Config: a.opts.Config.Settings,
		Viewer: o.viewer, MCP: o.withPassword(a.edge.Streamable(a.tools, nil)), Switch: a.switchServer,
	})
}

// operators decides who may use the ops paths.
type operators struct {
	keys    *auth.Keys
	edge    *edge.Edge
	proxies []netip.Prefix
	local   bool // the router listens on loopback only
}

// authorize guards an ops path: it checks Host and Origin and, if keys or tokens are required, the credentials.
func (o *operators) authorize(next http.Handler) http.Handler {
	return o.edge.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.keys.Required() {
			if _, refused := o.operator(r); refused != nil {
				o.refuse(w, r, refused)
				return
			}
		}
		next.ServeHTTP(w, r)
	}))
}

// refuse answers a request that authorize refuses. If keys are configured, browsers then ask for one as a password.
func (o *operators) refuse(w http.ResponseWriter, r *http.Request, refused *auth.Refusal) {
	edge.CountRefused(o.edge, refused)
	if refused.Status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", o.edge.Access().Challenge(r, refused))
		if o.keys.Any() {
			w.Header().Add("WWW-Authenticate", `Basic realm="agenticnexus", charset="UTF-8"`)
		}
	}
	http.Error(w, refused.Text, refused.Status)
}

// visible returns what the sender of an authorized request may see; nil = everything.
func (o *operators) visible(r *http.Request) downstream.Visible {
	if !o.keys.Required() {
		return nil
	}
	caller, _ := o.operator(r)
	return caller.Visible()
}

// sees adapts visible for /metrics.
func (o *operators) sees(r *http.Request) func(server, tool string) bool { return o.visible(r) }

// operator identifies the sender of a request for an ops path: by a key or token as on every path, or by a key sent as
// the password of a browser.
func (o *operators) operator(r *http.Request) (auth.Caller, *auth.Refusal) {
	caller, present, refused := o.keys.Authenticate(r.Context(), r.Header)
	if present {
		return caller, refused
	}
	_, key, present := r.BasicAuth()
	caller, ok := o.keys.Identify(key)
	if !present || !ok {
		return caller, &auth.Refusal{Status: http.StatusUnauthorized, Text: "a valid API key or access token is needed"}
	}
	return caller, nil
}

// viewer returns the viewer of the page.
func (o *operators) viewer(r *http.Request) console.Viewer {
	if !o.keys.Required() {
		return console.Viewer{Caller: auth.Anonymous(auth.ClientAddr(r, o.proxies)), Known: o.local}
	}
	caller, refused := o.operator(r)
	return console.Viewer{Caller: caller, Visible: caller.Visible(), Known: refused == nil}
}

// withPassword accepts a key sent as a browser's password on an MCP path.
func (o *operators) withPassword(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !auth.Presented(r.Header) {
			if _, key, ok := r.BasicAuth(); ok {
				r = r.Clone(r.Context())
				r.Header.Del("Authorization")
				r.Header.Set("X-API-Key", key)
			}
		}
		next.ServeHTTP(w, r)
	})
}
