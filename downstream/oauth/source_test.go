package oauth_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// caller makes requests to a server with the tokens of a Source.
type caller struct {
	t      *testing.T
	url    string
	source *oauth.Source
	http   http.RoundTripper
}

func open(t *testing.T, s oauth.Server, store oauth.Store, log io.Writer) *caller {
	t.Helper()
	source := oauth.NewSource(s, store, nil, slog.New(slog.NewTextHandler(log, nil)))
	base := &http.Transport{}
	t.Cleanup(func() { source.Close(); base.CloseIdleConnections() })
	return &caller{t, s.URL, source, source.Transport(base)}
}

func (c *caller) call() error { return c.callWithin(c.t.Context()) }

// callWithin pings the server. Its error is of the RoundTripper or says which status was answered.
func (c *caller) callWithin(ctx context.Context) error {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader([]byte(ping)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"result"`) {
		return errors.New(resp.Status + " " + string(body))
	}
	return nil
}

func (c *caller) must() {
	c.t.Helper()
	if err := c.call(); err != nil {
		c.t.Fatalf("got %v, want that the call succeeds", err)
	}
}

// refused calls and checks that a person is asked to do something.
func (c *caller) refused(want string) {
	c.t.Helper()
	err := c.call()
	var unauthorized *link.Unauthorized
	if !errors.As(err, &unauthorized) || !strings.Contains(err.Error(), want) {
		c.t.Fatalf("got %v, want a *link.Unauthorized with %q", err, want)
	}
}

// expired is a copy of a token that has ended, or ends in a moment.
func expired(t *oauth.Token, left time.Duration) *oauth.Token {
	own := *t
	own.Expires = time.Now().Add(left)
	own.Began = own.Expires.Add(-time.Hour)
	return &own
}

func save(t *testing.T, store oauth.Store, token *oauth.Token) {
	t.Helper()
	if err := store.Save(t.Context(), token); err != nil {
		t.Fatal(err)
	}
}

// Many requests at the end of a token renew it once, from two processes, too; the new refresh token is kept.
func TestSource_RenewsOnce(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	for round := 1; round <= 3; round++ {
		if round == 1 {
			logIn(t, s, store)
		}
		token, err := store.Load("hr")
		if err != nil {
			t.Fatal(err)
		}
		save(t, store, expired(token, -time.Second))
		one, other := open(t, s, store, io.Discard), open(t, s, store, io.Discard)
		var wg sync.WaitGroup
		for range 20 {
			for _, c := range []*caller{one, other} {
				wg.Go(func() {
					if err := c.call(); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if got := o.Count("refresh_token"); got != round || o.Count("reuse") != 0 {
			t.Fatalf("got %d renewals and %d refresh tokens used again, want %d and none", got, o.Count("reuse"), round)
		}
	}
	if o.Count("refused") > 1 {
		t.Errorf("got %d requests with a wrong token, want only the one that looks for metadata", o.Count("refused"))
	}
}

// A token is renewed ahead of its end, and a slow authorization server holds up nobody.
func TestSource_RenewsAhead(t *testing.T) {
	var slow atomic.Bool
	release := make(chan struct{})
	o := &mcptest.OAuth{OnToken: func(http.ResponseWriter, url.Values) bool {
		if slow.Load() {
			<-release
		}
		return false
	}}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	before := expired(logIn(t, s, store), time.Minute)
	save(t, store, before)
	slow.Store(true)
	c := open(t, s, store, io.Discard)
	for range 20 {
		c.must()
	}
	mcptest.Eventually(t, "it is renewed", func() bool { return o.Count("refresh_token") == 1 })
	if left, known := c.source.ExpiresIn(); !known || left > time.Minute {
		t.Errorf("got %v, %v, want the token that there was", left, known)
	}
	close(release)
	mcptest.Eventually(t, "the new token is there", func() bool { left, _ := c.source.ExpiresIn(); return left > time.Minute })
	c.must()
	if token, err := store.Load("hr"); err != nil || token.Access == before.Access || o.Count("refresh_token") != 1 {
		t.Errorf("got %v, %v and %d renewals", token, err, o.Count("refresh_token"))
	}
}

// A token that the server refuses is renewed, and the request is sent again whole.
func TestSource_Revoked(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	logIn(t, s, store)
	var log mcptest.Log
	c := open(t, s, store, &log)
	c.must()
	o.Forget(false)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := c.call(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := o.Count("refresh_token"); got != 1 {
		t.Errorf("got %d renewals, want one", got)
	}

	o.Forget(true)
	for range 5 {
		c.refused("run: nexus auth login hr")
	}
	if got := o.Count("refresh_token"); got != 2 {
		t.Errorf("got %d renewals, want one that is refused and no other", got)
	}
	if lines := log.Lines("nexus auth login hr"); len(lines) != 1 {
		t.Errorf("got the log %q, want one line that says what to do", log.String())
	}

	logIn(t, s, store) // elsewhere
	c.must()
	for _, form := range o.Forms() {
		if token := form.Get("refresh_token"); token != "" && strings.Contains(log.String(), token) {
			t.Error("a token is in the log")
		}
	}
}

// A server that refuses every token does not make the router ask for more and more.
func TestSource_RefusesEveryToken(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	logIn(t, s, store)
	o.OnToken = func(http.ResponseWriter, url.Values) bool { o.Forget(false); return false }
	c := open(t, s, store, io.Discard)
	c.must()
	o.Forget(false)
	c.http = c.source.Transport(refuser{})
	for range 10 {
		c.refused("it refuses its token")
	}
	if got := o.Count("refresh_token"); got != 1 {
		t.Errorf("got %d renewals, want one", got)
	}
}

// refuser answers 401.
type refuser struct{}

func (refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Body.Close()
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Header: http.Header{}, Request: req}, nil
}

// Who gives up does not wait for a slow authorization server; the renewal goes on for the others.
func TestSource_GivesUp(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	save(t, store, expired(logIn(t, s, store), -time.Second))
	asked, release := make(chan struct{}), make(chan struct{})
	o.OnToken = func(http.ResponseWriter, url.Values) bool {
		close(asked)
		<-release
		return false
	}
	c := open(t, s, store, io.Discard)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	go func() {
		<-asked
		cancel(stop)
	}()
	if err := c.callWithin(ctx); !errors.Is(err, stop) {
		t.Errorf("got %v, want the cause", err)
	}
	close(release)
	c.must()
	if got := o.Count("refresh_token"); got != 1 {
		t.Errorf("got %d renewals, want the one that was under way", got)
	}
}

// What passes is not a reason to log in again: the authorization server is asked later.
func TestSource_AuthorizationServerDown(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	token := logIn(t, s, store)
	o.OnToken = func(w http.ResponseWriter, _ url.Values) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	save(t, store, expired(token, -time.Second))
	c := open(t, s, store, io.Discard)
	const calls = 10
	for range calls {
		if err := c.call(); err == nil || errors.As(err, new(*link.Unauthorized)) || !strings.Contains(err.Error(), "503") {
			t.Fatalf("got %v, want an error that passes", err)
		}
	}
	if got := o.Count("refresh_token"); got == calls {
		t.Errorf("got %d renewals for as many calls, want pauses", got)
	}
	save(t, store, expired(token, time.Minute))
	c.must() // with what is left
}

// A token goes to no other URL than the one that it was got for, and to nobody after logging out.
func TestSource_BelongsToURL(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	logIn(t, s, store)
	moved := s
	moved.URL = o.URL + "/other"
	open(t, moved, store, io.Discard).refused("its configuration has changed")

	c := open(t, s, store, io.Discard)
	c.must()
	if _, err := oauth.Logout(t.Context(), s, store); err != nil {
		t.Fatal(err)
	}
	if !c.source.Changed() {
		t.Error("the change is not seen")
	}
	c.refused("nexus auth login hr")
}

func TestSource_ClientCredentials(t *testing.T) {
	o := &mcptest.OAuth{Clients: map[string]string{"robot": "right"}}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	s.Config = oauth.Config{ClientID: "robot", ClientSecret: "right", Flow: oauth.FlowClientCredentials, Scopes: []string{"a", "b"}}
	c := open(t, s, store, io.Discard)
	c.must()
	open(t, s, store, io.Discard).must()
	if forms := o.Forms(); len(forms) != 1 || forms[0].Get("scope") != "a b read" || forms[0].Get("resource") != s.URL {
		t.Errorf("got %v, want one request, with the scopes", forms)
	}
	o.Forget(false)
	c.must()
	if o.Count("client_credentials") != 2 {
		t.Errorf("got %d requests, want another one", o.Count("client_credentials"))
	}

	s.ClientSecret = "wrong"
	wrong := open(t, s, oauth.Store{}, io.Discard)
	for range 3 {
		wrong.refused("check the client_id, client_secret or private_key, and scopes")
	}
	if o.Count("client_credentials") != 3 {
		t.Errorf("got %d requests, want that a wrong secret is tried once", o.Count("client_credentials"))
	}
}

// A token that the server refuses before its end is not called expired.
func TestSource_RefusedAndNotRenewable(t *testing.T) {
	o := &mcptest.OAuth{Challenge: `Bearer error="invalid_token", error_description="wrong audience"`}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	token := *logIn(t, s, store)
	token.Refresh = ""
	save(t, store, &token)
	o.Forget(true)
	open(t, s, store, io.Discard).refused("it refuses its token, which cannot be renewed: invalid_token (wrong audience); run: nexus auth login hr")
	save(t, store, expired(&token, -time.Second))
	open(t, s, store, io.Discard).refused("its token has expired and cannot be renewed; run: nexus auth login hr")
}

// Tokens that are of no use end in an error.
func TestSource_UselessTokens(t *testing.T) {
	for _, answer := range []string{
		`{"access_token":"x","token_type":"Bearer","expires_in":-5}`, `{"access_token":"x","token_type":"DPoP"}`,
		`{"access_token":"a\nb","token_type":"Bearer"}`, `{"token_type":"Bearer"}`, `{`,
	} {
		o := &mcptest.OAuth{Clients: map[string]string{"robot": "right"}, OnToken: func(w http.ResponseWriter, _ url.Values) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
			return true
		}}
		s := serve(t, o)
		s.Config = oauth.Config{ClientID: "robot", ClientSecret: "right", Flow: oauth.FlowClientCredentials}
		if err := open(t, s, oauth.NewStore(t.TempDir()), io.Discard).call(); err == nil || o.Count("client_credentials") > 2 {
			t.Errorf("%s: got %v and %d requests, want an error and at most two", answer, err, o.Count("client_credentials"))
		}
	}
}

// A secret gets tokens also where none can be kept, or what is kept cannot be read.
func TestSource_ClientCredentialsWithoutFolder(t *testing.T) {
	o := &mcptest.OAuth{Clients: map[string]string{"robot": "right"}}
	s := serve(t, o)
	s.Config = oauth.Config{ClientID: "robot", ClientSecret: "right", Flow: oauth.FlowClientCredentials}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.MkdirAll(filepath.Join(broken, "tokens"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "tokens", "hr.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"", file, broken} {
		if s.Issuer = ""; state != "" { // which issuer gets the secret is not known
			open(t, s, oauth.NewStore(state), io.Discard).refused("token of server hr")
			s.Issuer = o.URL
		}
		c := open(t, s, oauth.NewStore(state), io.Discard)
		c.must()
		c.must()
		if got := o.Count("client_credentials"); got != i+1 {
			t.Errorf("state %q: got %d requests, want one for both calls", state, got-i)
		}
	}
}

// A secret goes to no other issuer than the configured one or that of the first login, also after a restart.
func TestSource_SecretBelongsToIssuer(t *testing.T) {
	const secret = "s3cr3t"
	evil := &mcptest.OAuth{Clients: map[string]string{"robot": secret}}
	serve(t, evil)
	named := ""
	o := &mcptest.OAuth{Clients: map[string]string{"robot": secret}, Resource: func(meta map[string]any) {
		if named != "" {
			meta["authorization_servers"] = []string{named}
		}
	}}
	for _, flow := range []string{oauth.FlowClientCredentials, oauth.FlowCode} {
		s, store := serve(t, o), oauth.NewStore(t.TempDir())
		s.Config = oauth.Config{ClientID: "robot", ClientSecret: secret, Flow: flow}
		token := logIn(t, s, store)
		named = evil.URL
		_, err := oauth.Login(t.Context(), s, token, browser(t))
		if err == nil || !strings.Contains(err.Error(), evil.URL) || !strings.Contains(err.Error(), o.URL) {
			t.Errorf("%s: got %v, want that another login is refused with both issuers", flow, err)
		}
		save(t, store, expired(token, -time.Second))
		if c := open(t, s, store, io.Discard); flow == oauth.FlowCode {
			c.must() // with the refresh token, at the issuer of the login
		} else {
			c.refused(evil.URL)
			c.refused(o.URL)
		}
		s.Issuer = o.URL
		if _, err = oauth.Login(t.Context(), s, nil, browser(t)); err == nil {
			t.Errorf("%s: a login at another than the configured issuer succeeds", flow)
		}
		s.Issuer = evil.URL // the old login is of no use, and its issuer does not get the secret
		if flow == oauth.FlowCode {
			open(t, s, store, io.Discard).refused("its configuration has changed")
		}
		if _, err := oauth.Logout(t.Context(), s, store); err != nil {
			t.Error(err)
		}
		named = ""
	}
	if forms := evil.Forms(); len(forms) != 0 {
		t.Errorf("another issuer got %v", forms)
	}
}

// A token of an older router that does not say where it is from is not used, and its secret goes nowhere.
func TestSource_TokenWithoutIssuer(t *testing.T) {
	o := &mcptest.OAuth{Clients: map[string]string{"robot": "right"}}
	for _, flow := range []string{oauth.FlowClientCredentials, oauth.FlowCode} {
		s, state := serve(t, o), t.TempDir()
		s.Config = oauth.Config{ClientID: "robot", ClientSecret: "right", Flow: flow}
		store := oauth.NewStore(state)
		token := *logIn(t, s, store)
		token.Issuer = ""
		save(t, store, expired(&token, -time.Second))
		before := len(o.Forms())
		open(t, s, store, io.Discard).refused("log in again")
		if len(o.Forms()) != before {
			t.Errorf("%s: got %v, want no token request", flow, o.Forms()[before:])
		}
		logIn(t, s, store)
		open(t, s, store, io.Discard).must()
	}
}

// Without a state folder the issuer is remembered while the process runs. A server may name further issuers beside it.
func TestSource_IssuerWithoutFolder(t *testing.T) {
	var named []string
	o := &mcptest.OAuth{Clients: map[string]string{"robot": "right"}, Resource: func(meta map[string]any) {
		if named != nil {
			meta["authorization_servers"] = named
		}
	}}
	other := &mcptest.OAuth{Clients: o.Clients}
	serve(t, other)
	s := serve(t, o)
	s.Config = oauth.Config{ClientID: "robot", ClientSecret: "right", Flow: oauth.FlowClientCredentials}
	c := open(t, s, oauth.Store{}, io.Discard)
	c.must()
	named = []string{other.URL, o.URL + "/"}
	o.Forget(false)
	c.must()
	named = []string{other.URL}
	o.Forget(false)
	c.refused(other.URL)
	if n := len(other.Forms()); n != 0 || o.Count("client_credentials") != 2 {
		t.Errorf("got %d requests at another issuer and %d at the first", n, o.Count("client_credentials"))
	}
}
