// Package logins serves the pages on which callers log in to servers (auth: {scope: per_caller}).
//
// The address of a page is no secret and gives no rights: who opens it shows the key or token of a caller first, and
// logs in for that caller alone. So a page that somebody else has sent cannot make a person log in for another caller
// (MCP 2025-11-25, elicitation, URL mode: phishing). The login then belongs to that caller and to that browser, which
// has a cookie. Its state is unguessable and serves once, within loginTime.
//
// A login is pending at one replica of a cluster: at the one that the address of the page names, where the call is that
// lacks the login, else where the form arrives. The cookie names it, and other replicas pass the browser on.
package logins

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Bounds of pending logins.
const (
	loginTime  = 5 * time.Minute
	maxPending = 1000
	maxPerUser = 5
	maxForm    = 64 << 10 // bytes
	maxReason  = 300      // characters
)

// Options of New. All are required.
type Options struct {
	Keys    *auth.Keys
	Store   oauth.Store
	Servers Servers
	Edge    *edge.Edge
	Logger  *slog.Logger
}

// Servers are those that callers log in to. A caller is auth.Caller.Login.
type Servers interface {
	// LoginAt returns a server as a caller logs in to it; ok is false for others.
	LoginAt(name, caller string) (s oauth.Server, ok bool)
	// LoginEnded tells that a caller has logged in, or why not.
	LoginEnded(name, caller string, why error)
}

// Pages are the pages of all servers. They are safe for concurrent use.
type Pages struct {
	Options
	foreign *http.CrossOriginProtection

	mu      sync.Mutex
	pending map[*pending]struct{}
}

// pending is a login that has begun. Only its login is set later.
type pending struct {
	server  string
	caller  auth.Caller
	browser string // the cookie: the home of the login, ".", and a secret
	until   time.Time
	login   *oauth.Pending // nil while it is prepared
}

// New returns the pages.
func New(o Options) *Pages {
	return &Pages{Options: o, foreign: http.NewCrossOriginProtection(), pending: map[*pending]struct{}{}}
}

// Mount adds the pages to a mux, guarded against foreign hosts.
func (p *Pages) Mount(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	page := edge.LoginPath + "{server}"
	mux.Handle("GET "+page, guard(http.HandlerFunc(p.ask)))
	mux.Handle("POST "+page, guard(http.HandlerFunc(p.begin)))
	mux.Handle("GET "+page+callback, guard(http.HandlerFunc(p.finish)))
	at := edge.LoginPath + edge.LoginAt + "/{home}/{server}"
	mux.Handle("GET "+at, guard(http.HandlerFunc(p.ask)))
	mux.Handle("POST "+at, guard(http.HandlerFunc(p.begin)))
}

const callback = "/callback"

//go:embed page.html
var files embed.FS

// page is parsed when it is first shown.
var page = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(files, "page.html")) })

// view is what a page shows.
type view struct {
	Title, Text string
	Form        bool // asks for a key or token
}

func show(w http.ResponseWriter, status int, v view) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // without any, a browser on http sends the form with Origin: null
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = page().Execute(w, v) // the browser may be gone
}

// ask asks for the key or token of a caller. It does not tell which servers there are.
func (p *Pages) ask(w http.ResponseWriter, r *http.Request) {
	show(w, http.StatusOK, view{Title: "Log in to " + name(r), Form: true,
		Text: "Enter the API key or access token that your MCP client uses at this router. It tells whose login this is, " +
			"and goes nowhere else."})
}

func name(r *http.Request) string { return texts.Line(r.PathValue("server"), 100) }

// begin sends the browser of a caller to the authorization server.
func (p *Pages) begin(w http.ResponseWriter, r *http.Request) {
	again := func(status int, text string) {
		show(w, status, view{Title: "Log in to " + name(r), Text: text, Form: true})
	}
	if err := p.foreign.Check(r); err != nil {
		again(http.StatusForbidden, "Another site has sent this form. Enter the key here.")
		return
	}
	var form url.Values
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err == nil {
		form, err = url.ParseQuery(string(body))
	}
	if err != nil {
		again(http.StatusBadRequest, "The form cannot be read.")
		return
	}
	server := r.PathValue("server")
	caller, present, refused := p.identify(r.Context(), form.Get("key"), server)
	switch {
	case refused != nil:
		again(refused.Status, "Refused: "+refused.Text+".")
		return
	case !present || caller.Login == "":
		again(http.StatusUnauthorized, "An API key or an access token is needed.")
		return
	case edge.PassOn(p.Edge, w, r, r.PathValue("home"), body):
		return
	}
	s, ok := p.Servers.LoginAt(server, caller.Login)
	if !ok || !caller.MaySee(server) {
		again(http.StatusNotFound, "There is no such server that "+caller.Name+" can log in to.")
		return
	}
	secret := edge.Home(p.Edge) + "." + rand.Text()
	begun := &pending{server: server, caller: caller, browser: secret, until: time.Now().Add(loginTime)}
	if !p.enter(begun) {
		again(http.StatusTooManyRequests, "Too many logins have begun. Finish one, or wait some minutes.")
		return
	}
	back := p.back(r, server)
	stored, _ := p.Store.For(caller.Login).Load(server) // a login also replaces what cannot be read
	login, err := oauth.Begin(r.Context(), s, stored, back)
	if err != nil {
		p.leave(begun)
		p.failed(begun, err)
		again(http.StatusBadGateway, "The login cannot begin: "+texts.Line(err.Error(), maxReason))
		return
	}
	p.mu.Lock()
	begun.login = login
	p.mu.Unlock()
	setCookie(w, back, begun.browser, int(loginTime.Seconds()))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, login.URL, http.StatusSeeOther)
}

// back returns the URL to which the authorization server sends the browser back.
func (p *Pages) back(r *http.Request, server string) string {
	return edge.PublicURL(p.Edge, r) + edge.LoginPath + server + callback
}

// identify returns the caller of the key or token that is shown. A token for one MCP endpoint has to be for one that
// has the server.
func (p *Pages) identify(
	ctx context.Context, key, server string,
) (c auth.Caller, present bool, refused *auth.Refusal) {
	shown := http.Header{"Authorization": {"Bearer " + strings.TrimSpace(key)}}
	for _, path := range []string{"/mcp", "/proxy/mcp", "/sse", "/proxy/sse", "/servers/" + server + "/mcp"} {
		if c, present, refused = p.Keys.Authenticate(ctx, shown, path); refused == nil {
			break
		}
	}
	return c, present, refused
}

const cookie = "nexus-login"

// setCookie sets the cookie of a login for its page.
func setCookie(w http.ResponseWriter, back, value string, seconds int) {
	u, err := url.Parse(back)
	if err != nil {
		return // the login then fails
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookie, Value: value, Path: u.Path, MaxAge: seconds, HttpOnly: true, Secure: u.Scheme == "https",
		SameSite: http.SameSiteLaxMode, // sent when the authorization server sends the browser back
	})
}

// finish receives the authorization response.
func (p *Pages) finish(w http.ResponseWriter, r *http.Request) {
	server, answer := r.PathValue("server"), r.URL.Query()
	browser := ""
	if c, err := r.Cookie(cookie); err == nil {
		browser = c.Value
	}
	if home, _, _ := strings.Cut(browser, "."); edge.PassOn(p.Edge, w, r, home, nil) {
		return
	}
	found := p.take(server, answer.Get("state"), browser)
	if found == nil {
		show(w, http.StatusBadRequest, view{Title: "No login to " + name(r),
			Text: "This response belongs to no login that this browser has begun within the last minutes. Nothing was stored."})
		return
	}
	setCookie(w, p.back(r, server), "", -1)
	if err := p.store(r.Context(), found, answer); err != nil {
		p.failed(found, err)
		show(w, http.StatusBadGateway, view{Title: "Not logged in to " + server, Text: texts.Line(err.Error(), maxReason)})
		return
	}
	p.Logger.Info("a caller has logged in to a server", "server", server, "caller", found.caller.Name)
	p.Servers.LoginEnded(server, found.caller.Login, nil)
	show(w, http.StatusOK, view{Title: "Logged in to " + server,
		Text: "The router uses this login for " + found.caller.Name + " alone. You can close this page."})
}

// store gets the token of a login and stores it, if its caller still may use the server, which is still the same.
func (p *Pages) store(ctx context.Context, l *pending, answer url.Values) error {
	current := func() (oauth.Server, bool) {
		now, valid := l.caller.Now()
		s, ok := p.Servers.LoginAt(l.server, l.caller.Login)
		return s, valid && ok && now.MaySee(l.server)
	}
	gone := errors.New("its key or token, or the server, is not valid any more")
	if _, ok := current(); !ok {
		return gone
	}
	token, err := l.login.Finish(ctx, answer)
	if err != nil {
		return err
	}
	switch s, ok := current(); {
	case !ok:
		return gone
	case !token.Of(s):
		return errors.New("the server has changed meanwhile; log in again")
	}
	token.Caller = texts.Line(l.caller.Name, maxReason)
	return p.Store.For(l.caller.Login).Save(ctx, token)
}

// failed tells the calls that wait for a login why there is none.
func (p *Pages) failed(l *pending, err error) {
	p.Logger.Warn("a caller cannot log in to a server", "server", l.server, "caller", l.caller.Name, "error", err)
	p.Servers.LoginEnded(l.server, l.caller.Login, errors.New("the login has failed: "+texts.Line(err.Error(), maxReason)))
}

// enter adds a login unless there are too many.
func (p *Pages) enter(l *pending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, same := time.Now(), 0
	for other := range p.pending {
		switch {
		case now.After(other.until):
			delete(p.pending, other)
		case other.caller.Login == l.caller.Login:
			same++
		}
	}
	if len(p.pending) >= maxPending || same >= maxPerUser {
		return false
	}
	p.pending[l] = struct{}{}
	return true
}

func (p *Pages) leave(l *pending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, l)
}

// take removes and returns the login of a state, if it is of this server and browser; else it returns nil.
func (p *Pages) take(server, state, browser string) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.pending {
		if l.login != nil && l.server == server && same(l.login.State, state) {
			if time.Now().After(l.until) || !same(l.browser, browser) {
				return nil
			}
			delete(p.pending, l)
			return l
		}
	}
	return nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
