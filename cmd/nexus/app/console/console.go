// Package console is the page /ui/ for operators and the JSON interface behind it.
//
// [New] makes the handler of /ui/. A [Journal] writes the history that the page shows. Requests have already passed
// the authentication of the ops paths. A viewer sees the servers and tools that its key allows, and its own queries,
// calls and sessions; an operator sees those of all callers. A key without limits may switch servers and approve tools.
// The page sends questions and calls tools as an MCP client of /ui/mcp, which is /mcp behind the authentication of
// browsers.
//
// Handlers are safe for concurrent use. Requests and event streams are bounded in total and per caller. A client that
// does not read is disconnected. Close ends the streams.
package console

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// files are the page.
//
//go:embed page
var files embed.FS

// Viewer is the sender of a request for the page.
type Viewer struct {
	Caller   auth.Caller
	Visible  downstream.Visible // nil = all servers and tools
	Known    bool               // it has a valid key, or comes from this machine
	Operator bool               // it sees the queries, calls and sessions of all callers
}

// sees reports whether the viewer may see the queries, calls and sessions of a caller.
func (v Viewer) sees(caller string) bool { return v.Operator || caller == v.Caller.ID }

// Options of a Console. All but Pins are required.
type Options struct {
	Router  *router.Router
	Servers *downstream.Manager
	Edge    *edge.Edge
	Journal *Journal
	Pins    *pins.Store // nil = off
	Config  config.Settings
	Viewer  func(r *http.Request) Viewer
	MCP     http.Handler // /ui/mcp

	InForce func() config.Config // what reloads have changed, and the rest as it was at the start
	Explain Explain
	Edit    Edit

	// Switch enables or disables a server on behalf of by. The error means that the switch will not survive a restart, or
	// is an ErrNotSwitched.
	Switch func(server string, enabled bool, by string) error

	// Restart replaces the sessions and the process of a server on behalf of by.
	Restart func(ctx context.Context, server, by string)

	// Drain lets a replica hand its sessions over on behalf of by. nil = the router runs alone.
	Drain func(ctx context.Context, replica, by string) error
}

// Console serves /ui/.
type Console struct {
	opts     Options
	mux      http.ServeMux
	requests *places
	streams  *places
	refused  refusals
	page     http.Handler
	quit     chan struct{} // closed to end the streams
	close    sync.Once
}

// New makes a Console.
func New(o Options) *Console {
	c := &Console{opts: o, requests: newPlaces(128, 32), streams: newPlaces(64, 16), quit: make(chan struct{})}
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is valid
	}
	c.page = http.FileServerFS(page)
	for path, h := range map[string]func(w http.ResponseWriter, r *http.Request, v Viewer){
		"GET /ui/api/now":                     c.now,
		"GET /ui/api/servers":                 c.servers,
		"POST /ui/api/servers":                func(w http.ResponseWriter, r *http.Request, v Viewer) { addServer(c, w, r, v) },
		"POST /ui/api/servers/{name}":         c.switchServer,
		"POST /ui/api/servers/{name}/remove":  func(w http.ResponseWriter, r *http.Request, v Viewer) { removeServer(c, w, r, v) },
		"POST /ui/api/servers/{name}/restart": func(w http.ResponseWriter, r *http.Request, v Viewer) { restart(c, w, r, v) },
		"GET /ui/api/servers/{name}/stderr":   func(w http.ResponseWriter, r *http.Request, v Viewer) { stderr(c, w, r, v) },
		"GET /ui/api/servers/{name}/changes":  c.changes,
		"POST /ui/api/servers/{name}/approve": c.approve,
		"GET /ui/api/tools":                   c.tools,
		"GET /ui/api/tool":                    c.tool,
		"GET /ui/api/queries":                 c.queries,
		"GET /ui/api/queries/{id}":            c.query,
		"GET /ui/api/sessions":                c.sessions,
		"GET /ui/api/models":                  c.models,
		"GET /ui/api/access":                  func(w http.ResponseWriter, r *http.Request, v Viewer) { access(c, w, r, v) },
		"POST /ui/api/explain":                func(w http.ResponseWriter, r *http.Request, v Viewer) { explain(c, w, r, v) },
		"POST /ui/api/keys":                   func(w http.ResponseWriter, r *http.Request, v Viewer) { createKey(c, w, r, v) },
		"POST /ui/api/keys/{name}/revoke":     func(w http.ResponseWriter, r *http.Request, v Viewer) { revokeKey(c, w, r, v) },
		"GET /ui/api/blocks/{block...}":       func(w http.ResponseWriter, r *http.Request, v Viewer) { block(c, w, r, v) },
		"POST /ui/api/blocks/{block...}":      func(w http.ResponseWriter, r *http.Request, v Viewer) { replaceBlock(c, w, r, v) },
		"POST /ui/api/replicas/{name}/drain":  c.opts.drain,
	} {
		c.mux.Handle(path, own(func(w http.ResponseWriter, r *http.Request) {
			v := o.Viewer(r)
			c.requests.within(w, v.Caller.ID, func() {
				out := http.NewResponseController(w)
				_ = out.SetWriteDeadline(time.Now().Add(readTime))
				h(w, r, v)
				_ = out.SetWriteDeadline(time.Time{}) // the connection serves others
			})
		}))
	}
	c.mux.Handle("GET /ui/api/events", own(func(w http.ResponseWriter, r *http.Request) {
		v := o.Viewer(r)
		c.streams.within(w, v.Caller.ID, func() { c.events(w, r, v) })
	}))
	c.mux.Handle("/ui/mcp", own(o.MCP.ServeHTTP))
	c.mux.HandleFunc("/ui/", c.file)
	return c
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// Close ends the streams of events.
func (c *Console) Close() { c.close.Do(func() { close(c.quit) }) }

// policy lets the page load its own files, show images of results, and talk to its own origin, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file serves a file of the page.
func (c *Console) file(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "want GET")
		return
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	http.StripPrefix("/ui/", c.page).ServeHTTP(w, r)
}

// own refuses requests of other web pages, because a browser adds the password to them, too.
func own(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			fail(w, http.StatusForbidden, "requests of other pages are refused")
			return
		}
		h(w, r)
	})
}

func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true // not a browser
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// maxBody bounds what the page posts, in bytes.
const maxBody = 64 << 10

// read decodes the body of a POST. It must be JSON, which the forms of other pages cannot send.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.Header.Get("Content-Type") != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
		return false
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit))
		return false
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "the body is not JSON of the expected form")
		return false
	}
	return true
}

// reply writes JSON.
func reply(w http.ResponseWriter, value any) { replyWith(w, http.StatusOK, value) }

func fail(w http.ResponseWriter, status int, message string) {
	replyWith(w, status, map[string]string{"error": message})
}

func replyWith(w http.ResponseWriter, status int, value any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}

// refusals remembers when the edge last refused a request.
type refusals struct {
	mu    sync.Mutex
	count int
	at    time.Time
}

// since returns the number of refused requests, and the time of the last change that was noticed.
func (f *refusals) since(count int) (int, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if count != f.count {
		f.count, f.at = count, time.Now()
	}
	return f.count, f.at
}

// visibleServers returns the servers that a viewer may see, in the order of the configuration.
func (c *Console) visibleServers(v Viewer) []string {
	return slices.DeleteFunc(c.opts.Servers.Servers(), func(name string) bool {
		return v.Visible != nil && !v.Visible(name, "")
	})
}
