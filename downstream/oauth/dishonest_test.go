package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// party is a server that records all requests and answers with handle.
type party struct {
	*httptest.Server

	mu     sync.Mutex
	dumps  []string
	posts  int
	handle http.HandlerFunc
}

func newParty(t *testing.T) *party {
	p := &party{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		p.mu.Lock()
		p.dumps = append(p.dumps, fmt.Sprintf("%s %v", dump, err))
		if r.Method != http.MethodGet {
			p.posts++
		}
		handle := p.handle
		p.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// begin forgets what was recorded.
func (p *party) begin(handle http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dumps, p.posts, p.handle = nil, 0, handle
}

func (p *party) got() (all string, posts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.dumps, "\n\n"), p.posts
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// issuerAt is the metadata of an authorization server whose endpoints are at a base.
func issuerAt(issuer, base string) map[string]any {
	return map[string]any{
		"issuer": issuer, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
		"registration_endpoint": base + "/register", "revocation_endpoint": base + "/revoke",
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"offline_access"},
	}
}

// collector is an authorization server that takes everything from everybody.
func collector(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/register":
			answer(w, http.StatusCreated, map[string]string{"client_id": "collected"})
		case "/authorize":
			back := url.Values{"code": {"code"}, "state": {r.FormValue("state")}}
			http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+back.Encode(), http.StatusFound)
		case "/token":
			answer(w, http.StatusOK, map[string]any{"access_token": "t", "token_type": "Bearer", "refresh_token": "r"})
		default:
			answer(w, http.StatusOK, issuerAt(base, base))
		}
	}
}

// A server that somebody logged in to at an authorization server may say whatever it likes: with a client_id of that
// authorization server, no other party gets any request but to read metadata, and in no case gets it a secret.
func TestDishonestServer(t *testing.T) {
	honest := &mcptest.OAuth{Clients: map[string]string{"known": "", "robot": "s3cret"}}
	serve(t, honest)
	server, evil := newParty(t), newParty(t)
	resource := server.URL + "/mcp"
	rapid.Check(t, func(rt *rapid.T) {
		parties := []string{honest.URL, evil.URL, server.URL}
		server.begin(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
				answer(w, http.StatusOK, map[string]any{"resource": resource, "authorization_servers": parties[:1]})
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		})
		evil.begin(collector(evil.URL))
		s := oauth.Server{Name: "hr", URL: resource, Config: rapid.SampledFrom([]oauth.Config{
			{}, {ClientID: "known"}, {ClientID: "robot", ClientSecret: "s3cret"},
			{ClientID: "robot", ClientSecret: "s3cret", Flow: oauth.FlowClientCredentials},
			{ClientID: "known", Issuer: honest.URL}, {Issuer: honest.URL},
		}).Draw(rt, "config")}
		store := oauth.NewStore(t.TempDir())
		old, before := logIn(t, s, store), len(honest.Forms())

		challenge := rapid.SampledFrom([]string{
			"", "Bearer", `Bearer error="insufficient_scope", scope="admin"`,
			`Bearer error="insufficient_scope", scope="admin", resource_metadata="` + evil.URL + `/m"`,
			`Bearer resource_metadata="` + evil.URL + `/m"`, `Bearer scope="admin", resource_metadata="` + server.URL + `/m"`,
		}).Draw(rt, "challenge")
		status := rapid.SampledFrom([]int{401, 401, 403, 403, 307, 200}).Draw(rt, "status")
		about := rapid.SampledFrom([]string{resource, server.URL, evil.URL}).Draw(rt, "resource")
		named := rapid.SliceOfN(rapid.SampledFrom(parties), 0, 3).Draw(rt, "authorization servers")
		metadata := rapid.SampledFrom([]int{200, 200, 302, 404, 500}).Draw(rt, "status of the metadata")
		own := rapid.SampledFrom([]int{200, 302, 404}).Draw(rt, "status of its own issuer")
		issuer, base := rapid.SampledFrom(parties).Draw(rt, "issuer"), rapid.SampledFrom(parties).Draw(rt, "endpoints")
		server.begin(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.Header().Set("Location", evil.URL+r.URL.Path)
			switch path := r.URL.Path; {
			case path == "/mcp":
				w.WriteHeader(status)
			case strings.HasPrefix(path, "/.well-known/oauth-protected-resource"), path == "/m":
				answer(w, metadata, map[string]any{"resource": about, "authorization_servers": named})
			case strings.HasPrefix(path, "/.well-known/"):
				answer(w, own, issuerAt(issuer, base))
			default:
				collector(server.URL)(w, r)
			}
		})

		source := open(t, s, store, io.Discard)
		for _, left := range []time.Duration{time.Hour, -time.Second} {
			save(t, store, expired(old, left))
			_ = source.call() // fails in most cases
			source = open(t, s, store, io.Discard)
			_ = source.call()
		}
		if token, err := loginAnywhere(t.Context(), s, old); err == nil {
			right := strings.HasPrefix(token.Access, "access-")
			if right != (token.Issuer == honest.URL) || !right && s.ClientID != "" {
				rt.Errorf("got the token %s of %s, want it to be what it says", token.Access, token.Issuer)
			}
		}
		_, _ = oauth.Logout(t.Context(), s, store)

		for _, form := range honest.Forms()[before:] {
			if of := form.Get("resource"); of != resource && of != server.URL {
				rt.Errorf("got a token request for %s, which is another server", of)
			}
		}
		got, posts := evil.got()
		redirects := metadata == http.StatusFound || own == http.StatusFound
		if (posts > 0 || got != "" && !redirects) && (s.ClientID != "" || s.Issuer != "") {
			rt.Errorf("another party got:\n%s", got)
		}
		all, _ := server.got()
		for _, secret := range []string{"s3cret", old.Access, old.Refresh} {
			if secret == "" {
				continue
			}
			if strings.Contains(got, secret) || secret != old.Access && strings.Contains(all, secret) {
				rt.Errorf("a party that must not have it got %q:\n%s", secret, got+all)
			}
		}
	})
}

// loginAnywhere logs in, and gives up at a page that does not lead back.
func loginAnywhere(ctx context.Context, s oauth.Server, stored *oauth.Token) (*oauth.Token, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return oauth.Login(ctx, s, stored, func(page string) {
		resp, err := http.Get(page)
		if err != nil {
			cancel()
			return
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); !bytes.Contains(text, []byte("Thank you")) {
			cancel()
		}
	})
}
