package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// serve starts an authorization server before an MCP server, and returns the latter as it is configured.
func serve(t *testing.T, o *mcptest.OAuth) oauth.Server {
	t.Helper()
	t.Cleanup(mcptest.ServeOAuth(o, &mcptest.Server{Stateless: true}))
	return oauth.Server{Name: "hr", URL: o.URL + "/mcp"}
}

// browser opens pages as somebody who agrees to everything.
func browser(t *testing.T) func(address string) {
	return func(address string) {
		resp, err := http.Get(address)
		if err != nil {
			t.Errorf("opening the page: %v", err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Errorf("reading the page: %v", err)
		}
	}
}

// logIn logs in and stores the token.
func logIn(t *testing.T, s oauth.Server, store oauth.Store) *oauth.Token {
	t.Helper()
	stored, _ := store.Load(s.Name) // a login also replaces what cannot be read
	token, err := oauth.Login(t.Context(), s, stored, browser(t))
	if err != nil {
		t.Fatalf("logging in: %v", err)
	}
	if err := store.Save(t.Context(), token); err != nil {
		t.Fatalf("storing: %v", err)
	}
	return token
}

func TestLogin(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), filepath.Join(t.TempDir(), "state")
	var page string
	token, err := oauth.Login(t.Context(), s, nil, func(address string) { page = address; browser(t)(address) })
	if err != nil {
		t.Fatal(err)
	}
	if !token.Renewable() || !slices.Equal(token.Scopes, []string{"read"}) || !token.Of(s) {
		t.Errorf("got %+v, want a token that can be renewed, with the scope of the challenge", token)
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" || q.Get("resource") != s.URL || len(q.Get("state")) < 20 || q.Get("client_id") != "registered" {
		t.Errorf("got the page %s", page)
	}
	if forms := o.Forms(); len(forms) != 1 || forms[0].Get("resource") != s.URL || len(forms[0].Get("code_verifier")) < 43 {
		t.Errorf("got the token requests %v", forms)
	}
	if resp, err := http.Get(q.Get("redirect_uri")); err == nil {
		resp.Body.Close()
		t.Error("the redirect is served after the login")
	}
	if err := oauth.NewStore(state).Save(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(state, "tokens", "hr.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file of mode 0600", info, err)
	}
}

func TestLogin_ConfiguredClient(t *testing.T) {
	for _, methods := range [][]string{{"client_secret_basic"}, {"client_secret_post"}, nil} {
		o := &mcptest.OAuth{Clients: map[string]string{"known": "pass word&"}, Change: func(meta map[string]any) {
			meta["registration_endpoint"] = nil
			meta["token_endpoint_auth_methods_supported"] = methods
			meta["scopes_supported"] = []string{"offline_access"}
		}}
		s := serve(t, o)
		s.Config = oauth.Config{ClientID: "known", ClientSecret: "pass word&", Scopes: []string{"own"}}
		store := oauth.NewStore(t.TempDir())
		if token := logIn(t, s, store); !slices.Equal(token.Scopes, []string{"own", "read", "offline_access"}) {
			t.Errorf("methods %v: got the scopes %v, want those of the configuration and of the server", methods, token.Scopes)
		}
		for _, other := range []oauth.Config{{}, {ClientID: "other", ClientSecret: "pass word&"}, {ClientID: "known", ClientSecret: "x", Flow: oauth.FlowClientCredentials}} {
			changed := s
			changed.Config = other
			if token, err := store.Load("hr"); err != nil || token.Of(changed) {
				t.Errorf("got %v, %v, want that the token is not of %+v", token, err, other)
			}
		}
	}
}

// What an authorization server may not do, and that no code is sent anywhere then.
func TestLogin_Refuses(t *testing.T) {
	elsewhere := func(key, value string) func(map[string]any) {
		return func(meta map[string]any) { meta[key] = value }
	}
	for name, c := range map[string]struct {
		o    *mcptest.OAuth
		want string
	}{
		"issuer of another": {&mcptest.OAuth{Change: elsewhere("issuer", "https://evil.example")}, "does not match"},
		"no PKCE":           {&mcptest.OAuth{Change: func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }}, "S256"},
		"plain page":        {&mcptest.OAuth{Change: elsewhere("authorization_endpoint", "http://evil.example/a")}, "authorization_endpoint"},
		"script page":       {&mcptest.OAuth{Change: elsewhere("authorization_endpoint", "javascript:alert(1)")}, "authorization_endpoint"},
		"plain tokens":      {&mcptest.OAuth{Change: elsewhere("token_endpoint", "http://evil.example/t")}, "token_endpoint"},
		"other resource":    {&mcptest.OAuth{Resource: elsewhere("resource", "https://other.example/mcp")}, "metadata"},
		"metadata afar":     {&mcptest.OAuth{Challenge: `Bearer resource_metadata="https://evil.example/meta"`}, "not on the server itself"},
		"inside a network":  {&mcptest.OAuth{Resource: func(m map[string]any) { m["authorization_servers"] = []string{"https://169.254.169.254"} }}, "more private network"},
		"no server":         {&mcptest.OAuth{Resource: func(m map[string]any) { m["authorization_servers"] = nil }}, "names no authorization server"},
		"no registration":   {&mcptest.OAuth{Change: func(m map[string]any) { m["registration_endpoint"] = nil }}, "client_id"},
		"answer of another": {&mcptest.OAuth{Back: func(a url.Values) { a.Set("iss", "https://evil.example") }}, "issuer"},
		"answer of nobody":  {&mcptest.OAuth{Back: func(a url.Values) { a.Del("iss") }}, "issuer"},
		"a no": {&mcptest.OAuth{Back: func(a url.Values) {
			a.Del("code")
			a.Set("error", "access_denied")
		}}, "access_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.o)
			token, err := oauth.Login(t.Context(), s, nil, browser(t))
			if err == nil || !strings.Contains(err.Error(), c.want) || token != nil {
				t.Errorf("got %v, %v, want an error with %q", token, err, c.want)
			}
			if forms := c.o.Forms(); len(forms) > 0 {
				t.Errorf("got the token requests %v, want none", forms)
			}
		})
	}
}

// A server without any metadata has the default endpoints, and no other server has.
func TestLogin_DefaultEndpoints(t *testing.T) {
	const none = http.StatusNotFound
	for name, c := range map[string]struct {
		o      *mcptest.OAuth
		issuer string
		want   string // of the error; "" = it works
	}{
		"no metadata":              {&mcptest.OAuth{Challenge: "Bearer", NoSite: none, NoMeta: none}, "", ""},
		"a resource with metadata": {&mcptest.OAuth{Challenge: "Bearer", NoMeta: none}, "", "there is none"},
		"metadata named":           {&mcptest.OAuth{NoSite: none, NoMeta: none}, "", "its metadata cannot be used"},
		"metadata of another": {&mcptest.OAuth{Challenge: "Bearer", NoMeta: none,
			Resource: func(m map[string]any) { m["resource"] = "https://evil.example" }}, "", "there is none"},
		"in trouble":              {&mcptest.OAuth{Challenge: "Bearer", NoSite: none, NoMeta: http.StatusBadGateway}, "", "cannot be used"},
		"in trouble with all":     {&mcptest.OAuth{Challenge: "Bearer", NoSite: http.StatusBadGateway, NoMeta: none}, "", "there is none"},
		"another issuer is meant": {&mcptest.OAuth{Challenge: "Bearer", NoSite: none, NoMeta: none}, "https://a.example", "deals only with"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.o)
			s.Issuer = c.issuer
			token, err := oauth.Login(t.Context(), s, nil, browser(t))
			if c.want == "" {
				if err != nil || token.Issuer != c.o.URL {
					t.Fatalf("got %v, %v, want a token of the server itself", token, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.o.Count("register")+c.o.Count("authorize")+len(c.o.Forms()) > 0 {
				t.Errorf("got %v, %v, want an error with %q and no request to an endpoint", token, err, c.want)
			}
		})
	}
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	open := oauth.Server{Name: "hr", URL: nothing.URL + "/mcp"}
	if _, err := oauth.Login(t.Context(), open, nil, browser(t)); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("got %v, want that a server that wants no token has no default endpoints", err)
	}
}

// A server that has moved to another authorization server: what the old one gave stays there.
func TestLogin_NewAuthorizationServer(t *testing.T) {
	const page = "https://client.example/metadata.json"
	for name, c := range map[string]struct {
		config oauth.Config
		want   string // of the login's error; "" = it works
	}{
		"registered":      {oauth.Config{}, ""},
		"metadata page":   {oauth.Config{ClientID: page}, ""},
		"known client":    {oauth.Config{ClientID: "known"}, "run nexus auth logout hr and log in again"},
		"with its secret": {oauth.Config{ClientID: "secret", ClientSecret: "s3cret"}, "run nexus auth logout hr and log in again"},
	} {
		t.Run(name, func(t *testing.T) {
			clients := map[string]string{"known": "", page: "", "secret": "s3cret"}
			next := &mcptest.OAuth{Clients: clients}
			serve(t, next)
			var moved atomic.Bool
			o := &mcptest.OAuth{Clients: clients, Resource: func(meta map[string]any) {
				if moved.Load() {
					meta["authorization_servers"] = []string{next.URL}
				}
			}}
			s, store := serve(t, o), oauth.NewStore(t.TempDir())
			s.Config = c.config
			old := logIn(t, s, store)
			moved.Store(true)
			o.Forget(true) // the server takes no token of the old one
			caller := open(t, s, store, io.Discard)
			caller.refused("run: nexus auth login hr")
			if got := next.Forms(); len(got) > 0 {
				t.Errorf("got the token requests %v at the new one before a login", got)
			}
			token, err := oauth.Login(t.Context(), s, old, browser(t))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || len(next.Forms()) > 0 {
					t.Errorf("got %v, %v and the requests %v, want an error with %q and none", token, err, next.Forms(), c.want)
				}
				return
			}
			if err != nil || token.Issuer != next.URL || c.config.ClientID == "" && next.Count("register") != 1 {
				t.Errorf("got %v, %v and %d registrations, want a login at the new one", token, err, next.Count("register"))
			}
			if got := fmt.Sprint(next.Forms()); strings.Contains(got, old.Refresh) || strings.Contains(got, old.Access) {
				t.Errorf("got the token requests %s, with a token of the old one", got)
			}
		})
	}
}

// An answer without the state of the login changes nothing: the login goes on waiting.
func TestLogin_WrongState(t *testing.T) {
	o := &mcptest.OAuth{Back: func(a url.Values) { a.Set("state", "guessed") }}
	s := serve(t, o)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	_, err := oauth.Login(ctx, s, nil, func(address string) {
		resp, err := http.Get(address)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("got status %d for a wrong state, want 400", resp.StatusCode)
		}
		cancel(stop)
	})
	if !errors.Is(err, stop) || len(o.Forms()) > 0 {
		t.Errorf("got %v and %v, want that the login waits until it is stopped", err, o.Forms())
	}
}

// What an authorization server says, or echoes, does not carry secrets into errors.
func TestLogin_NoSecretInErrors(t *testing.T) {
	const sent = "s3cr3t-of-the-client"
	o := &mcptest.OAuth{OnToken: func(w http.ResponseWriter, form url.Values) bool {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, form.Encode()+sent)
		return true
	}, Clients: map[string]string{"known": sent}}
	s := serve(t, o)
	s.Config = oauth.Config{ClientID: "known", ClientSecret: sent, Flow: oauth.FlowClientCredentials}
	_, err := oauth.Login(t.Context(), s, nil, nil)
	if err == nil || strings.Contains(err.Error(), sent) || !strings.Contains(err.Error(), "400") {
		t.Errorf("got %v, want the status and no secret", err)
	}
	s.Flow = ""
	_, err = oauth.Login(t.Context(), s, nil, browser(t))
	if err == nil || strings.Contains(err.Error(), sent) || strings.Contains(err.Error(), "code-") {
		t.Errorf("got %v, want neither code nor secret", err)
	}
}

func TestLogout(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	if known, err := oauth.Logout(t.Context(), s, store); known || err != nil {
		t.Errorf("without a token: got %v, %v", known, err)
	}
	logIn(t, s, store)
	if known, err := oauth.Logout(t.Context(), s, store); !known || err != nil || o.Count("revoke") != 2 {
		t.Errorf("got %v, %v and %d revocations, want two", known, err, o.Count("revoke"))
	}
	if token, err := store.Load("hr"); token != nil || err != nil {
		t.Errorf("got %v, %v after logging out", token, err)
	}

	o.Change = func(meta map[string]any) { meta["revocation_endpoint"] = o.URL + "/nowhere" }
	logIn(t, s, store)
	if known, err := oauth.Logout(t.Context(), s, store); !known || err == nil {
		t.Errorf("got %v, %v, want that it says that nothing was revoked", known, err)
	}
	if token, _ := store.Load("hr"); token != nil {
		t.Error("the token is not deleted")
	}
}
