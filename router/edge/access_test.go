package edge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestKeys(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t), Name: "router", Version: "1.2.3"})
	bearer := func(key string) header { return header{"Authorization": "Bearer " + key} }
	const (
		wrong     = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Invalid API key"}],"isError":true}}`
		wrongElse = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid API key"}}`
	)
	rows := []struct {
		name, body string
		h          header
		status     int
		want       string // in the body
	}{
		{"bearer", request("1", "seen", ""), bearer("key-ann"), 200, `"Caller":"key:ann"`},
		{"X-API-Key", request("1", "seen", ""), header{"X-API-Key": "key-bob"}, 200, `"Caller":"key:bob"`},
		{"meta", request("1", "seen", `"api_key":"key-ann"`), nil, 200, `"Caller":"key:ann"`},
		{"header and meta", request("1", "seen", `"api_key":"key-bob"`), bearer("key-ann"), 200, `"Caller":"key:ann"`},
		{"escaped meta", request("1", "seen", `"\u0061pi_key":"key-ann"`), nil, 200, `"Caller":"key:ann"`},
		{"wrong header", request("1", "ping", ""), bearer("key-eve"), 401, "not valid"},
		{"wrong header, right meta", request("1", "seen", `"api_key":"key-ann"`), bearer("key-eve"), 401, "not valid"},
		{"wrong meta, call", request("1", "tools/call", `"api_key":"key-eve"`), nil, 200, wrong},
		{"wrong meta, right header", request("1", "tools/call", `"api_key":"key-eve"`), bearer("key-ann"), 200, wrong},
		{"wrong meta, else", request("1", "tools/list", `"api_key":"key-eve"`), nil, 200, wrongElse},
		{"wrong meta, ping", request("1", "ping", `"api_key":"key-eve"`), nil, 200, wrongElse},
		{"no string", request("1", "tools/call", `"api_key":7`), nil, 200, wrong},
		{"none, call", request("1", "tools/call", ""), nil, 401, "needed"},
		{"none, list", request("1", "tools/list", ""), nil, 401, "needed"},
		{"none, notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, nil, 401, "needed"},
		{"none, response", `{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 401, "needed"},
		{"none, batch", `[` + request("1", "ping", "") + `,` + request("2", "tools/list", "") + `]`, nil, 401, "needed"},
		{"none, initialize", initialize("2025-11-25"), nil, 200, `"protocolVersion"`},
		{"none, initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"none, ping", request("1", "ping", ""), nil, 200, `"result":{}`},
		{"none, discover", request("1", "server/discover", ""), nil, 200, `"supportedVersions":["2026-07-28",`},
		{"none, who answers", request("1", "server/discover", ""), nil, 200,
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"router","version":"1.2.3"}}}}`},
		{"none, modern", modernCall("echo"), modernHeader("tools/call", "echo"), 401, "needed"},
	}
	for _, row := range rows {
		status, h, body := w.post(row.body, row.h)
		if status != row.status || !strings.Contains(body, row.want) {
			t.Errorf("%s: got %d %s, want %d and %s", row.name, status, body, row.status, row.want)
		}
		if challenge := h.Get("WWW-Authenticate"); (status == 401) != strings.HasPrefix(challenge, "Bearer ") {
			t.Errorf("%s: got WWW-Authenticate %q with status %d", row.name, challenge, status)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		w.status(fmt.Sprintf("%s without a key", method), method, "/mcp", "", header{"Mcp-Session-Id": "x"}, 401)
	}
	for _, h := range []header{nil, bearer("key-eve")} {
		w.status(fmt.Sprintf("GET /sse with %v", h), "GET", "/sse", "", h, 401)
	}
}

// No handler sees a key, whether keys are needed or not. The rest of _meta is unchanged.
func TestKeysAreCutOut(t *testing.T) {
	for _, o := range []edge.Options{{}, {Keys: keys(t)}} {
		w := newWire(t, o)
		_, _, body := w.post(request("1", "seen", `"a":9007199254740993,"api_key":"key-ann","b":{"api_key":"kept"}`),
			header{"Authorization": "Bearer key-ann", "X-API-Key": "key-ann"})
		if strings.Contains(body, "key-ann") {
			t.Errorf("got %s, want no key in it", body)
		}
		want := `"Params":{"name":"echo","_meta":{"a":9007199254740993,"b":{"api_key":"kept"}}},` +
			`"Raw":{"jsonrpc":"2.0","id":1,"method":"seen","params":{"name":"echo","_meta":{"a":9007199254740993,"b":` +
			`{"api_key":"kept"}}}}`
		if !strings.Contains(body, want) {
			t.Errorf("got %s, want %s in it", body, want)
		}
	}
}

func TestSessionsBelongToTheirKey(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	meta := func(key string) string { return request("1", "seen", `"api_key":"`+key+`"`) }
	h := w.open("2025-03-26") // without a key yet
	for i, row := range []struct {
		name, body string
		status     int
	}{
		{"notification before any key", `{"jsonrpc":"2.0","method":"notifications/x"}`, 401},
		{"first key", meta("key-ann"), 200},
		{"other key", meta("key-bob"), 404},
		{"notification without the key", `{"jsonrpc":"2.0","method":"notifications/x"}`, 401},
		{"cancellation without the key", cancelOf("1", `"x"`), 401},
		{"answer without the key", `{"jsonrpc":"2.0","id":"nexus-1","result":{}}`, 401},
		{"batch without the key", `[` + request("1", "tools/list", "") + `]`, 401},
		{"request without the key", request("1", "seen", ""), 401},
		{"its key", meta("key-ann"), 200},
	} {
		w.want(fmt.Sprintf("%d, %s", i, row.name), row.body, h, row.status)
	}
	for _, method := range []string{"GET", "DELETE"} {
		for key, want := range map[string]int{"": 401, "key-bob": 404} {
			resp := w.do(context.Background(), method, "/mcp", "",
				header{"Mcp-Session-Id": h["Mcp-Session-Id"], "X-API-Key": key, "Last-Event-ID": "0-1"})
			if resp.StatusCode != want {
				t.Errorf("%s with key %q: got %d, want %d", method, key, resp.StatusCode, want)
			}
		}
	}
	resp := w.do(context.Background(), "DELETE", "/mcp", "",
		header{"Mcp-Session-Id": h["Mcp-Session-Id"], "X-API-Key": "key-ann"})
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE with its key: got %d, want 204", resp.StatusCode)
	}
}

func TestKeysOnSSE(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	ann := header{"X-API-Key": "key-ann"}
	c := w.sse(ann)
	c.want("no key", request("1", "tools/call", ""), nil, 401)
	c.want("other key", request("1", "tools/call", ""), header{"X-API-Key": "key-bob"}, 404)
	c.want("wrong key", request("2", "tools/call", `"api_key":"key-eve"`), nil, 202)
	contains(t, "wrong key", c.events.message(), `"id":2,"result":{"content":[{"type":"text","text":"Invalid API key"}],"isError":true}`)
	c.post(request("3", "seen", ""), ann)
	contains(t, "right key", c.events.message(), `"Caller":"key:ann"`)
}

func TestNoKeyOnStdio(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	p := newStdio(t, w.edge, w.srv)
	p.send(initialize("2025-03-26"))
	p.line()
	for _, line := range []string{request("1", "seen", ""), "[" + request("1", "seen", `"api_key":"key-eve"`) + "]"} {
		p.send(line)
		if got := p.line(); !strings.Contains(got, `"Caller":"addr:local"`) || strings.Contains(got, "key-eve") {
			t.Errorf("%s: got %s, want the local caller and no key", line, got)
		}
	}
	p.finish()
}

func TestOrigins(t *testing.T) {
	rows := []struct {
		name, host, origin string
		loopback           bool
		status             int
	}{
		{"none", "", "", true, 200},
		{"loopback", "", "http://localhost:3000", true, 200},
		{"loopback address", "", "http://127.8.9.1", true, 200},
		{"loopback IPv6", "", "https://[::1]:8443", true, 200},
		{"listed", "", "https://app.example.com", true, 200},
		{"listed, other case", "", "HTTPS://App.Example.com", true, 200},
		{"listed as a host", "", "http://plain.example.com", true, 200},
		{"listed, other scheme", "", "http://app.example.com", true, 403},
		{"listed, other port", "", "https://app.example.com:444", true, 403},
		{"foreign", "", "https://evil.example.com", true, 403},
		{"null", "", "null", true, 403},
		{"nonsense", "", "%", true, 403},
		{"no scheme", "", "localhost", true, 403},
		{"extension", "", "chrome-extension://localhost", true, 403},
		{"user", "", "http://localhost@evil.example.com", true, 403},
		{"path", "", "http://localhost/x", true, 403},
		{"loopback in front", "", "http://localhost.evil.example.com", true, 403},
		{"loopback behind", "", "http://127.0.0.1.evil.example.com", true, 403},
		{"same origin", "plain.example.com:8002", "http://plain.example.com:8002", false, 200},
		{"same host, other port", "app.example.com:8002", "http://app.example.com", false, 403},
		{"listed host", "App.Example.com", "", false, 200},
		{"rebinding beyond loopback", "evil.example.com:8002", "http://evil.example.com:8002", false, 403},
		{"unlisted host", "nexus.example.com", "", false, 403},
		{"an address", "192.0.2.7:8002", "http://192.0.2.7:8002", false, 200},
		{"an IPv6 address", "[2001:db8::1]:8002", "", false, 200},
		{"foreign host", "nexus.example.com", "", true, 403},
		{"rebinding", "evil.example.com:8002", "http://evil.example.com:8002", true, 403},
		{"localhost", "LocalHost:8002", "", true, 200},
		{"IPv6 host", "[::1]:8002", "", true, 200},
		{"IPv6 host without port", "[::1]", "", true, 200},
		{"mapped", "[::ffff:127.0.0.1]:1", "", true, 200},
		{"any address", "0.0.0.0:8002", "", true, 403},
	}
	wires := map[bool]*wire{}
	for _, loopback := range []bool{true, false} {
		wires[loopback] = newWire(t, edge.Options{Loopback: loopback, Public: !loopback,
			AllowedOrigins: []string{"https://app.example.com/", "plain.example.com"}})
	}
	for _, row := range rows {
		w := wires[row.loopback]
		h := header{"Origin": row.origin}
		if row.origin == "" {
			h = header{}
		}
		if row.host != "" {
			h["Host"] = row.host
		}
		status, answer, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, h)
		if status != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, status, body, row.status)
		}
		allowed := ""
		if status == 200 {
			allowed = row.origin
		} else {
			checkError(t, body, "null", -32600)
		}
		equal(t, row.name, answer.Get("Access-Control-Allow-Origin"), allowed)
		for _, path := range []string{"/sse", "/messages/?session_id=x"} {
			if row.status != 403 {
				continue
			}
			w.status(fmt.Sprintf("%s, %s", row.name, path), "GET", path, "", h, 403)
		}
	}
}

// Two origins are refused. With keys any Host is accepted: a page without a key cannot use it.
func TestOriginsAndKeys(t *testing.T) {
	_, _, endpoint := newDirect(t, edge.Options{})
	r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", reader(request("1", "ping", "")))
	r.Header["Origin"] = []string{"http://localhost", "http://evil.example.com"}
	answer := httptest.NewRecorder()
	endpoint.ServeHTTP(answer, r)
	equal(t, "two origins", answer.Code, 403)
	w := newWire(t, edge.Options{Keys: keys(t), Public: true})
	w.want("any Host", request("1", "seen", ""), header{"Host": "nexus.example.com", "X-API-Key": "key-ann"}, 200)
}

func TestPreflight(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	for path, methods := range map[string]string{
		"/mcp": "GET, POST, DELETE, OPTIONS", "/sse": "GET, OPTIONS", "/messages/": "POST, OPTIONS",
	} {
		resp := w.do(context.Background(), "OPTIONS", path, "", header{
			"Origin": "http://localhost:6274", "Access-Control-Request-Method": "POST",
			"Access-Control-Request-Headers": "content-type,mcp-session-id,mcp-param-region,x-evil",
		})
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 204 || len(b) > 0 {
			t.Errorf("%s: got %d %q, want 204 and no body", path, resp.StatusCode, b)
		}
		for k, want := range map[string]string{
			"Access-Control-Allow-Origin": "http://localhost:6274", "Access-Control-Allow-Methods": methods, "Vary": "Origin",
		} {
			equal(t, path+" "+k, resp.Header.Get(k), want)
		}
		allowed := resp.Header.Get("Access-Control-Allow-Headers")
		for _, name := range []string{"content-type", "authorization", "x-api-key", "mcp-session-id", "mcp-protocol-version",
			"mcp-method", "mcp-name", "last-event-id", "mcp-param-region"} {
			if !strings.Contains(allowed, name) {
				t.Errorf("%s: got allowed headers %q, want %s among them", path, allowed, name)
			}
		}
		if strings.Contains(allowed, "x-evil") {
			t.Errorf("%s: got allowed headers %q, want no x-evil", path, allowed)
		}
	}
	_, h, _ := w.post(initialize("2025-11-25"), header{"Origin": "http://localhost"})
	if !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("got exposed headers %q, want Mcp-Session-Id among them", h.Get("Access-Control-Expose-Headers"))
	}
}

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
		equal(t, row.name, h.Get("WWW-Authenticate"), row.challenge)
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
		w.want(row.body, row.body, row.h, row.status, row.want)
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
		w.want(name, request("1", "seen", ""), in(h), want)
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
	contains(t, "answer", readEvents(t, stream.Body).message(), "notifications/x")
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
	w.want("another call", request("8", "seen", ""), session, 401)
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
		contains(t, name, events.message(), `"id":7,"result"`)
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
		e.ServeMetadata(w, r)
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
	e.ServeMetadata(w, httptest.NewRequest("GET", "http://127.0.0.1/.well-known/oauth-protected-resource", nil))
	if w.Code != 404 {
		t.Errorf("without oauth: got %d, want 404", w.Code)
	}
}

// A client without a key reaches no handler and takes no place. Once it sends a key, the handler is served its
// handshake before anything else, and once.
func TestUnauthenticated(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t), Name: "agenticnexus-router", Version: "9",
		Limits: limit.Config{Sessions: 4}})
	for range 50 {
		w.open("2025-06-18")
	}
	status, h, body := w.post(initialize("2025-03-26"), nil)
	want := `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-03-26","capabilities":{"tools":` +
		`{"listChanged":true}},` +
		`"serverInfo":{"name":"agenticnexus-router","version":"9"}}}`
	if status != 200 || body != want {
		t.Errorf("initialize: got %d %s, want %s", status, body, want)
	}
	s := header{"Mcp-Session-Id": h.Get("Mcp-Session-Id")}
	for body, want := range map[string]int{
		initialized:                          202,
		request("1", "ping", ""):             200,
		`[` + request("1", "ping", "") + `]`: 200,
	} {
		w.want(body, body, s, want)
	}
	w.want("ping in a session that is not there", request("1", "ping", ""), header{"Mcp-Session-Id": "forged"}, 404)
	if got := w.srv.all(); len(got) > 0 || w.edge.Sessions() != 0 || w.srv.ends() != 0 {
		t.Errorf("before a key: got %q served and %d sessions, want none", got, w.edge.Sessions())
	}
	for range 2 {
		_, _, body = w.post(request("1", "seen", `"api_key":"key-ann"`), s)
		for _, part := range []string{`"Version":"2025-03-26"`, `"Caller":"key:ann"`, `"Capabilities":{"sampling":{}}`,
			`"Info":{"name":"c","version":"1"}`} {
			if !strings.Contains(body, part) {
				t.Errorf("with a key: got %s, want %s in it", body, part)
			}
		}
	}
	mcptest.Eventually(t, "the handler knows all", func() bool { return len(w.srv.all()) == 2 })
	if got := w.srv.all(); fmt.Sprint(got) != "[initialize:2025-03-26 notifications/initialized]" {
		t.Errorf("with a key: got %q served, want the handshake once", got)
	}
}

// If a client sends its key only in requests, its notification is served with the next request.
func TestInitializedWithoutKey(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	_, h, _ := w.post(strings.Replace(initialize("2025-06-18"), `"clientInfo"`,
		`"_meta":{"api_key":"key-ann"},"clientInfo"`, 1), nil)
	s := header{"Mcp-Session-Id": h.Get("Mcp-Session-Id")}
	w.want("initialized", initialized, s, 202)
	if got := w.srv.all(); fmt.Sprint(got) != "[initialize:2025-06-18]" {
		t.Errorf("without the key: got %q served, want initialize alone", got)
	}
	w.post(call("1", "echo", "{}"), header{"Mcp-Session-Id": s["Mcp-Session-Id"], "X-API-Key": "key-ann"})
	w.post(initialized, s) // again
	w.post(call("2", "echo", "{}"), header{"Mcp-Session-Id": s["Mcp-Session-Id"], "X-API-Key": "key-ann"})
	equal(t, "served", fmt.Sprint(w.srv.all()), "[initialize:2025-06-18 notifications/initialized tools/call:echo tools/"+
		"call:echo]")
}

// On HTTP+SSE the edge alone answers messages without a key, and its response cannot pass for that to a request of the
// session's owner.
func TestUnauthenticatedOnSSE(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
	ann := header{"X-API-Key": "key-ann"}
	c := w.sse(ann)
	c.post(initialize("2024-11-05"), nil)
	contains(t, "initialize", c.events.message(), `"id":"init","result":{"protocolVersion":"2024-11-05"`)
	c.post(initialized, nil)
	if got := w.srv.all(); len(got) > 0 {
		t.Errorf("before a key: got %q served, want nothing", got)
	}
	c.post(call("1", "hold", "{}"), ann)
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.all()) == 3 })
	equal(t, "served", fmt.Sprint(w.srv.all()), "[initialize:2024-11-05 notifications/initialized tools/call:"+
		"hold]")
	for _, body := range []string{request("1", "ping", ""), request("1", "tools/call", `"api_key":"key-eve"`)} {
		c.want(body, body, nil, 400)
	}
	for _, body := range []string{cancelOf("1", `"x"`), `{"jsonrpc":"2.0","id":"nexus-1","result":{}}`} {
		c.want(body, body, nil, 401)
	}
	close(w.srv.release)
	equal(t, "answer", c.events.message(), `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`)
}
