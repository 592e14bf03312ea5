package app_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// configured is the configuration of a running App, without its servers, and changed.
func (r *running) configured(change func(*config.Config)) config.Config {
	cfg := r.opts.Config
	cfg.Servers = nil
	change(&cfg)
	return cfg
}

func (r *running) reload(change func(*config.Config)) {
	r.t.Helper()
	if err := r.Reload(r.configured(change)); err != nil {
		r.t.Fatalf("Reload: got %v, want nil", err)
	}
}

// Servers are added, removed and changed while a call is in flight, within the sessions of the clients.
func TestReloadServers(t *testing.T) {
	started, goOn := make(chan string, 1), make(chan struct{})
	r, _ := withPeer(t, nil, nil, slowTool(started, goOn))
	fresh := newPeer(textTool("news", object, "from the new one"))
	freshURL := fresh.serve(t).URL
	c := r.dial("", nil)

	session := r.session("/proxy/mcp", "")
	proxied := func(method, params string) string {
		t.Helper()
		_, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":`+params+`}`, session)
		return text
	}
	if got := proxied("tools/list", "{}"); !strings.Contains(got, `"peer__slow"`) {
		t.Fatalf("tools/list: got %s, want peer__slow", got)
	}
	said := r.stream("GET", "/proxy/mcp", "", session).events
	call, _ := c.start("tools/call", callParams("run", `{"tool":"peer__slow"}`, ""))
	<-started

	r.reload(func(cfg *config.Config) {
		cfg.Servers = []downstream.ServerConfig{server("peer", freshURL), server("other", freshURL)}
	})
	want := []string{"tools", "prompts", "resources"}
	for len(want) > 0 {
		message := <-said
		want = slices.DeleteFunc(want, func(kind string) bool { return strings.Contains(message, "notifications/"+kind+"/list_changed") })
	}
	if got := proxied("tools/list", "{}"); !strings.Contains(got, `"peer__news"`) || !strings.Contains(got, `"other__news"`) || strings.Contains(got, "slow") {
		t.Errorf("tools/list: got %s, want the new tools", got)
	}
	for _, name := range []string{"peer__news", "other__news"} {
		if got := proxied("tools/call", `{"name":"`+name+`"}`); !strings.Contains(got, "from the new one") {
			t.Errorf("%s: got %s, want an answer of the new server", name, got)
		}
	}
	if _, text := r.raw("POST", "/servers/other/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); !strings.Contains(text, `"news"`) {
		t.Errorf("/servers/other/mcp: got %s, want its tool", text)
	}
	if got := c.result(c.call("search_available_tools", `{"query":"news"}`, "")).text(); !strings.Contains(got, "news") {
		t.Errorf("search: got %s, want the new tool", got)
	}
	close(goOn)
	if got := c.result(c.wait(call)).text(); got != "finished" {
		t.Errorf("the call in flight: got %s, want finished", got)
	}
	record := r.logs.want(t, "configuration reloaded")
	if got := record["added"]; len(got.([]any)) != 1 {
		t.Errorf("log: got added %v, want other", got)
	}

	r.reload(func(cfg *config.Config) { cfg.Servers = r.opts.Config.Servers })
	if _, text := r.raw("POST", "/servers/other/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); !strings.Contains(text, `"code":-32602,"message":"Unknown server: other"`) {
		t.Errorf("/servers/other/mcp once it is gone: got %s, want that it is unknown", text)
	}
	if got := proxied("tools/list", "{}"); !strings.Contains(got, `"peer__slow"`) || strings.Contains(got, "news") {
		t.Errorf("tools/list: got %s, want the old tools alone", got)
	}
	if got := c.result(c.call("search_available_tools", `{"query":"news"}`, "")).text(); !strings.HasPrefix(got, "No tools found") {
		t.Errorf("search: got %s, want nothing of what is gone", got)
	}
}

func TestReloadSettings(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	status := func(key string) int {
		t.Helper()
		resp, _ := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"X-API-Key": key})
		return resp.StatusCode
	}
	if got := status(""); got != 200 {
		t.Fatalf("without keys: got %d, want 200", got)
	}
	withKey := func(key string) func(*config.Config) {
		return func(cfg *config.Config) {
			cfg.Auth.APIKeys = []auth.KeyConfig{{Name: "a", Key: redact.Secret(key)}}
			cfg.RateLimit.Requests = 1
			cfg.Log.Level = "warn"
			cfg.Listen = "127.0.0.1:1"
			cfg.Limits.Sessions = 5
		}
	}
	r.reload(withKey("first"))
	if none, right := status(""), status("first"); none != 401 || right != 200 {
		t.Errorf("with a key: got %d without it and %d with it, want 401 and 200", none, right)
	}
	if r.level.Level() != slog.LevelWarn {
		t.Errorf("log level: got %v, want warn", r.level.Level())
	}
	r.logs.want(t, "configuration: listen, limits.sessions cannot change while running")
	r.reload(withKey("second"))
	if old, right := status("first"), status("second"); old != 401 || right != 200 {
		t.Errorf("with another key: got %d with the old one and %d with the new one, want 401 and 200", old, right)
	}
	query := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"15% of 200"}}}`
	header := map[string]string{"X-API-Key": "second", "Accept": "application/json"}
	_, first := r.raw("POST", "/mcp", query, header)
	_, second := r.raw("POST", "/mcp", query, header)
	if strings.Contains(first, "Rate limit exceeded") || !strings.Contains(second, "Rate limit exceeded") {
		t.Errorf("rate limit: got %.100s and %.100s, want the second refused", first, second)
	}
	if _, text := r.raw("GET", "/healthz", "", header); !strings.Contains(text, `"connected"`) {
		t.Errorf("/healthz: got %s, want the demo servers to be there still", text)
	}
}

// What cannot be used changes nothing.
func TestReloadRefuses(t *testing.T) {
	r, _ := withPeer(t, nil, nil, echoTool("echo"))
	for name, change := range map[string]func(*config.Config){
		"a key without a source": func(cfg *config.Config) { cfg.Auth.APIKeys = []auth.KeyConfig{{Name: "a"}} },
		"a key file that is not there": func(cfg *config.Config) {
			cfg.Auth.APIKeys = []auth.KeyConfig{{Name: "a", File: t.TempDir() + "/none"}}
		},
		"a level that does not exist": func(cfg *config.Config) { cfg.Log.Level = "loud" },
	} {
		if err := r.Reload(r.configured(change)); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
		if got := r.dial("", nil).call("run", `{"tool":"peer__echo","parameters":{"a":1}}`, ""); got.Error != nil {
			t.Errorf("%s: got %s afterwards, want the servers to be as they were", name, got.Error)
		}
	}
}
