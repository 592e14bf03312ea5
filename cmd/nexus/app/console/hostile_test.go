package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/browser"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const markup = `<img src=x onerror=alert(1)><script>alert(2)</script>`

// hostileNames are what servers and clients may call things.
func hostileNames() []string {
	return []string{
		"__proto__", "constructor", "toString", markup, "\x1b[31mred\x1b[0m", "\u202etxt.exe", strings.Repeat("endless", 300),
		"../../etc/passwd", "a/b?c#d%2e", "' onclick='alert(1)", "javascript:alert(1)",
	}
}

func quoted(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hostileServer has tools, parameters and results with such names.
func hostileServer(t *testing.T) string {
	s := &mcptest.Server{Stateless: true}
	var tools []string
	properties := map[string]any{}
	for _, name := range hostileNames() {
		properties[name] = map[string]any{"type": "string", "title": name, "description": name, "default": name}
	}
	for _, name := range hostileNames() {
		tools = append(tools, quoted(t, map[string]any{"name": name, "title": name, "description": strings.Repeat(name+" ", 20),
			"inputSchema": map[string]any{"type": "object", "properties": properties}}))
	}
	s.SetTools("[" + strings.Join(tools, ",") + "]")
	s.OnMessage = func(_ context.Context, m mcptest.Message, send func(string)) bool {
		if m.Method != "tools/call" {
			return false
		}
		send(m.Response(quoted(t, map[string]any{"content": []any{map[string]any{"type": "text", "text": strings.Join(hostileNames(), "\n")}}, "structuredContent": properties,
			"isError": strings.Contains(string(m.Params), "constructor")})))
		return true
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// Whatever servers and clients call things, the page shows it as text, stays within the screen and works.
func testHostileNames(t *testing.T, b *browser.Browser, _ *site) {
	s := open(t, func(o *app.Options) {
		o.Config.Servers = []downstream.ServerConfig{{Name: "hostile", Type: downstream.TransportHTTP, URL: hostileServer(t)}}
	})
	var steps []string
	for i, name := range hostileNames() {
		s.post("hostile__"+name, "{}")
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%s,"arguments":{%s:"x"}}`, i, quoted(t, name), quoted(t, name)))
	}
	s.post("process_query", fmt.Sprintf(`{"query":%s,"plan":{"steps":[%s]}}`, quoted(t, "Hostile "+strings.Join(hostileNames(), " ")), strings.Join(steps, ",")))
	id := s.newest("hostile")
	p := b.Open(t, s.base+"/ui/", browser.Options{Dark: true, Phone: true})
	for view, has := range map[string]string{
		"#/now": "Needs attention", "#/servers": "hostile", "#/servers/hostile": "Changes of state", "#/tools": "constructor",
		"#/queries": "Hostile", fmt.Sprintf("#/queries/%d", id): "The plan as it ran", fmt.Sprintf("#/queries/%d/s1/__proto__.title", id): "s1",
		"#/tools/hostile/constructor": "Input schema", "#/__proto__": "Needs attention", "#/constructor": "Needs attention",
	} {
		visit(p, view, has)
		if wide := browser.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
			t.Errorf("%s: the page is %v pixels too wide", view, wide)
		}
		if n := browser.Eval[float64](p, `document.querySelectorAll("main img, main script, [onclick], [onerror]").length`); n != 0 {
			t.Errorf("%s: got %v elements of markup, want none", view, n)
		}
	}
	p.Check()
}
