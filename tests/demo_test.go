package tests

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The question of the README, over HTTP, with its progress.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	r := serve(t, "", "--demo")
	type progress struct {
		Token    string  `json:"progressToken"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	var seen []progress
	m := r.tryCall("process_query", map[string]any{"query": "What's the latest AI news and what's 15% of $2500?"}, func(n message) {
		if n.Method == "notifications/progress" {
			seen = append(seen, decode[progress](t, n.Params))
		}
	})
	if m.Error != nil {
		t.Fatalf("process_query: got error %+v", *m.Error)
	}
	result := decode[toolResult](t, m.Result)
	a := decode[answer](t, result.StructuredContent)
	for _, want := range []string{"AI", "ai.example.com", "375"} {
		if !strings.Contains(result.text(), want) {
			t.Errorf("the answer lacks %q:\n%s", want, result.text())
		}
	}
	if a.Answer != result.text() || a.Degraded || len(a.Steps) != 2 {
		t.Errorf("got answer %q, degraded %v and %d steps, want the text, false and 2", a.Answer, a.Degraded, len(a.Steps))
	}
	fixed := map[float64]string{
		0.1: "Planning tool calls...", 0.2: "Executing 2 tools...", 0.8: "All tools complete",
		0.9: "Synthesizing response...", 1: "Complete!",
	}
	last := 0.0
	for _, p := range seen {
		if p.Progress <= last || p.Total != 1 || p.Token != "p" {
			t.Errorf("got progress %+v after %v, want it to increase, total 1 and token p", p, last)
		}
		if text, ok := fixed[p.Progress]; ok && text == p.Message {
			delete(fixed, p.Progress)
		} else if !strings.HasPrefix(p.Message, "[web_search] ") && !strings.HasPrefix(p.Message, "[calculate] ") {
			t.Errorf("got progress text %q at %v", p.Message, p.Progress)
		}
		last = p.Progress
	}
	if len(fixed) > 0 {
		t.Errorf("these were not reported: %v; got %+v", fixed, seen)
	}
}

func TestServeOps(t *testing.T) {
	t.Parallel()
	r := serve(t, "", "--demo")
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz": "ok", "/healthz": `"status": "healthy"`, "/metrics": "# HELP",
	} {
		mcptest.Eventually(t, path+" to answer "+want, func() bool { // the servers connect in the background
			resp, err := http.Get(r.url + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body strings.Builder
			_ = resp.Write(&body) // what is missing shows below
			return resp.StatusCode == http.StatusOK && strings.Contains(body.String(), want)
		})
	}
}

func TestServeKeys(t *testing.T) {
	t.Parallel()
	r := serve(t, "auth: {api_keys: [{name: ci, sha256: 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef}]}", "--demo")
	for _, tt := range []struct {
		path, header, value string
		want                int
	}{
		{"/livez", "", "", 200},
		{"/readyz", "", "", 200},
		{"/healthz", "", "", 401},
		{"/healthz", "X-API-Key", "test-key", 200},
		{"/healthz", "Authorization", "Bearer test-key", 200},
		{"/healthz", "Authorization", "Bearer other", 401},
		{"/metrics", "", "", 401},
		{"/sse", "", "", 401},
		{"/mcp", "X-API-Key", "other", 401},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.header != "" {
			req.Header.Set(tt.header, tt.value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("GET %s with %s %q: got status %d, want %d", tt.path, tt.header, tt.value, resp.StatusCode, tt.want)
		}
	}
	out, err := command(r.dir, "health", "--remote", r.url).CombinedOutput()
	if err == nil || !strings.HasSuffix(string(out), "401 Unauthorized; set NEXUS_API_KEY to one of its keys\n") {
		t.Errorf("health without a key: got %q and %v, want to be told to set NEXUS_API_KEY", out, err)
	}
	if strings.Contains(r.log.String(), "test-key") {
		t.Error("the log shows a key")
	}
}

// Any request is served without a handshake, and what no tool is called is refused by its name.
func TestServeLenient(t *testing.T) {
	t.Parallel()
	r := serve(t, "", "--demo")
	m := post(t, r.url+"/mcp", request("a", "tools/list", map[string]any{}), nil)
	if string(m.ID) != `"a"` {
		t.Errorf("got id %s, want \"a\"", m.ID)
	}
	list := decode[struct {
		Tools []struct{ Name string }
	}](t, m.Result)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"health_check", "list_available_tools", "process_query", "run", "search_available_tools"}; !slices.Equal(names, want) {
		t.Errorf("got tools %v, want %v", names, want)
	}
	if m := r.tryCall("nothing", json.RawMessage("{}"), nil); m.Error == nil || m.Error.Code != -32602 || m.Error.Message != "Unknown tool: nothing" {
		t.Errorf("calling nothing: got %+v, want error -32602 Unknown tool: nothing", m)
	}
	if got := r.run("calculator__calculate", map[string]any{"expression": "2^10"}).text(); got != "1024" {
		t.Errorf("2^10: got %q, want 1024", got)
	}
}
