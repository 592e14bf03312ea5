package auth_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
)

// keysOf returns the keys of a configuration.
func keysOf(t *testing.T, c auth.Config, o auth.Options) *auth.Keys {
	t.Helper()
	k, err := auth.New(c, o)
	if err != nil {
		t.Fatalf("New: got %v, want no error", err)
	}
	return k
}

func bearerOf(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func TestNewRefusesOAuth(t *testing.T) {
	good := auth.OAuthConfig{Issuer: "https://auth.example.com", Audience: "x"}
	for want, change := range map[string]func(*auth.OAuthConfig){
		"want the URL of the issuer":   func(c *auth.OAuthConfig) { c.Issuer = "" },
		"http is for loopback only":    func(c *auth.OAuthConfig) { c.Issuer = "http://auth.example.com" },
		"want the audience":            func(c *auth.OAuthConfig) { c.Audience = "" },
		"without user, query":          func(c *auth.OAuthConfig) { c.Audience = "https://mcp.example.com/?x" },
		"claims[0] needs a claim":      func(c *auth.OAuthConfig) { c.Claims = []auth.ClaimConfig{{Value: "x"}} },
		"claims[0] needs a claim and ": func(c *auth.OAuthConfig) { c.Claims = []auth.ClaimConfig{{Claim: "x"}} },
		`"[" is malformed`: func(c *auth.OAuthConfig) {
			c.Claims = []auth.ClaimConfig{{Claim: "x", Value: "y", Tools: auth.Filter{Deny: []string{"["}}}}
		},
	} {
		c := good
		change(&c)
		if _, err := auth.New(auth.Config{OAuth: &c}, auth.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// A token may use what any of its claims allows, and nothing without one.
func TestClaims(t *testing.T) {
	issuer := bearertest.New(t)
	k := keysOf(t, auth.Config{OAuth: &auth.OAuthConfig{
		Issuer: issuer.URL, Audience: bearertest.Audience, Scopes: []string{"mcp", "read"},
		Claims: []auth.ClaimConfig{
			{Claim: "groups", Value: "staff", Servers: []string{"hr"}, Tools: auth.Filter{Deny: []string{"hr__delete_*"}}},
			{Claim: "groups", Value: "admin", Servers: []string{"hr"}},
			{Claim: "realm_access.roles", Value: "search", Tools: auth.Filter{Allow: []string{"search__*"}}},
			{Claim: "https://example.com/team", Value: "ops"},
			{Claim: "scope", Value: "mail", Servers: []string{"mail"}},
			{Claim: "verified", Value: "true", Servers: []string{"files"}},
		},
	}}, auth.Options{})
	roles := func(names ...string) map[string]any { return map[string]any{"roles": names} }
	for _, row := range []struct {
		name   string
		claims bearertest.Claims
		may    string // of hr__get hr__delete_x search__web mail__send files__read
		status int
	}{
		{"a group", bearertest.Claims{"groups": []string{"x", "staff"}}, "hr__get", 0},
		{"a group as text", bearertest.Claims{"groups": "staff"}, "hr__get", 0},
		{"two groups", bearertest.Claims{"groups": []string{"staff", "admin"}}, "hr__get hr__delete_x", 0},
		{"within another claim", bearertest.Claims{"realm_access": roles("search")}, "search__web", 0},
		{"of two claims", bearertest.Claims{"realm_access": roles("search"), "groups": "staff"}, "hr__get search__web", 0},
		{"a claim with dots", bearertest.Claims{"https://example.com/team": "ops"}, "hr__get hr__delete_x search__web mail__send files__read", 0},
		{"a scope", bearertest.Claims{"scope": "read mail mcp"}, "mail__send", 0},
		{"scp as a list", bearertest.Claims{"scope": nil, "scp": []string{"mcp", "read"}, "groups": "staff"}, "hr__get", 0},
		{"scp as words", bearertest.Claims{"scope": nil, "scp": "mcp read", "groups": "staff"}, "hr__get", 0},
		{"a boolean", bearertest.Claims{"verified": true}, "files__read", 0},
		{"no claim", nil, "", 403},
		{"another value", bearertest.Claims{"groups": []string{"staf", "Staff", "staff,admin"}}, "", 403},
		{"a part of the path", bearertest.Claims{"realm_access": "search", "roles": "search"}, "", 403},
		{"odd types", bearertest.Claims{"groups": []any{1, nil, []any{"staff"}, map[string]any{"staff": true}}, "realm_access": []any{}}, "", 403},
		{"words are of scopes only", bearertest.Claims{"groups": "staff admin"}, "", 403},
		{"a scope is missing", bearertest.Claims{"scope": "mcp", "groups": "staff"}, "", 403},
		{"no scope", bearertest.Claims{"scope": nil, "groups": "staff"}, "", 403},
	} {
		claims := bearertest.Claims{"scope": "mcp read"}
		for name, value := range row.claims {
			claims[name] = value
		}
		c, present, refused := k.Authenticate(t.Context(), bearerOf(issuer.Token(claims)), "/mcp")
		if row.status != 0 {
			if !present || refused == nil || refused.Status != row.status || c.MaySee("hr") {
				t.Errorf("%s: got %+v, want status %d", row.name, refused, row.status)
			}
			continue
		}
		if refused != nil || c.ID != "oauth:"+issuer.URL+" ann" || c.Name != "ann" || c.Anonymous {
			t.Errorf("%s: got %+v, %+v, want ann", row.name, c, refused)
			continue
		}
		var may []string
		for _, name := range []string{"hr__get", "hr__delete_x", "search__web", "mail__send", "files__read"} {
			server, tool, _ := strings.Cut(name, "__")
			if c.MayUse(server, tool) {
				may = append(may, name)
			}
			if strings.Contains(row.may, server) != c.MaySee(server) {
				t.Errorf("%s: got %s seen: %t", row.name, server, c.MaySee(server))
			}
		}
		if got := strings.Join(may, " "); got != row.may {
			t.Errorf("%s: got %s, want %s", row.name, got, row.may)
		}
		if want := row.name != "a claim with dots"; c.Restricted() != want {
			t.Errorf("%s: got restricted %t, want %t", row.name, c.Restricted(), want)
		}
	}
}

// Tokens count in Authorization alone, and beside API keys.
func TestWhereTokensCount(t *testing.T) {
	issuer := bearertest.New(t)
	oauth := &auth.OAuthConfig{Issuer: issuer.URL, Audience: bearertest.Audience}
	k := keysOf(t, auth.Config{OAuth: oauth, APIKeys: []auth.KeyConfig{{Name: "key", Key: "a.b.c"}}}, auth.Options{})
	ann, bob := issuer.Token(nil), issuer.Token(bearertest.Claims{"sub": "bob"})
	for _, row := range []struct {
		name, who, text string
		h               http.Header
	}{
		{"token", "ann", "", bearerOf(ann)},
		{"key", "key", "", bearerOf("a.b.c")},
		{"the same twice", "ann", "", http.Header{"Authorization": {"Bearer " + ann, "bearer  " + ann}}},
		{"two of one holder", "ann", "", http.Header{"Authorization": {"Bearer " + ann, "Bearer " + issuer.Token(bearertest.Claims{"jti": "2"})}}},
		{"two holders", "", "not valid", http.Header{"Authorization": {"Bearer " + ann, "Bearer " + bob}}},
		{"token and key", "", "not valid", http.Header{"Authorization": {"Bearer " + ann}, "X-Api-Key": {"a.b.c"}}},
		{"token as a key", "", "API key is not valid", http.Header{"X-Api-Key": {ann}}},
		{"token as a key, too", "ann", "", http.Header{"Authorization": {"Bearer " + ann}, "X-Api-Key": {ann}}},
		{"wrong key", "", "API key is not valid", bearerOf("abc")},
		{"wrong token", "", "malformed", bearerOf("x.y.z")},
		{"another scheme", "", "", http.Header{"Authorization": {"DPoP " + ann}}},
	} {
		c, present, refused := k.Authenticate(t.Context(), row.h, "/mcp")
		switch {
		case row.text != "" && (refused == nil || refused.Status != 401 || refused.Code != "invalid_token" || !strings.Contains(refused.Text, row.text)):
			t.Errorf("%s: got %+v, want it refused with %q", row.name, refused, row.text)
		case row.text == "" && (refused != nil || c.Name != row.who || present != (row.who != "")):
			t.Errorf("%s: got %q, %+v, want %q", row.name, c.Name, refused, row.who)
		}
	}
	if _, ok := k.Identify(ann); ok {
		t.Error("Identify: got a token accepted as a key")
	}
	if !k.Required() || !keysOf(t, auth.Config{OAuth: oauth}, auth.Options{}).Required() {
		t.Error("Required: got false, want tokens to be needed")
	}
}

func TestAudiences(t *testing.T) {
	issuer := bearertest.New(t)
	const base = "https://mcp.example.com"
	for _, row := range []struct{ audience, good, bad string }{
		{base, base + " " + base + "/ " + base + "/mcp " + base + "/sse " + base + "/proxy/mcp " + base + "/proxy/sse " + base + "/servers/a_b-1/mcp " + base + "/profiles/x/mcp",
			"https://mcp.example.com.evil.com https://other.example.com/mcp http://mcp.example.com " + base + "/x " + base + "/mcp/x " + base + "/servers//mcp " + base + "/servers/a/b/mcp " + base + "/proxy/servers/a/mcp " + base + "/messages/ " + base + "/proxy/proxy/mcp " + base + "mcp"},
		{base + "/", base + " " + base + "/ " + base + "/mcp", base + "/x"},
		{base + "/mcp", base + "/mcp " + base + "/mcp/", base + " " + base + "/proxy/mcp " + base + "/mcp/mcp"},
		{base + "/router/servers/hr/mcp", base + "/router/servers/hr/mcp", base + "/router " + base + "/router/mcp"},
		{base + "/router", base + "/router " + base + "/router/mcp", base + " " + base + "/mcp"},
		{"api://nexus", "api://nexus", "api://nexus/mcp api://nexus/ " + base},
		{"nexus", "nexus", "Nexus nexus/mcp"},
	} {
		k := keysOf(t, auth.Config{OAuth: &auth.OAuthConfig{Issuer: issuer.URL, Audience: row.audience}}, auth.Options{})
		for audiences, want := range map[string]bool{row.good: true, row.bad: false} {
			for audience := range strings.FieldsSeq(audiences) {
				got := opens(t, k, issuer.Token(bearertest.Claims{"aud": audience}))
				if (got != "") != want {
					t.Errorf("%s: got a token for %s accepted at %q, want that anywhere: %t", row.audience, audience, got, want)
				}
			}
		}
	}
}

// opens returns the paths where a token is accepted.
func opens(t *testing.T, k *auth.Keys, token string) string {
	t.Helper()
	var open []string
	for _, path := range []string{
		"/mcp", "/sse", "/messages", "/messages/", "/proxy/mcp", "/proxy/sse", "/proxy/messages/", "/servers/hr/mcp",
		"/servers/HR/mcp", "/servers/a_b-1/mcp", "/profiles/hr/mcp", "/profiles/x/mcp", "/healthz", "/metrics", "/ui/", "/ui/mcp",
		"/MCP", "/mcp/", "",
	} {
		if _, _, refused := k.Authenticate(t.Context(), bearerOf(token), path); refused == nil {
			open = append(open, path)
		} else if refused.Status != http.StatusUnauthorized || !strings.Contains(refused.Text, "another audience") {
			t.Errorf("at %s: got %+v", path, refused)
		}
	}
	return strings.Join(open, " ")
}

// A token for one endpoint opens that endpoint, and no other path.
func TestAudienceOfEndpoint(t *testing.T) {
	issuer := bearertest.New(t)
	const base = "https://mcp.example.com/router"
	all := "/mcp /sse /messages /messages/ /proxy/mcp /proxy/sse /proxy/messages/ /servers/hr/mcp /servers/HR/mcp " +
		"/servers/a_b-1/mcp /profiles/hr/mcp /profiles/x/mcp /healthz /metrics /ui/ /ui/mcp /MCP /mcp/ "
	for _, row := range []struct {
		configured string
		audience   any
		want       string
	}{
		{base, base, all},
		{base + "/", base, all},
		{base, base + "/", all},
		{base, base + "/mcp", "/mcp"},
		{base, base + "/mcp/", "/mcp"},
		{base, base + "/MCP", ""},
		{base, base + "/sse", "/sse /messages /messages/"},
		{base, base + "/proxy/sse", "/proxy/sse /proxy/messages/"},
		{base, base + "/proxy/mcp", "/proxy/mcp"},
		{base, base + "/servers/hr/mcp", "/servers/hr/mcp"},
		{base, base + "/servers/HR/mcp", "/servers/HR/mcp"},
		{base, base + "/profiles/hr/mcp", "/profiles/hr/mcp"},
		{base, []string{base + "/mcp", base + "/servers/hr/mcp"}, "/mcp /servers/hr/mcp"},
		{base, []string{base + "/mcp", "https://other.example.com"}, "/mcp"},
		{base, []string{base + "/mcp", base}, all},
		{base + "/mcp", base + "/mcp", "/mcp"},
		{base + "/proxy/mcp", []string{base + "/proxy/mcp", base, base + "/mcp"}, "/proxy/mcp"},
		{"nexus", "nexus", all},
		{"nexus", []string{"nexus", base + "/mcp"}, all},
	} {
		k := keysOf(t, auth.Config{OAuth: &auth.OAuthConfig{Issuer: issuer.URL, Audience: row.configured}}, auth.Options{})
		if got := opens(t, k, issuer.Token(bearertest.Claims{"aud": row.audience})); got != row.want {
			t.Errorf("%s: got a token for %v accepted at %q, want %q", row.configured, row.audience, got, row.want)
		}
	}
}

// What a token has opened lasts as long as the newest token of the same holder with the same rights.
func TestExpiry(t *testing.T) {
	issuer := bearertest.New(t)
	now := time.Now()
	k := keysOf(t, auth.Config{OAuth: &auth.OAuthConfig{Issuer: issuer.URL, Audience: bearertest.Audience, Claims: []auth.ClaimConfig{
		{Claim: "groups", Value: "a", Servers: []string{"a"}}, {Claim: "groups", Value: "b", Servers: []string{"b"}},
	}}}, auth.Options{Now: func() time.Time { return now }})
	caller := func(sub, group string, lasts time.Duration) auth.Caller {
		t.Helper()
		c, _, refused := k.Authenticate(t.Context(), bearerOf(issuer.Token(bearertest.Claims{"sub": sub, "groups": group, "exp": now.Add(lasts).Unix()})), "/mcp")
		if refused != nil {
			t.Fatalf("got %+v, want the token to count", refused)
		}
		return c
	}
	first := caller("ann", "a", time.Minute)
	if again := caller("ann", "a", time.Second); again != first {
		t.Errorf("got %+v and %+v, want equal callers for equal rights", first, again)
	}
	valid := func(what string, want bool) {
		t.Helper()
		c, got := first.Now()
		if got != want || c.MayUse("a", "x") != want || first.Expired() == want {
			t.Errorf("%s: got valid %t, may use a: %t, expired %t, want valid %t", what, got, c.MayUse("a", "x"), first.Expired(), want)
		}
	}
	valid("at first", true)
	now = now.Add(89 * time.Second)
	valid("within the leeway", true)
	now = now.Add(2 * time.Second)
	valid("after that", false)
	caller("ann", "b", time.Hour)
	caller("bob", "a", time.Hour)
	valid("with tokens of others, or with other rights", false)
	caller("ann", "a", time.Hour)
	valid("with a newer token", true)
}

func TestReplaceOAuth(t *testing.T) {
	issuer := bearertest.New(t)
	config := func(audience string) auth.Config {
		return auth.Config{OAuth: &auth.OAuthConfig{Issuer: issuer.URL, Audience: audience}}
	}
	k := keysOf(t, config(bearertest.Audience), auth.Options{})
	token := bearerOf(issuer.Token(bearertest.Claims{"aud": []string{bearertest.Audience, "other"}}))
	c, _, _ := k.Authenticate(t.Context(), token, "/mcp")
	if done := k.Replace(keysOf(t, config(bearertest.Audience), auth.Options{})); !done.None() {
		t.Errorf("the same: got %+v, want no change", done)
	}
	if _, valid := c.Now(); !valid || issuer.Asked() != 1 {
		t.Errorf("the same: got valid %t and %d requests for keys, want it to go on", valid, issuer.Asked())
	}
	if done := k.Replace(keysOf(t, config("other"), auth.Options{})); done.None() || !done.OAuth {
		t.Errorf("another audience: got %+v, want a change", done)
	}
	if _, valid := c.Now(); valid || c.Expired() {
		t.Error("another audience: got the former caller valid or expired, want it revoked")
	}
	if c, _, refused := k.Authenticate(t.Context(), token, "/mcp"); refused != nil || c.Name != "ann" {
		t.Errorf("another audience: got %+v, want the token to count anew", refused)
	}
	if done := k.Replace(keysOf(t, auth.Config{}, auth.Options{})); !done.OAuth || k.Required() {
		t.Errorf("none: got %+v, required %t, want no tokens", done, k.Required())
	}
}
