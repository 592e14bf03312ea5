// Package ops serves the HTTP paths for operators: probes, the state of the servers as JSON and as a page, and metrics.
// [Mount] registers them. Handlers are safe for concurrent use.
package ops

import (
	"embed"
	"encoding/json"
	"net/http"
)

// pages are the files of /ui/.
//
//go:embed ui.html ui.js
var pages embed.FS

// paths is the text at /.
const paths = `AgenticNexus, a router for the Model Context Protocol (MCP)

/mcp                  the router's tools, over streamable HTTP
/sse                  the same, over HTTP+SSE
/proxy/mcp            all servers as one, over streamable HTTP
/proxy/sse            the same, over HTTP+SSE
/servers/{name}/mcp   one server alone
/livez /readyz        probes
/healthz /metrics     the state of the servers, as JSON and for Prometheus
/ui/                  the same as a page
`

// Options of the ops paths.
type Options struct {
	Ready     func() bool
	Health    func(r *http.Request) any         // the content of /healthz for a request
	Metrics   http.Handler                      // nil = no /metrics
	Authorize func(h http.Handler) http.Handler // wraps everything but the probes; nil = open
}

// Mount registers /, /livez, /readyz, /healthz, /metrics and /ui/.
func Mount(mux *http.ServeMux, o Options) {
	guard := o.Authorize
	if guard == nil {
		guard = func(h http.Handler) http.Handler { return h }
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, paths) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if o.Ready() {
			say(w, http.StatusOK, "ok\n")
		} else {
			say(w, http.StatusServiceUnavailable, "not ready\n")
		}
	})
	mux.Handle("GET /healthz", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(o.Health(r)) // the client may be gone
	})))
	for path, file := range map[string]string{"GET /ui/{$}": "ui.html", "GET /ui/ui.js": "ui.js"} {
		mux.Handle(path, guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Cache-Control", "no-store")
			h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; "+
				"connect-src 'self'; frame-ancestors 'none'")
			h.Set("X-Content-Type-Options", "nosniff")
			http.ServeFileFS(w, r, pages, file)
		})))
	}
	if o.Metrics != nil {
		mux.Handle("GET /metrics", guard(o.Metrics))
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
