package oauth_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// openID serves an OpenID provider and, behind it, an MCP server that wants a token with the claims that are needed.
// Everybody who comes to log in is the same user.
func openID(t *testing.T, needs func() (scope, claim string)) oauth.Server {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	issuer := server.URL
	kept := storage.NewStorageWithClients(storage.NewUserStore(issuer), map[string]*storage.Client{
		"native": storage.NativeClient("native", "http://127.0.0.1/callback"),
	})
	provider, err := op.NewProvider(&op.Config{CodeMethodS256: true, GrantTypeRefreshToken: true}, kept,
		op.StaticIssuer(issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/", provider)
	mux.HandleFunc("/login/username", func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("authRequestID")
		if err := kept.CheckUsernamePassword("test-user2", "verysecure", id); err != nil {
			t.Error(err)
		}
		http.Redirect(w, r, issuer+"/authorize/callback?id="+id, http.StatusFound)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q],"scopes_supported":["openid","profile"]}`, issuer+"/mcp", issuer)
	})
	next := &mcptest.Server{Stateless: true}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		user := userinfo(t, issuer, r.Header.Get("Authorization"))
		switch scope, claim := needs(); {
		case user == nil:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		case user[claim] == nil:
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
			w.WriteHeader(http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
	return oauth.Server{Name: "hr", URL: issuer + "/mcp", Config: oauth.Config{ClientID: "native"}}
}

// userinfo asks a provider about the token of a request; nil if it is not valid.
func userinfo(t *testing.T, issuer, authorization string) (user map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, issuer+"/userinfo", http.NoBody)
	if err != nil {
		t.Error(err)
		return nil
	}
	req.Header.Set("Authorization", authorization)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(&user); err != nil {
			t.Error(err)
		}
	}
	return user
}

// The whole life of a login at an OpenID provider of others: it is found, logged in to, renewed, asked for more, and
// logged out of.
func TestOpenIDProvider(t *testing.T) {
	scope, claim := "profile", "name"
	s, store := openID(t, func() (string, string) { return scope, claim }), oauth.NewStore(t.TempDir())
	first := logIn(t, s, store)
	if want := []string{"openid", "profile", "offline_access"}; !slices.Equal(first.Scopes, want) || first.Refresh == "" {
		t.Errorf("got %v and the scopes %v, want a token that can be renewed, with %v", first, first.Scopes, want)
	}
	open(t, s, store, io.Discard).must()

	save(t, store, expired(first, -time.Second))
	caller := open(t, s, store, io.Discard)
	caller.must()
	renewed, err := store.Load("hr")
	if err != nil || renewed.Access == first.Access || renewed.Refresh == first.Refresh {
		t.Fatalf("got %v, %v, want new tokens", renewed, err)
	}

	scope, claim = "email", "email"
	caller.refused("lacks one of the scopes email; run: nexus auth login hr --scope email")
	scope, claim = "profile", "name"
	caller.must() // the refresh token that was refused is still good
	more := s
	more.Scopes = []string{"email"}
	if widened := logIn(t, more, store); !slices.Contains(widened.Scopes, "profile") {
		t.Errorf("got the scopes %v, want those before, too", widened.Scopes)
	}
	scope, claim = "email", "email"
	caller.must()

	last, err := store.Load("hr")
	if err != nil {
		t.Fatal(err)
	}
	if known, err := oauth.Logout(t.Context(), s, store); !known || err != nil {
		t.Errorf("logging out: got %v, %v", known, err)
	}
	if user := userinfo(t, strings.TrimSuffix(s.URL, "/mcp"), "Bearer "+last.Access); user != nil {
		t.Errorf("got the user %v with a token that was revoked, want none", user)
	}
	save(t, store, expired(last, -time.Second))
	caller.refused("its token cannot be renewed")
}

// A service of an OpenID provider gets its token without a person.
func TestOpenIDProvider_ClientCredentials(t *testing.T) {
	s := openID(t, func() (string, string) { return "", "" })
	s.Config = oauth.Config{ClientID: "sid1", ClientSecret: "verysecret", Flow: oauth.FlowClientCredentials}
	token, err := oauth.Login(t.Context(), s, nil, nil)
	if err != nil || token.Access == "" || token.Issuer == "" {
		t.Fatalf("got %v, %v, want a token", token, err)
	}
	s.ClientSecret = "wrong"
	if token, err := oauth.Login(t.Context(), s, nil, nil); err == nil || !strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("got %v, %v with a wrong secret, want the error of the provider", token, err)
	}
}
