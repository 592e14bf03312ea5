package app

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/console"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// page is the operators' page, and the journal that it shows.
type page struct {
	console *console.Console
	journal console.Journal
	history *history.Log
}

func newConsole(a *App, o *operators) *console.Console {
	opts := console.Options{
		Router: a.router, Servers: a.servers, Edge: a.edge, Journal: &a.page.journal,
		Pins: a.pins, Config: a.opts.Config.Settings,
		Viewer: o.viewer, MCP: o.withPassword(a.edge.Streamable(a.frontend, nil)), Switch: a.switchServer,
		Restart: restartServer(a), Explain: explainer(a), InForce: func() config.Config { return *a.inForce.Load() },
	}
	opts.Edit = console.Edit{Folder: a.opts.Folder, Log: a.log}
	if a.opts.Cluster != nil {
		opts.Drain, opts.Edit.Folder = a.opts.Cluster.order, "" // the replicas read one configuration
	}
	return console.New(opts)
}

// paths is the text at /.
const paths = `AgenticNexus, a router for the Model Context Protocol (MCP)

/mcp                  the router's tools, over streamable HTTP
/sse                  the same, over HTTP+SSE
/proxy/mcp            all servers as one, over streamable HTTP
/proxy/sse            the same, over HTTP+SSE
/servers/{name}/mcp   one server alone
/livez /readyz        probes
/healthz /metrics     the state of the servers, as JSON and for Prometheus
/ui/                  what runs, fails and takes long, as a page
`

// mountOperations mounts the paths for operators: /, /livez, /readyz, /healthz, /metrics and /ui/.
func mountOperations(mux *http.ServeMux, a *App) {
	proxies, _ := auth.ParseProxies(a.opts.Config.TrustedProxies) // New has checked them
	o := &operators{a.keys, a.edge, proxies, config.OnLoopback(a.opts.Config.Listen)}
	a.page.console = newConsole(a, o)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, paths) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if a.web.ready.Load() {
			writeText(w, http.StatusOK, "ok\n")
		} else {
			writeText(w, http.StatusServiceUnavailable, "not ready\n")
		}
	})
	mux.Handle("GET /healthz", o.authorize(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var state any = map[string]string{"status": "unhealthy"}
		if h, err := a.router.Health(o.visible(r), ""); err == nil {
			state = h
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(state) // the client may be gone
	})))
	mux.Handle("/ui/", o.authorize(a.page.console))
	mux.Handle("GET /metrics", o.authorize(a.telemetry.Handler(o.sees)))
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
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
		w.Header().Add("WWW-Authenticate", edge.Challenge(o.edge, r, refused))
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

// sees returns which series of /metrics the sender of an authorized request may see; nil = all. Most count the requests
// of all callers. Unless it is an operator or the only caller, it therefore sees the state of servers alone.
func (o *operators) sees(r *http.Request) telemetry.Sees {
	if !o.keys.Required() {
		return nil
	}
	caller, _ := o.operator(r)
	visible, all := caller.Visible(), caller.Ops() || o.keys.Alone()
	if all && visible == nil {
		return nil
	}
	return func(series, server, tool string) bool {
		return (all || strings.HasPrefix(series, serverMetrics)) && (server == "" || visible == nil || visible(server, tool))
	}
}

// operator identifies the sender of a request for an ops path: by a key or token as on every path, or by a key sent as
// the password of a browser.
func (o *operators) operator(r *http.Request) (auth.Caller, *auth.Refusal) {
	caller, present, refused := o.keys.Authenticate(r.Context(), r.Header, r.URL.Path)
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
		client := auth.ClientAddr(r, o.proxies)
		addr, err := netip.ParseAddr(client)
		here := o.local && err == nil && addr.IsLoopback() // and not a client of a proxy on this machine
		return console.Viewer{Caller: auth.Anonymous(client), Known: here, Operator: here}
	}
	caller, refused := o.operator(r)
	return console.Viewer{
		Caller: caller, Visible: caller.Visible(), Known: refused == nil, Operator: refused == nil && caller.Ops(),
	}
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
