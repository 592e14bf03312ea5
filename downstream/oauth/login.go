package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
)

// Login gets a token for a server. With the flow code, it calls show with the URL that a person has to open and waits
// until the login is complete or ctx ends. stored is the token of the login before, nil if there is none. Login does
// not store the new one.
func Login(ctx context.Context, s Server, stored *Token, show func(url string)) (*Token, error) {
	if s.byCredentials() {
		return byCredentials(ctx, s, s.issuer(stored), nil)
	}
	// Each login has its own redirect URI, so that no response of another authorization server is accepted (RFC 9700
	// §4.4).
	back, err := listen()
	if err != nil {
		return nil, err
	}
	defer back.close()
	p, err := Begin(ctx, s, stored, back.url())
	if err != nil {
		return nil, err
	}
	back.state.Store(&p.State)
	show(p.URL)
	select {
	case answer := <-back.answers:
		return p.Finish(ctx, answer)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Pending is a login that waits for a person. It is immutable.
type Pending struct {
	URL   string // that the person opens
	State string // of the response; unguessable

	server      Server
	issuer      string
	namesIssuer bool
	token       *Token // without the results of a request
	back        string
	verifier    string
}

// Begin prepares the login of a person whose browser returns to the address back, which is of s alone. stored is the
// token of the login before, nil if there is none.
func Begin(ctx context.Context, s Server, stored *Token, back string) (*Pending, error) {
	found, err := discover(ctx, s, s.issuer(stored))
	if err != nil {
		return nil, err
	}
	t := newToken(s, found)
	t.Scopes = wanted(s, found, stored)
	if t.Client.ID == "" {
		if t.Client, err = found.register(ctx, back, t.Scopes); err != nil {
			return nil, err
		}
	}
	p := &Pending{
		State: rand.Text(), server: s, issuer: found.meta.Issuer, namesIssuer: found.meta.NamesIssuer, token: t, back: back,
		verifier: oauth2.GenerateVerifier(),
	}
	ask := oauth2.Config{
		ClientID: t.Client.ID, RedirectURL: back, Scopes: t.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: found.meta.AuthorizationEndpoint},
	}
	p.URL = ask.AuthCodeURL(
		p.State, oauth2.S256ChallengeOption(p.verifier), oauth2.SetAuthURLParam("resource", t.Resource))
	return p, nil
}

// Finish requests the token with the authorization response, whose state the caller has checked. It does not store it.
func (p *Pending) Finish(ctx context.Context, answer url.Values) (*Token, error) {
	// RFC 9207: the response must be from the authorization server of the request.
	issuer := answer.Get("iss")
	if issuer != p.issuer && (issuer != "" || p.namesIssuer) {
		return nil, fmt.Errorf("the response is from issuer %.200q instead of %s; nothing was sent to either", issuer, p.issuer)
	}
	if code := answer.Get("error"); code != "" {
		return nil, fmt.Errorf("%s refuses: %s", p.issuer, said(nil, code, answer.Get("error_description")))
	}
	if answer.Get("code") == "" {
		return nil, errors.New("the browser returned without a code")
	}
	g, err := newGuard(ctx, p.server.URL)
	if err != nil {
		return nil, err
	}
	t, err := p.token.request(ctx, g, p.server, url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {p.back},
		"code_verifier": {p.verifier},
	})
	if err == nil {
		t.Since = t.Began
	}
	return t, err
}

// wanted returns the scopes to request: those of the configuration, those that the server names, those of the login
// before at the same authorization server, and offline_access if supported.
func wanted(s Server, found *site, stored *Token) []string {
	var held, lasting []string
	if stored != nil && stored.Of(s) && sameIssuer(stored.Issuer, found.meta.Issuer) {
		held = stored.Scopes
	}
	if offline := "offline_access"; slices.Contains(found.meta.ScopesSupported, offline) {
		lasting = []string{offline}
	}
	return union(s.Scopes, found.scopes, held, lasting)
}

// redirect is the redirect URI of one login: a local port that receives the authorization code from the browser.
type redirect struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	state    atomic.Pointer[string] // nil until the login has begun
	answers  chan url.Values        // the first response with the right state
}

func listen() (*redirect, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the browser: %w", err)
	}
	r := &redirect{listener: listener, served: make(chan struct{}), answers: make(chan url.Values, 1)}
	const most = 10 * time.Second
	r.server = &http.Server{Handler: r, ReadTimeout: most, WriteTimeout: most, MaxHeaderBytes: 32 << 10}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(listener) // it ends with close
	}()
	return r, nil
}

const callback = "/callback"

func (r *redirect) url() string { return "http://" + r.listener.Addr().String() + callback }

// ServeHTTP receives the authorization response. A response without the state of this login is refused and ignored.
func (r *redirect) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	query, state := req.URL.Query(), r.state.Load()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch {
	case req.URL.Path != callback || req.Method != http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		return
	case state == nil || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(*state)) != 1:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "This response does not belong to the pending login.\n")
		return
	}
	select {
	case r.answers <- query:
		_, _ = io.WriteString(w, "Thank you. You can close this page; the terminal says whether the login succeeded.\n")
	default:
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "This login has already received a response.\n")
	}
}

// close ends the redirect and waits for it.
func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // time to deliver the last page
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		r.server.Close()
	}
	<-r.served
}
