package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const signOfTokens = "eyJ" // all begin with it

// withTokens configures tokens of an issuer.
func withTokens(o *config.Config, issuer *bearertest.Issuer, claims ...auth.ClaimConfig) {
	o.Auth.OAuth = &auth.OAuthConfig{Issuer: issuer.URL, Audience: bearertest.Audience, Claims: claims}
}

// A token serves on every path as a key does, and reaches nothing behind the router.
func TestTokenOnEveryPath(t *testing.T) {
	issuer, p := bearertest.New(t), newPeer(echoTool("echo"))
	var sent mcptest.Log // to the server
	downstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		dump, _ := httputil.DumpRequest(q, true)
		_, _ = sent.Write(dump)
		p.ServeHTTP(w, q)
	}))
	t.Cleanup(downstream.Close)
	m := scripted(t, "done", `[{"tool":"echo","arguments":{"a":1}}]`)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.Log.Level = "trace"
		withTokens(&o.Config, issuer)
		o.Config.Servers = append(o.Config.Servers, server("peer", downstream.URL))
		o.Config.Servers[0].ForwardHeaders = []string{"X-Tenant"}
		o.Config.Profiles = map[string]config.Profile{"p": {Surface: config.SurfaceProxy}}
	})
	token := issuer.Token(nil)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, row := range []struct{ method, path, body, want string }{
		{"POST", "/mcp", list, "process_query"},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"echo it"}}}`, "done"},
		{"POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peer__echo","arguments":{}}}`, `"result"`},
		{"POST", "/servers/peer/mcp", list, "echo"},
		{"POST", "/profiles/p/mcp", list, "peer__echo"},
		{"GET", "/healthz", "", `"servers"`},
		{"GET", "/metrics", "", "nexus_server_up"},
		{"GET", "/ui/", "", "<html"},
		{"GET", "/ui/api/now", "", "{"},
		{"POST", "/ui/mcp", list, "process_query"},
	} {
		header := bearer(token)
		header["X-Tenant"] = "acme"
		if resp, text := r.raw(row.method, row.path, row.body, header); resp.StatusCode != 200 || !strings.Contains(text, row.want) {
			t.Errorf("%s %s: got %d %s, want 200 with %q", row.method, row.path, resp.StatusCode, text, row.want)
		}
		for wrong, header := range map[string]map[string]string{
			"no token": nil, "expired": bearer(issuer.Token(bearertest.Claims{"exp": 1})), "as a password": basic(token),
			"for another endpoint": bearer(issuer.Token(bearertest.Claims{"aud": bearertest.Audience + "/profiles/other/mcp"})),
		} {
			resp, text := r.raw(row.method, row.path, row.body, header)
			if got := strings.Join(resp.Header.Values("WWW-Authenticate"), "; "); resp.StatusCode != 401 || !strings.Contains(got, `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource`) || strings.Contains(got, "Basic") {
				t.Errorf("%s %s, %s: got %d %q %s, want 401 and where the metadata is", row.method, row.path, wrong, resp.StatusCode, got, text)
			}
		}
	}
	r.dialSSE("", bearer(token)).query(`{"query":"echo it"}`)
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/proxy/mcp"} {
		if resp, text := r.raw("GET", path, "", nil); resp.StatusCode != 200 || !strings.Contains(text, issuer.URL) {
			t.Errorf("GET %s: got %d %s, want the issuer", path, resp.StatusCode, text)
		}
	}
	if got := sent.String(); !strings.Contains(got, "acme") || strings.Contains(got, signOfTokens) {
		t.Errorf("the server got %s, want the forwarded header and no token", got)
	}
	if got := fmt.Sprint(m.Requests()); strings.Contains(got, signOfTokens) {
		t.Errorf("the model got %s, want no token", got)
	}
	if log := r.logs.String(); strings.Contains(log, signOfTokens) || !strings.Contains(log, "the token has expired") {
		t.Error("log: want no token, and why one was refused")
	}
}

// Claims give what keys give, and the rate limit counts by subject.
func TestClaimsOfTokens(t *testing.T) {
	issuer := bearertest.New(t)
	a, b := newPeer(textTool("read", object, "A"), textTool("erase", object, "gone")), newPeer(textTool("other", object, "B"))
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
		o.Config.RateLimit.Requests, o.Config.RateLimit.Tools = 1, []string{"b__other"}
		withTokens(&o.Config, issuer,
			auth.ClaimConfig{Claim: "groups", Value: "readers", Servers: []string{"a"}, Tools: auth.Filter{Deny: []string{"*__erase"}}},
			auth.ClaimConfig{Claim: "groups", Value: "others", Tools: auth.Filter{Allow: []string{"b__*"}}})
	})
	token := func(sub string, groups ...string) map[string]string {
		return bearer(issuer.Token(bearertest.Claims{"sub": sub, "groups": groups, "jti": time.Now().String()}))
	}
	for groups, tools := range map[string]string{"readers": "a__read", "others": "b__other", "readers others": "a__read b__other"} {
		_, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, token("ann", strings.Fields(groups)...))
		for _, tool := range []string{"a__read", "a__erase", "b__other"} {
			if got, want := strings.Contains(text, `"`+tool+`"`), strings.Contains(tools, tool); got != want {
				t.Errorf("%s: got %s listed: %t, want %t", groups, tool, got, want)
			}
		}
	}
	if resp, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, token("ann")); resp.StatusCode != 403 {
		t.Errorf("no group: got %d %s, want 403", resp.StatusCode, text)
	}
	call := func(sub string) string {
		_, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b__other","arguments":{}}}`, token(sub, "others"))
		return text
	}
	if first, second, another := call("ann"), call("ann"), call("bob"); strings.Contains(first, "Rate limit") || !strings.Contains(second, "Rate limit exceeded") || strings.Contains(another, "Rate limit") {
		t.Errorf("got %s, %s and %s, want the second call of ann refused", first, second, another)
	}
}

// A reload that changes what tokens may do ends what they have opened, and nothing else.
func TestReloadOfTokens(t *testing.T) {
	issuer := bearertest.New(t)
	r := start(t, func(o *app.Options) {
		withTokens(&o.Config, issuer)
		o.Config.Auth.APIKeys = keys("k")
	})
	header := bearer(issuer.Token(nil))
	open := func(header map[string]string) *opened {
		resp, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+fmt.Sprintf(initializeParams, "{}")+`}`, header)
		if header["Mcp-Session-Id"] = resp.Header.Get("Mcp-Session-Id"); header["Mcp-Session-Id"] == "" {
			t.Fatalf("initialize: got %s, want a session", text)
		}
		return r.stream("GET", "/mcp", "", header)
	}
	ofToken, ofKey := open(header), open(bearer("k"))
	r.reload(func(cfg *config.Config) {
		withTokens(cfg, issuer, auth.ClaimConfig{Claim: "groups", Value: "a", Servers: []string{"a"}})
		cfg.Auth.APIKeys = keys("k")
	})
	ofToken.wantEnd(t, "stream of a token")
	if line := r.logs.line("access changed by a reload"); line["oauth_changed"] != true {
		t.Errorf("got log line %v, want that oauth has changed", line)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if resp, text := r.raw("POST", "/mcp", list, header); resp.StatusCode != 403 {
		t.Errorf("the same token without the claim: got %d %s, want 403", resp.StatusCode, text)
	}
	header["Authorization"] = bearer(issuer.Token(bearertest.Claims{"groups": "a"}))["Authorization"]
	if resp, text := r.raw("POST", "/mcp", list, header); resp.StatusCode != 200 {
		t.Errorf("a token with it, in the same session: got %d %s, want 200", resp.StatusCode, text)
	}
	r.reload(func(cfg *config.Config) {
		cfg.Auth.OAuth = nil
		cfg.Auth.APIKeys = keys("k")
	})
	if resp, text := r.raw("POST", "/mcp", list, header); resp.StatusCode != 401 {
		t.Errorf("without oauth: got %d %s, want 401", resp.StatusCode, text)
	}
	if resp, _ := r.raw("GET", "/.well-known/oauth-protected-resource", "", nil); resp.StatusCode != 404 {
		t.Errorf("metadata without oauth: got %d, want 404", resp.StatusCode)
	}
	select {
	case <-ofKey.ended:
		t.Error("stream of a key: got it ended, want it open")
	default:
	}
}
