package app

import (
	"net/http"
	"sync"
)

// singles serves each server alone, at /servers/{name}/mcp. The set of servers may change.
type singles struct {
	app *App

	mu       sync.Mutex
	surfaces map[string]http.Handler // made at the first request
}

// ServeHTTP implements http.Handler. Unknown servers and servers that the caller may not see get the same answer.
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
