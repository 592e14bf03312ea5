package mcptest

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// OAuth is an authorization server and, at /mcp and /sse, the gate before a server that takes its tokens. Everybody who
// comes to log in, as the person in a cookie or somebody, agrees. Refresh tokens count once. Fields are set before it
// serves.
type OAuth struct {
	URL string // of both

	Lifetime  time.Duration                                     // of access tokens; 0 = an hour
	Clients   map[string]string                                 // secrets by id; others register
	Keys      map[string]crypto.PublicKey                       // by id of clients that sign instead
	KeyID     string                                            // of all keys; empty = they have none
	Change    func(meta map[string]any)                         // of the metadata of the authorization server
	Resource  func(meta map[string]any)                         // and of the protected resource
	Challenge string                                            // of a 401; empty = the metadata and a scope
	NoSite    int                                               // status instead of the metadata of the protected resource
	NoMeta    int                                               // and of that of the authorization server
	OnToken   func(w http.ResponseWriter, form url.Values) bool // sees each token request; true = has answered it
	Back      func(answer url.Values)                           // changes what the browser brings back
	Needs     func(r *http.Request) (scopes string)             // of a request to the server; "" = none
	Widens    func(scopes string) (granted string)              // what a refresh gives that asks for more; nil = an error

	state oauthState
}

// oauthState is what an OAuth has given away, and what has happened.
type oauthState struct {
	mu      sync.Mutex
	last    int
	codes   map[string]url.Values // authorization requests
	access  map[string]grant
	refresh map[string]grant
	used    map[string]bool // refresh tokens and statements
	counts  map[string]int
	forms   []url.Values // of token requests
}

// grant is what a token stands for.
type grant struct{ client, user, scope string }

// ServeOAuth serves o before next.
func ServeOAuth(o *OAuth, next http.Handler) (end func()) {
	o.state.codes, o.state.access, o.state.refresh = map[string]url.Values{}, map[string]grant{}, map[string]grant{}
	o.state.used, o.state.counts = map[string]bool{}, map[string]int{}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	o.URL = server.URL
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", o.resource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", o.metadata)
	mux.HandleFunc("POST /register", o.register)
	mux.HandleFunc("GET /authorize", o.authorize)
	mux.HandleFunc("POST /token", o.token)
	mux.HandleFunc("POST /revoke", o.revoke)
	gate := o.gate(next)
	for _, path := range []string{"/mcp", "/sse", "/"} {
		mux.Handle(path, gate)
	}
	return server.Close
}

// Count returns how often something happened: a grant_type, "reuse", "register", "revoke", "authorize" or "refused".
func (o *OAuth) Count(what string) int {
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	return o.state.counts[what]
}

// Forms returns the token requests.
func (o *OAuth) Forms() []url.Values {
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	return slices.Clone(o.state.forms)
}

// Forget makes all access tokens invalid, and the refresh tokens too if all is set.
func (o *OAuth) Forget(all bool) {
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	clear(o.state.access)
	if all {
		clear(o.state.refresh)
	}
}

func (o *OAuth) count(what string) {
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	o.state.counts[what]++
}

func (o *OAuth) resource(w http.ResponseWriter, _ *http.Request) {
	if o.NoSite != 0 {
		w.WriteHeader(o.NoSite)
		return
	}
	meta := map[string]any{
		"resource": o.URL + "/mcp", "authorization_servers": []string{o.URL}, "scopes_supported": []string{"read"},
	}
	if o.Resource != nil {
		o.Resource(meta)
	}
	writeJSON(w, http.StatusOK, meta)
}

func (o *OAuth) metadata(w http.ResponseWriter, _ *http.Request) {
	if o.NoMeta != 0 {
		w.WriteHeader(o.NoMeta)
		return
	}
	meta := map[string]any{
		"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token",
		"registration_endpoint": o.URL + "/register", "revocation_endpoint": o.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true,
	}
	if o.Change != nil {
		o.Change(meta)
	}
	maps.DeleteFunc(meta, func(_ string, v any) bool { return v == nil })
	writeJSON(w, http.StatusOK, meta)
}

func (o *OAuth) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	o.count("register")
	asked["client_id"] = "registered"
	writeJSON(w, http.StatusCreated, asked)
}

// authorize sends the browser back with a code at once.
func (o *OAuth) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" || q.Get("response_type") != "code" {
		http.Error(w, "wrong request", http.StatusBadRequest)
		return
	}
	o.state.mu.Lock()
	o.state.counts["authorize"]++
	o.state.last++
	code := fmt.Sprintf("code-%d", o.state.last)
	q.Set("user", "somebody")
	if c, err := r.Cookie("person"); err == nil {
		q.Set("user", c.Value)
	}
	o.state.codes[code] = q
	o.state.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {o.URL}}
	if o.Back != nil {
		o.Back(answer)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

func (o *OAuth) token(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.state.mu.Lock()
	o.state.forms = append(o.state.forms, r.PostForm)
	o.state.counts[r.PostForm.Get("grant_type")]++
	o.state.mu.Unlock()
	if o.OnToken != nil && o.OnToken(w, r.PostForm) {
		return
	}
	g, wrong := o.granted(r)
	if wrong != "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": wrong, "error_description": "it is not good"})
		return
	}
	lifetime := o.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	o.state.last++
	access, refresh := fmt.Sprintf("access-%d", o.state.last), fmt.Sprintf("refresh-%d", o.state.last)
	o.state.access[access] = g
	answer := map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(lifetime.Seconds()), "scope": g.scope,
	}
	if r.PostForm.Get("grant_type") != "client_credentials" {
		o.state.refresh[refresh] = g
		answer["refresh_token"] = refresh
	}
	writeJSON(w, http.StatusOK, answer)
}

// granted checks a token request.
func (o *OAuth) granted(r *http.Request) (g grant, wrong string) {
	form := r.PostForm
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	id, known := o.client(r)
	if !known {
		return g, "invalid_client"
	}
	if form.Get("resource") == "" {
		return g, "invalid_target"
	}
	switch form.Get("grant_type") {
	case "client_credentials":
		return grant{id, id, form.Get("scope")}, ""
	case "authorization_code":
		asked := o.state.codes[form.Get("code")]
		delete(o.state.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if asked == nil || asked.Get("client_id") != id || asked.Get("redirect_uri") != form.Get("redirect_uri") ||
			asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			return g, "invalid_grant"
		}
		return grant{id, asked.Get("user"), asked.Get("scope")}, ""
	case "refresh_token":
		token := form.Get("refresh_token")
		g, known := o.state.refresh[token]
		if scopes := form.Get("scope"); !covers(g.scope, scopes) {
			if o.Widens == nil {
				return g, "invalid_scope" // the refresh token stays good
			}
			g.scope = o.Widens(scopes)
		}
		delete(o.state.refresh, token)
		if o.state.used[token] {
			o.state.counts["reuse"]++
		}
		o.state.used[token] = true
		if !known || g.client != id {
			return g, "invalid_grant"
		}
		return g, ""
	}
	return g, "unsupported_grant_type"
}

// client returns who makes a request, and whether that is so. The caller holds the lock.
func (o *OAuth) client(r *http.Request) (id string, known bool) {
	id, secret, basic := r.BasicAuth()
	if basic {
		secret, _ = url.QueryUnescape(secret) // what is not escaped is wrong
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	if key := o.Keys[id]; key != nil {
		return id, secret == "" && o.signed(r.PostForm, id, key)
	}
	want, known := o.Clients[id]
	return id, want == secret && (known || id == "registered")
}

// signed reports whether a form has a new statement by a client for this server (RFC 7523).
func (o *OAuth) signed(form url.Values, id string, key crypto.PublicKey) bool {
	var claims jwt.RegisteredClaims
	statement, err := jwt.ParseWithClaims(form.Get("client_assertion"), &claims, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithIssuer(id), jwt.WithSubject(id), jwt.WithAudience(o.URL), jwt.WithExpirationRequired())
	if kid, _ := statement.Header["kid"].(string); err == nil && kid != o.KeyID {
		return false
	}
	if err != nil || claims.ID == "" || o.state.used[claims.ID] || len(claims.Audience) != 1 ||
		form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
		return false
	}
	o.state.used[claims.ID] = true
	return true
}

func (o *OAuth) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what is no form revokes nothing
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	if id, known := o.client(r); !known && o.Keys[id] != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	o.state.counts["revoke"]++
	delete(o.state.access, r.PostForm.Get("token"))
	delete(o.state.refresh, r.PostForm.Get("token"))
	w.WriteHeader(http.StatusOK)
}

// gate lets requests with a token through, and tells next by X-User whose it is.
func (o *OAuth) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		o.state.mu.Lock()
		g, known := o.state.access[token]
		if !known {
			o.state.counts["refused"]++
		}
		o.state.mu.Unlock()
		if !known {
			challenge := o.Challenge
			if challenge == "" {
				challenge = fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="read"`, o.URL)
			}
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if o.Needs != nil {
			if scopes := o.Needs(r); !covers(g.scope, scopes) {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scopes+`"`)
				w.WriteHeader(http.StatusForbidden)
				return
			}
		}
		r.Header.Set("X-User", g.user)
		next.ServeHTTP(w, r)
	})
}

// covers reports whether scopes are all held.
func covers(held, scopes string) bool {
	return !slices.ContainsFunc(strings.Fields(scopes), func(scope string) bool {
		return !slices.Contains(strings.Fields(held), scope)
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has left
}
