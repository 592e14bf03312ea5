package edge_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// tokenWire is a wire whose clients need tokens of an issuer, at a time that the test sets.
type tokenWire struct {
	*wire
	issuer *bearertest.Issuer
	clock  *bearertest.Clock
}

// bearer returns the header with a token that lasts a minute and the leeway.
func (w *tokenWire) bearer(c bearertest.Claims) header {
	claims := bearertest.Claims{"exp": w.clock.Now().Add(time.Minute).Unix()}
	for name, value := range c {
		claims[name] = value
	}
	return header{"Authorization": "Bearer " + w.issuer.Token(claims)}
}

func newTokenWire(t *testing.T, change func(*auth.Config, *edge.Options)) *tokenWire {
	t.Helper()
	w := &tokenWire{issuer: bearertest.New(t), clock: bearertest.NewClock()}
	cfg := auth.Config{OAuth: &auth.OAuthConfig{Issuer: w.issuer.URL, Audience: bearertest.Audience}}
	o := edge.Options{Heartbeat: 40 * time.Millisecond} // streams and sessions are looked at four times as often
	if change != nil {
		change(&cfg, &o)
	}
	var err error
	if o.Keys, err = auth.New(cfg, auth.Options{Now: w.clock.Now}); err != nil {
		t.Fatal(err)
	}
	w.wire = newWire(t, o)
	return w
}

// Refusals say what to do, as RFC 6750 and RFC 9728 have it, and are counted by cause.
func TestTokens(t *testing.T) {
	w := newTokenWire(t, func(c *auth.Config, _ *edge.Options) {
		c.OAuth.Scopes = []string{"mcp", "read"}
		c.OAuth.Claims = []auth.ClaimConfig{{Claim: "groups", Value: "a", Servers: []string{"a"}}}
	})
	good := bearertest.Claims{"scope": "mcp read", "groups": "a"}
	const where = `scope="mcp read", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	for _, row := range []struct {
		name, body string
		h          header
		status     int
		want       string // in the body
		challenge  string
	}{
		{"token", request("1", "seen", ""), w.bearer(good), 200, `"Caller":"oauth:` + w.issuer.URL + ` ann"`, ""},
		{"none", request("1", "seen", ""), nil, 401, "an access token is needed", `Bearer realm="agenticnexus", ` + where},
		{"none, initialize", initialize("2025-11-25"), nil, 401, "an access token is needed", `Bearer realm="agenticnexus", ` + where},
		{"none, ping", request("1", "ping", ""), nil, 401, "an access token is needed", `Bearer realm="agenticnexus", ` + where},
		{"none, batch", `[` + request("1", "ping", "") + `]`, nil, 401, "an access token is needed", `Bearer realm="agenticnexus", ` + where},
		{"none, notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 401, "needed", `Bearer realm="agenticnexus", ` + where},
		{"in _meta", request("1", "tools/call", `"api_key":"`+strings.TrimPrefix(w.bearer(good)["Authorization"], "Bearer ")+`"`), nil, 200, "Invalid API key", ""},
		{"in X-API-Key", request("1", "seen", ""), header{"X-API-Key": strings.TrimPrefix(w.bearer(good)["Authorization"], "Bearer ")}, 401, "not valid", `Bearer realm="agenticnexus", error="invalid_token", error_description="the API key is not valid", ` + where},
		{"expired", request("1", "seen", ""), w.bearer(bearertest.Claims{"exp": 1}), 401, "the token has expired", `Bearer realm="agenticnexus", error="invalid_token", error_description="the token has expired", ` + where},
		{"no scope", request("1", "seen", ""), w.bearer(bearertest.Claims{"groups": "a"}), 403, "lacks a required scope", `Bearer realm="agenticnexus", error="insufficient_scope", error_description="the token lacks a required scope", ` + where},
		{"no claim", request("1", "seen", ""), w.bearer(bearertest.Claims{"scope": "mcp read"}), 403, "no claim", ""},
	} {
		status, h, body := w.post(row.body, row.h)
		if status != row.status || !strings.Contains(body, row.want) {
			t.Errorf("%s: got %d %s, want %d and %s", row.name, status, body, row.status, row.want)
		}
		if got := h.Get("WWW-Authenticate"); got != row.challenge {
			t.Errorf("%s: got WWW-Authenticate %s, want %s", row.name, got, row.challenge)
		}
	}
	if refused, _ := w.edge.Losses(); refused["unauthorized"] != 8 || refused["insufficient"] != 2 || refused["unverified"] != 0 {
		t.Errorf("got refusals %v, want 8 unauthorized and 2 insufficient", refused)
	}
	for path, challenged := range map[string]string{"/sse": "/sse", "/mcp": "/mcp"} {
		resp := w.do(context.Background(), "GET", path, "", nil)
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || !strings.HasSuffix(got, challenged+`"`) {
			t.Errorf("GET %s: got %d, %s, want 401 and the metadata of %s", path, resp.StatusCode, got, challenged)
		}
	}
}

// With keys beside tokens, a client may still shake hands before it shows its key.
func TestTokensBesideKeys(t *testing.T) {
	w := newTokenWire(t, func(c *auth.Config, _ *edge.Options) { c.APIKeys = []auth.KeyConfig{{Name: "ann", Key: "key-ann"}} })
	for _, row := range []struct {
		body   string
		h      header
		status int
		want   string
	}{
		{initialize("2025-11-25"), nil, 200, "protocolVersion"},
		{request("1", "seen", `"api_key":"key-ann"`), nil, 200, `"Caller":"key:ann"`},
		{request("1", "seen", ""), w.bearer(nil), 200, `"Caller":"oauth:`},
		{request("1", "seen", ""), nil, 401, "an API key or an access token is needed"},
	} {
		if status, _, body := w.post(row.body, row.h); status != row.status || !strings.Contains(body, row.want) {
			t.Errorf("%s: got %d %s, want %d and %s", row.body, status, body, row.status, row.want)
		}
	}
}

// A token that cannot be checked is no wrong token: clients need not get another.
func TestIssuerOutOfReach(t *testing.T) {
	w := newTokenWire(t, nil)
	h := w.bearer(nil)
	w.issuer.Close()
	status, answer, body := w.post(request("1", "seen", ""), h)
	if status != 503 || answer.Get("Retry-After") == "" || answer.Get("WWW-Authenticate") != "" {
		t.Errorf("got %d %v %s, want 503 and when to retry", status, answer, body)
	}
	checkError(t, body, "null", -32000)
	if refused, _ := w.edge.Losses(); refused["unverified"] != 1 {
		t.Errorf("got refusals %v, want one unverified", refused)
	}
}

// A session belongs to the issuer's subject, whatever token it shows, and its streams end with its last token.
func TestSessionOfTokens(t *testing.T) {
	w := newTokenWire(t, func(c *auth.Config, _ *edge.Options) {
		c.OAuth.Claims = []auth.ClaimConfig{{Claim: "groups", Value: "a"}, {Claim: "groups", Value: "b", Servers: []string{"b"}}}
	})
	a := bearertest.Claims{"groups": "a"}
	_, h, _ := w.post(initialize("2025-11-25"), w.bearer(a))
	id := h.Get("Mcp-Session-Id")
	in := func(h header) header { return with(h, "Mcp-Session-Id", id) }
	seen := func(name string, h header, want int) {
		t.Helper()
		if status, _, body := w.post(request("1", "seen", ""), in(h)); status != want {
			t.Errorf("%s: got %d %s, want %d", name, status, body, want)
		}
	}
	stream := w.do(t.Context(), "GET", "/mcp", "", with(in(w.bearer(a)), "Accept", "text/event-stream"))
	sse := w.sse(w.bearer(a))
	if stream.StatusCode != 200 {
		t.Fatalf("GET: got %d, want a stream", stream.StatusCode)
	}
	w.clock.Pass(80 * time.Second)
	seen("a newer token", w.bearer(a), 200)
	seen("another subject", w.bearer(bearertest.Claims{"groups": "a", "sub": "bob"}), 404)
	w.clock.Pass(80 * time.Second) // the first token has expired
	if !w.edge.Send(id, []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`)) {
		t.Error("got no session after the first token, want the second to keep it")
	}
	if got := readEvents(t, stream.Body).message(); !strings.Contains(got, "notifications/x") {
		t.Errorf("got %s on the stream, want the notification", got)
	}
	w.clock.Pass(80 * time.Second) // and so have all
	_, _ = io.Copy(io.Discard, stream.Body)
	for {
		if _, open := sse.events.next(); !open {
			break
		}
	}
	seen("an expired token", header{"Authorization": "Bearer " + w.issuer.Token(bearertest.Claims{"exp": w.clock.Now().Add(-time.Minute).Unix(), "groups": "a"})}, 401)
	seen("a fresh token", w.bearer(a), 200)
	seen("a token with other rights", w.bearer(bearertest.Claims{"groups": "b"}), 200)
	w.clock.Pass(2 * time.Minute)
	seen("a token with other rights after the first", w.bearer(bearertest.Claims{"groups": "b"}), 200)
	seen("another subject, still", w.bearer(bearertest.Claims{"groups": "a", "sub": "bob"}), 404)
}

// A call that began in time ends as it would, also when its token has expired meanwhile.
func TestCallOutlivesItsToken(t *testing.T) {
	w := newTokenWire(t, nil)
	h := w.bearer(nil)
	_, opened, _ := w.post(initialize("2025-11-25"), h)
	session := with(h, "Mcp-Session-Id", opened.Get("Mcp-Session-Id"))
	resp := w.do(t.Context(), "POST", "/mcp", call("7", "notify-hold", "{}"), session)
	events := readEvents(t, resp.Body)
	events.message()
	w.clock.Pass(time.Hour)
	for range 5 { // looked at several times meanwhile
		if f, open := events.next(); !open || f.comment == "" && f.data == "" {
			t.Fatalf("got %+v, %t, want the call to go on", f, open)
		}
	}
	if status, _, _ := w.post(request("8", "seen", ""), session); status != 401 {
		t.Errorf("another call: got %d, want 401", status)
	}
}

// A request that listens for notifications ends when its token has expired, and not before.
func TestListenEndsWithItsToken(t *testing.T) {
	w := newTokenWire(t, nil)
	h := w.bearer(nil)
	_, opened, _ := w.post(initialize("2025-11-25"), h)
	for name, h := range map[string]header{"without a session": h, "session": with(h, "Mcp-Session-Id", opened.Get("Mcp-Session-Id"))} {
		resp := w.do(t.Context(), "POST", "/mcp", request("7", "listen", ""), h)
		events := readEvents(t, resp.Body)
		for range 3 { // looked at several times meanwhile
			if f, open := events.next(); !open || f.data != "" {
				t.Fatalf("%s: got %+v, %t, want the request to go on", name, f, open)
			}
		}
		w.clock.Pass(time.Hour)
		if got := events.message(); !strings.Contains(got, `"id":7,"result"`) {
			t.Errorf("%s: got %s, want its end", name, got)
		}
		w.clock.Pass(-time.Hour)
	}
}

func TestResourceMetadata(t *testing.T) {
	type metadata struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
		Methods  []string `json:"bearer_methods_supported"`
	}
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, row := range []struct {
		audience, path, proto, peer string
		want                        string // the resource; empty = 404
	}{
		{"https://mcp.example.com", "", "", "", "https://mcp.example.com"},
		{"https://mcp.example.com/", "/mcp", "", "", "https://mcp.example.com/mcp"},
		{"https://mcp.example.com", "/proxy/sse", "", "", "https://mcp.example.com/proxy/sse"},
		{"https://mcp.example.com", "/servers/hr/mcp", "", "", "https://mcp.example.com/servers/hr/mcp"},
		{"https://mcp.example.com/nexus", "/profiles/x/mcp", "", "", "https://mcp.example.com/nexus/profiles/x/mcp"},
		{"https://mcp.example.com/mcp", "", "", "", "https://mcp.example.com/mcp"},
		{"https://mcp.example.com/mcp", "/mcp", "", "", "https://mcp.example.com/mcp"},
		{"api://nexus", "/mcp", "", "192.0.2.1:1", "http://nexus.example.com/mcp"},
		{"api://nexus", "/mcp", "https", "10.1.2.3:1", "https://nexus.example.com/mcp"},
		{"api://nexus", "/mcp", "https", "192.0.2.1:1", "http://nexus.example.com/mcp"},
		{"https://mcp.example.com", "/", "", "", ""},
		{"https://mcp.example.com", "/ui/", "", "", ""},
		{"https://mcp.example.com", "/messages/", "", "", ""},
		{"https://mcp.example.com", "/servers/a\"b/mcp", "", "", ""},
	} {
		k, err := auth.New(auth.Config{OAuth: &auth.OAuthConfig{Issuer: "https://auth.example.com", Audience: row.audience, Scopes: []string{"mcp"}}}, auth.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := edge.New(edge.Options{Keys: k, TrustedProxies: proxies})
		r := httptest.NewRequest("GET", "http://nexus.example.com/.well-known/oauth-protected-resource", nil)
		r.URL.Path += row.path
		r.RemoteAddr = row.peer
		r.Header.Set("X-Forwarded-Proto", row.proto)
		w := httptest.NewRecorder()
		e.Access().ServeMetadata(w, r)
		stop(t, e)
		if row.want == "" {
			if w.Code != 404 {
				t.Errorf("%s: got %d %s, want 404", row.path, w.Code, w.Body)
			}
			continue
		}
		var got metadata
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d %s, want JSON", row.path, w.Code, w.Body)
		}
		if got.Resource != row.want || strings.Join(got.Issuers, " ") != "https://auth.example.com" || strings.Join(got.Scopes, " ") != "mcp" || strings.Join(got.Methods, " ") != "header" {
			t.Errorf("%s below %s: got %+v, want the resource %s", row.path, row.audience, got, row.want)
		}
	}
	e := edge.New(edge.Options{Keys: keys(t)})
	defer stop(t, e)
	w := httptest.NewRecorder()
	e.Access().ServeMetadata(w, httptest.NewRequest("GET", "http://127.0.0.1/.well-known/oauth-protected-resource", nil))
	if w.Code != 404 {
		t.Errorf("without oauth: got %d, want 404", w.Code)
	}
}
