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
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Login gets a token for a server. With the flow code, show is called with the URL that a person has to open, and Login
// waits until that person is done or ctx ends. The token is not stored.
func Login(ctx context.Context, s Server, show func(url string)) (*Token, error) {
	if s.byCredentials() {
		return byCredentials(ctx, s)
	}
	found, err := discover(ctx, s)
	if err != nil {
		return nil, err
	}
	// The redirect is of this login alone, so that no other authorization server's answer comes here (RFC 9700 §4.4).
	back, err := listen()
	if err != nil {
		return nil, err
	}
	defer back.close()
	t := newToken(s, found)
	t.Scopes = wanted(s, found)
	if t.Client.ID == "" {
		if t.Client, err = register(ctx, found, back.url(), t.Scopes); err != nil {
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
	if u, err := url.Parse(address); err != nil || unsafeURL(u) != "" {
		return nil, fmt.Errorf("its authorization server names %.200q for logging in, which is no https URL", found.meta.AuthorizationEndpoint)
	}
	show(address)
	code, err := back.wait(ctx, found.meta)
	if err != nil {
		return nil, err
	}
	return t.request(ctx, found.guard, s, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back.url()}, "code_verifier": {verifier},
	})
}

// wanted returns the scopes to ask for: those of the configuration, else those that the server names and the one
// that makes a login last.
func wanted(s Server, found *site) []string {
	if len(s.Scopes) > 0 {
		return s.Scopes
	}
	const lasting = "offline_access"
	scopes := slices.Clone(found.scopes)
	if slices.Contains(found.meta.ScopesSupported, lasting) && !slices.Contains(scopes, lasting) {
		scopes = append(scopes, lasting)
	}
	return scopes
}

// register makes the router known to the authorization server (RFC 7591).
func register(ctx context.Context, found *site, redirect string, scopes []string) (client, error) {
	issuer := found.meta.Issuer
	if found.meta.RegistrationEndpoint == "" {
		return client{}, fmt.Errorf("%s registers no clients by itself; register one there, with a redirect to http://127.0.0.1 on any port, and set client_id",
			issuer)
	}
	got, err := oauthex.RegisterClient(ctx, found.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		ClientName: "AgenticNexus", Scope: strings.Join(scopes, " "),
	}, found.guard.client())
	if err == nil {
		return client{
			ID: got.ClientID, Secret: got.ClientSecret, Registered: true,
			InHeader: got.TokenEndpointAuthMethod == "" || got.TokenEndpointAuthMethod == "client_secret_basic",
		}, nil
	}
	var refused *oauthex.ClientRegistrationError
	var unreachable *url.Error
	switch {
	case errors.As(err, &refused):
		return client{}, fmt.Errorf("%s does not register the router: %s; register a client there and set client_id",
			issuer, said(refused.ErrorCode, refused.ErrorDescription))
	case errors.As(err, &unreachable):
		return client{}, fmt.Errorf("cannot reach %s to register: %w", host(found.meta.RegistrationEndpoint), unreachable.Err)
	}
	// The error may hold the whole answer, and with it a secret.
	return client{}, fmt.Errorf("%s does not register the router; register a client there and set client_id", issuer)
}

// redirect is where a browser comes back to with the code: a port of this machine, for one login.
type redirect struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	state    string
	answers  chan url.Values // the first one with the state
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

// ServeHTTP takes the browser's answer. What has not the state of this login is refused and changes nothing.
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
		_, _ = io.WriteString(w, "This is no answer to the login that is waiting.\n")
		return
	}
	select {
	case r.answers <- query:
		_, _ = io.WriteString(w, "Thank you. You can close this page; the terminal says whether the login succeeded.\n")
	default:
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "This login is already answered.\n")
	}
}

// wait returns the code, once the browser has brought it.
func (r *redirect) wait(ctx context.Context, meta *oauthex.AuthServerMeta) (string, error) {
	var answer url.Values
	select {
	case answer = <-r.answers:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	// RFC 9207: the answer is of the authorization server that was asked.
	issuer := answer.Get("iss")
	if issuer != meta.Issuer && (issuer != "" || meta.AuthorizationResponseIssParameterSupported) {
		return "", fmt.Errorf("the answer is of issuer %.200q and not of %s; nothing was sent to either", issuer, meta.Issuer)
	}
	if code := answer.Get("error"); code != "" {
		return "", fmt.Errorf("%s refuses: %s", meta.Issuer, said(code, answer.Get("error_description")))
	}
	if answer.Get("code") == "" {
		return "", errors.New("the browser came back without a code")
	}
	return answer.Get("code"), nil
}

// close ends the redirect and waits for it.
func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for the page in the browser
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		r.server.Close()
	}
	<-r.served
}
