package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// web is the HTTP server of an App. The zero value listens nowhere.
type web struct {
	ready    atomic.Bool
	server   *http.Server
	listener *limit.Connections
	wg       sync.WaitGroup
}

// serve answers requests on a listener until close. It does not make the server ready.
func (w *web) serve(listener *limit.Connections, handler http.Handler, log *slog.Logger) {
	w.listener = listener
	w.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnState: listener.Watch,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server, coalesced := w.server, output.CoalesceWrites(w.server, listener)
	w.wg.Go(func() {
		if err := server.Serve(coalesced); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("serving HTTP ended", "error", err)
		}
	})
}

// flushTime is the time to write complete answers.
const flushTime = time.Second

// silentTime is how long a new connection may wait with its first request, as in net/http's Shutdown.
const silentTime = 5 * time.Second

// refuse refuses new connections and waits for most, at most, until the others have ended. Unlike close, which drops
// requests that have not been read, it closes none that was accepted, or waits for that, before its answer.
func (w *web) refuse(most time.Duration) {
	if l, ok := w.listener.Listener.(syscall.Conn); ok {
		awaitAccepted(l)
	}
	_ = w.listener.Close() // close does it again
	w.wg.Wait()            // all that were accepted are known
	w.server.SetKeepAlivesEnabled(false)
	for end := time.Now().Add(most); w.listener.Open() > 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// close ends the HTTP server and waits for it. Connections have that time to write complete answers.
func (w *web) close(flush time.Duration) (err error) {
	if w.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flush)
		defer cancel()
		if w.server.Shutdown(ctx) != nil {
			err = w.server.Close()
		}
	}
	w.wg.Wait()
	return err
}

// singles serves each server alone, at /servers/{name}/mcp. The set of servers may change.
type singles struct {
	app     *App
	edge    *edge.Edge
	surface func(server string) *proxy.Surface

	mu       sync.Mutex
	surfaces map[string]http.Handler // made at the first request
}

func newSingles(a *App, e *edge.Edge, surface func(server string) *proxy.Surface) *singles {
	return &singles{app: a, edge: e, surface: surface, surfaces: map[string]http.Handler{}}
}

// ServeHTTP implements http.Handler. Unknown servers and servers that the caller may not see get the same answer.
func (s *singles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !s.app.servers.Configured(name) {
		s.edge.Streamable(s.surface(name), nil).ServeHTTP(w, r)
		return
	}
	s.handler(name).ServeHTTP(w, r)
}

func (s *singles) handler(name string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.surfaces[name]
	if h == nil {
		h = s.edge.Streamable(s.surface(name), nil)
		s.surfaces[name] = h
	}
	return h
}

// scopesOf returns the scope of each profile.
func scopesOf(profiles map[string]config.Profile) (map[string]*auth.Scope, error) {
	scopes := make(map[string]*auth.Scope, len(profiles))
	for name, p := range profiles {
		scope, err := auth.NewScope(name, p.Limits())
		if err != nil {
			return nil, fmt.Errorf("profiles.%s: %w", name, err)
		}
		scopes[name] = scope
	}
	return scopes, nil
}

// mountProfiles serves each configured profile at /profiles/NAME/mcp. A caller may use there what both the profile and
// its key allow.
func mountProfiles(mux *http.ServeMux, a *App) {
	for name, scope := range a.scopes {
		var handler edge.Handler = a.frontend
		if a.opts.Config.Profiles[name].Surface == config.SurfaceProxy {
			handler = a.proxy.All()
		}
		mux.Handle("/profiles/"+name+"/mcp", a.edge.Streamable(handler, scope))
	}
}
