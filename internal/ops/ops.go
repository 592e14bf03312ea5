// Package ops serves the HTTP paths for operators: probes, the state of the servers as JSON, metrics and a page.
// [Mount] registers them. Handlers are safe for concurrent use.
package ops

import (
	"encoding/json"
	"net/http"
)

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

// Options of the ops paths.
type Options struct {
	Ready     func() bool
	Health    func(r *http.Request) any         // the content of /healthz for a request
	Metrics   http.Handler                      // nil = no /metrics
	Page      http.Handler                      // serves all below /ui/; nil = none
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
	if o.Page != nil {
		mux.Handle("/ui/", guard(o.Page))
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
