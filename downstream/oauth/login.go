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
	found, err := discover(ctx, s, s.issuer(stored))
	if err != nil {
		return nil, err
	}
	// Each login has its own redirect URI, so that no response of another authorization server is accepted (RFC 9700
	// §4.4).
	back, err := listen()
	if err != nil {
		return nil, err
	}
	defer back.close()
	t := newToken(s, found)
	t.Scopes = wanted(s, found, stored)
	if t.Client.ID == "" {
		if t.Client, err = found.register(ctx, back.url(), t.Scopes); err != nil {
			return nil, err
		}
	}
	verifier := oauth2.GenerateVerifier()
	ask := oauth2.Config{
		ClientID: t.Client.ID, RedirectURL: back.url(), Scopes: t.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: found.meta.AuthorizationEndpoint},
	}
	address := ask.AuthCodeURL(
		back.state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", t.Resource))
	show(address)
	code, err := back.wait(ctx, found.meta)
	if err != nil {
		return nil, err
	}
	return t.request(ctx, found.guard, s, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back.url()}, "code_verifier": {verifier},
	})
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
	state    string
	answers  chan url.Values // the first response with the right state
}

func listen() (*redirect, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the browser: %w", err)
	}
	r := &redirect{listener: listener, served: make(chan struct{}), state: rand.Text(), answers: make(chan url.Values, 1)}
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
	query := req.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch {
	case req.URL.Path != callback || req.Method != http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		return
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(r.state)) != 1:
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

// wait returns the code once the browser has delivered it.
func (r *redirect) wait(ctx context.Context, meta issuerMetadata) (string, error) {
	var answer url.Values
	select {
	case answer = <-r.answers:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	// RFC 9207: the response must be from the authorization server of the request.
	issuer := answer.Get("iss")
	if issuer != meta.Issuer && (issuer != "" || meta.NamesIssuer) {
		return "", fmt.Errorf("the response is from issuer %.200q instead of %s; nothing was sent to either", issuer, meta.Issuer)
	}
	if code := answer.Get("error"); code != "" {
		return "", fmt.Errorf("%s refuses: %s", meta.Issuer, said(nil, code, answer.Get("error_description")))
	}
	if answer.Get("code") == "" {
		return "", errors.New("the browser returned without a code")
	}
	return answer.Get("code"), nil
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
