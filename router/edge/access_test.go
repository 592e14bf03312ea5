package edge_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/router/edge"
)

func TestKeys(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t)})
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
		if resp := w.do(context.Background(), method, "/mcp", "", header{"Mcp-Session-Id": "x"}); resp.StatusCode != 401 {
			t.Errorf("%s without a key: got %d, want 401", method, resp.StatusCode)
		}
	}
	for _, h := range []header{nil, bearer("key-eve")} {
		if resp := w.do(context.Background(), "GET", "/sse", "", h); resp.StatusCode != 401 {
			t.Errorf("GET /sse with %v: got %d, want 401", h, resp.StatusCode)
		}
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
		if status, _, body := w.post(row.body, h); status != row.status {
			t.Errorf("%d, %s: got %d %s, want %d", i, row.name, status, body, row.status)
		}
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
	if status, body := c.post(request("1", "tools/call", ""), nil); status != 401 {
		t.Errorf("no key: got %d %s, want 401", status, body)
	}
	if status, body := c.post(request("1", "tools/call", ""), header{"X-API-Key": "key-bob"}); status != 404 {
		t.Errorf("other key: got %d %s, want 404", status, body)
	}
	if status, body := c.post(request("2", "tools/call", `"api_key":"key-eve"`), nil); status != 202 {
		t.Errorf("wrong key: got %d %s, want 202", status, body)
	}
	if got := c.events.message(); !strings.Contains(got,
		`"id":2,"result":{"content":[{"type":"text","text":"Invalid API key"}],"isError":true}`) {
		t.Errorf("wrong key: got %s, want the tool error", got)
	}
	c.post(request("3", "seen", ""), ann)
	if got := c.events.message(); !strings.Contains(got, `"Caller":"key:ann"`) {
		t.Errorf("right key: got %s, want ann", got)
	}
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
		if got := answer.Get("Access-Control-Allow-Origin"); got != allowed {
			t.Errorf("%s: got Access-Control-Allow-Origin %q, want %q", row.name, got, allowed)
		}
		for _, path := range []string{"/sse", "/messages/?session_id=x"} {
			if row.status != 403 {
				continue
			}
			if resp := w.do(context.Background(), "GET", path, "", h); resp.StatusCode != 403 {
				t.Errorf("%s, %s: got %d, want 403", row.name, path, resp.StatusCode)
			}
		}
	}
}

// With keys any Host is accepted: a page without a key cannot use it.
func TestKeysMakeEveryHostGood(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t), Public: true})
	if status, _, body := w.post(request("1", "seen", ""), header{"Host": "nexus.example.com",
		"X-API-Key": "key-ann"}); status != 200 {
		t.Errorf("got %d %s, want 200", status, body)
	}
}

func TestTwoOriginsAreRefused(t *testing.T) {
	w := newWire(t, edge.Options{})
	r, _ := http.NewRequest("POST", w.http.URL+"/mcp", reader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header["Origin"] = []string{"http://localhost", "http://evil.example.com"}
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("got %d, want 403", resp.StatusCode)
	}
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
			if got := resp.Header.Get(k); got != want {
				t.Errorf("%s: got %s %q, want %q", path, k, got, want)
			}
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
