package app_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// opened is a stream that a client reads.
type opened struct {
	events chan string   // its data
	ended  chan struct{} // closed with the stream
}

// stream sends a request whose answer is a stream of events.
func (r *running) stream(method, path, body string, header map[string]string) *opened {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{}
	o := &opened{events: make(chan string, 100), ended: make(chan struct{})}
	answered := make(chan struct{})
	go func() {
		defer close(o.ended)
		resp, err := transport.RoundTrip(req)
		close(answered)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			_ = mcptest.Events(resp.Body, func(_, data string) { o.events <- data })
			return
		}
		text, _ := io.ReadAll(resp.Body)
		o.events <- string(text)
	}()
	if method == http.MethodGet {
		<-answered // with the headers the stream is open
	}
	r.t.Cleanup(transport.CloseIdleConnections)
	return o
}

// wantEnd waits for the end of the stream and returns the last that came on it.
func (o *opened) wantEnd(t *testing.T, what string) (last string) {
	t.Helper()
	select {
	case <-o.ended:
	case <-time.After(deadline):
		t.Fatalf("%s: got it open after %v, want it ended", what, deadline)
	}
	for len(o.events) > 0 {
		last = <-o.events
	}
	return last
}

// session opens a session with a key and returns its headers.
func (r *running) session(path, key string) map[string]string {
	r.t.Helper()
	header := map[string]string{"X-API-Key": key}
	resp, text := r.raw("POST", path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+fmt.Sprintf(initializeParams, "{}")+`}`, header)
	if header["Mcp-Session-Id"] = resp.Header.Get("Mcp-Session-Id"); header["Mcp-Session-Id"] == "" {
		r.t.Fatalf("initialize: got %s, want a session", text)
	}
	return header
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`

// With a key goes all that it has opened: streams, calls and sessions. What others have opened stays.
func TestRevokedKey(t *testing.T) {
	started, cancelled := make(chan string, 10), make(chan string, 10)
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = keys("gone", "stays")
		for _, name := range []string{"gone1", "gone2", "stays1", "stays2"} { // one for each call: they know calls by their ids alone
			o.Config.Servers = append(o.Config.Servers, server(name, newPeer(hangTool("hang", started, cancelled)).serve(t).URL))
		}
	})
	streams := map[string]map[string]*opened{}
	for _, key := range []string{"gone", "stays"} {
		routed, proxied := r.session("/mcp", key), r.session("/proxy/mcp", key)
		modern := map[string]string{"X-API-Key": key, "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "hang"}
		post := r.session("/proxy/mcp", key)
		post["Content-Type"] = "application/json"
		streams[key] = map[string]*opened{
			"GET /mcp":               r.stream("GET", "/mcp", "", routed),
			"GET /proxy/mcp":         r.stream("GET", "/proxy/mcp", "", proxied),
			"GET /sse":               r.stream("GET", "/sse", "", map[string]string{"X-API-Key": key}),
			"a call in a session":    r.stream("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+key+`1__hang"}}`, post),
			"a call without session": r.stream("POST", "/servers/"+key+"2/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hang",`+modernMeta+`}}`, modern),
		}
		<-started
		<-started
	}
	r.reload(func(cfg *config.Config) {
		cfg.Servers = r.opts.Config.Servers
		cfg.Auth.APIKeys = keys("stays")
	})
	if line := r.logs.line("access changed by a reload"); line["level"] != "WARN" || fmt.Sprint(line["keys_removed"]) != "[gone]" {
		t.Errorf("got log line %v, want a warning that names the key", line)
	}
	for what, o := range streams["gone"] {
		last := o.wantEnd(t, what)
		if strings.HasPrefix(what, "a call") && !strings.Contains(last, "the API key is no longer valid") {
			t.Errorf("%s: got %q, want to be told why it ended", what, last)
		}
	}
	<-cancelled
	<-cancelled
	for what, o := range streams["stays"] {
		select {
		case <-o.ended:
			t.Errorf("%s of the other key: got it ended, want it open", what)
		default:
		}
	}
	r.reload(func(cfg *config.Config) { cfg.Auth.APIKeys = keys("third") })
	for what, o := range streams["stays"] {
		o.wantEnd(t, what)
	}
}

// When keys become necessary, what was opened without one ends; a client on stdio needs none.
func TestKeysIntroduced(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	local, _ := r.dialStdio("")
	get, sse := r.stream("GET", "/mcp", "", r.session("/mcp", "")), r.stream("GET", "/sse", "", nil)
	r.reload(func(cfg *config.Config) { cfg.Auth.APIKeys = keys("k") })
	get.wantEnd(t, "GET /mcp")
	sse.wantEnd(t, "GET /sse")
	local.query(`{"query":"15% of 200"}`)

	// A client that has yet to show its key keeps its session.
	c := r.dial("", nil)
	waits := r.stream("GET", "/mcp", "", r.session("/mcp", "k"))
	r.reload(func(cfg *config.Config) { cfg.Auth.APIKeys = keys("k2") })
	waits.wantEnd(t, "GET /mcp of a key that is replaced") // so the sessions have been looked at
	if got := c.call("health_check", `{}`, `{"api_key":"k2"}`); got.Error != nil {
		t.Errorf("a key that follows the handshake: got %s, want it to be served", got.Error)
	}
}

// A session takes on the rights that its key is given, and hears that its lists have changed.
func TestChangedRights(t *testing.T) {
	a, b := newPeer(textTool("read", object, "A"), textTool("erase", object, "gone")), newPeer(textTool("other", object, "B"))
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
		o.Config.Auth.APIKeys = keys("k")
		o.Config.Auth.APIKeys[0].Tools.Deny = []string{"x"} // restricted, so that lists are kept for this key alone
	})
	session := r.session("/proxy/mcp", "k")
	list := func() string {
		_, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, session)
		return text
	}
	said := r.stream("GET", "/proxy/mcp", "", session)
	for _, row := range []struct {
		name, tools string
		change      func(*auth.KeyConfig)
	}{
		{"fewer tools", "a__read b__other", func(k *auth.KeyConfig) { k.Tools.Deny = []string{"*__erase"} }},
		{"one server", "a__read a__erase", func(k *auth.KeyConfig) { k.Servers = []string{"a"} }},
		{"one tool", "b__other", func(k *auth.KeyConfig) { k.Tools.Allow = []string{"b__*"} }},
		{"all", "a__read a__erase b__other", func(*auth.KeyConfig) {}},
	} {
		before := list()
		r.reload(func(cfg *config.Config) {
			cfg.Servers = append([]downstream.ServerConfig(nil), r.opts.Config.Servers...)
			cfg.Auth.APIKeys = keys("k")
			row.change(&cfg.Auth.APIKeys[0])
		})
		for _, kind := range []string{"tools", "prompts", "resources"} {
			if got := <-said.events; !strings.Contains(got, "notifications/"+kind+"/list_changed") {
				t.Errorf("%s: got %s on the stream, want that the %s have changed", row.name, got, kind)
			}
		}
		after := list()
		for _, tool := range []string{"a__read", "a__erase", "b__other"} {
			if got, want := strings.Contains(after, `"`+tool+`"`), strings.Contains(row.tools, tool); got != want {
				t.Errorf("%s: got %s in the list: %v, want %v; before it was %s", row.name, tool, got, want, before)
			}
			_, called := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"`+tool+`"}}`, session)
			if got, want := strings.Contains(called, `"result"`), strings.Contains(row.tools, tool); got != want {
				t.Errorf("%s: got %s for a call of %s, want it served: %v", row.name, called, tool, want)
			}
		}
	}
}
