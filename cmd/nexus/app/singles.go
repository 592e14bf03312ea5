package app

import (
	"net/http"
	"sync"
)

// singles serves each server alone, at /servers/{name}/mcp. Which servers there are may change.
type singles struct {
	app *App

	mu       sync.Mutex
	surfaces map[string]http.Handler // made when they are first asked for
}

// ServeHTTP implements http.Handler. A server that is not there is answered like one that the caller may not see.
func (s *singles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !s.app.servers.Configured(name) {
		s.app.edge.Streamable(s.app.proxy.Single(name), nil).ServeHTTP(w, r)
		return
	}
	s.surface(name).ServeHTTP(w, r)
}

func (s *singles) surface(name string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.surfaces[name]
	if h == nil {
		h = s.app.edge.Streamable(s.app.proxy.Single(name), nil)
		s.surfaces[name] = h
	}
	return h
}
