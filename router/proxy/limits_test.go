package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// stocked is a server that has everything and answers every method.
func stocked() *server {
	s := newServer("get", "put")
	s.caps = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}`
	s.lists["prompts/list"] = []string{`{"name":"open"}`, `{"name":"secret"}`}
	s.lists["resources/list"] = []string{`{"uri":"doc:///pub/x","name":"x"}`, `{"uri":"doc:///key","name":"k"}`}
	s.lists["resources/templates/list"] = []string{`{"uriTemplate":"doc:///pub/{n}","name":"t"}`, `{"uriTemplate":"doc:///{n}","name":"u"}`}
	s.on = func(r *request) bool {
		switch r.Method {
		case "prompts/get", "resources/read", "completion/complete", "acme/secret", "Tools/Call", "resources/Read", "tools/callAll":
			r.result(`{"reached":` + quote(r.Method) + `}`)
			return true
		}
		return false
	}
	return s
}

// limited are callers with keys, by name.
var limited = map[string]auth.KeyConfig{
	"all":     {},
	"servers": {Servers: []string{"hr"}},
	"tools":   {Tools: auth.Filter{Allow: []string{"hr__get"}}},
	"denied":  {Tools: auth.Filter{Deny: []string{"hr__put"}}},
	"some": {Tools: auth.Filter{Allow: []string{"hr__get"}}, Resources: auth.AllowList{Allow: []string{"hr__doc:///pub/*"}},
		Prompts: auth.AllowList{Allow: []string{"hr__open"}}},
}

func limitedKeys() (keys []auth.KeyConfig) {
	for name, key := range limited {
		key.Name, key.Key = name, redact.Secret("secret-key-"+name)
		keys = append(keys, key)
	}
	return keys
}

// A caller that is limited to tools reaches nothing else of a server, on any surface and in any spelling.
func TestLimitedCallers(t *testing.T) {
	hr, other := stocked(), stocked()
	w := newWorld(t, func(s *setup) { s.edge.Keys = restricted(t, limitedKeys()...) },
		place{"hr", overHTTP, hr, ""}, place{"other", overHTTP, other, ""})
	w.wait("hr", "other")
	read := func(uri string) string { return fmt.Sprintf(`{"uri":%q}`, uri) }
	prompt := func(name string) string { return fmt.Sprintf(`{"name":%q}`, name) }
	ref := func(kind, member, name string) string {
		return fmt.Sprintf(`{"ref":{"type":"ref/%s",%q:%q},"argument":{"name":"a","value":"b"}}`, kind, member, name)
	}
	ok := "reached"
	for _, row := range []struct {
		path, method, params string
		want                 map[string]string // by key: names of a list, reached, or the error; others as of "tools"
	}{
		{"/proxy/mcp", "tools/list", "", map[string]string{"all": "hr__get hr__put other__get other__put", "servers": "hr__get hr__put",
			"denied": "hr__get other__get other__put", "tools": "hr__get"}},
		{"/servers/hr/mcp", "tools/list", "", map[string]string{"all": "get put", "servers": "get put", "tools": "get"}},
		{"/proxy/mcp", "prompts/list", "", map[string]string{"all": "hr__open hr__secret other__open other__secret",
			"servers": "hr__open hr__secret", "tools": "", "some": "hr__open"}},
		{"/servers/hr/mcp", "prompts/list", "", map[string]string{"all": "open secret", "servers": "open secret", "tools": "", "some": "open"}},
		{"/proxy/mcp", "resources/list", "", map[string]string{"servers": "hr__doc:///pub/x hr__doc:///key", "tools": "",
			"all": "hr__doc:///pub/x hr__doc:///key other__doc:///pub/x other__doc:///key", "some": "hr__doc:///pub/x"}},
		{"/servers/hr/mcp", "resources/list", "", map[string]string{"all": "doc:///pub/x doc:///key", "servers": "doc:///pub/x doc:///key",
			"tools": "", "some": "doc:///pub/x"}},
		{"/servers/hr/mcp", "resources/templates/list", "", map[string]string{"all": "doc:///pub/{n} doc:///{n}",
			"servers": "doc:///pub/{n} doc:///{n}", "tools": "", "some": "doc:///pub/{n}"}},
		{"/proxy/mcp", "prompts/get", prompt("hr__open"), map[string]string{"all": ok, "servers": ok, "some": ok,
			"tools": "-32602 Unknown prompt: hr__open"}},
		{"/proxy/mcp", "prompts/get", prompt("hr__secret"), map[string]string{"all": ok, "servers": ok,
			"tools": "-32602 Unknown prompt: hr__secret"}},
		{"/proxy/mcp", "prompts/get", prompt("other__open"), map[string]string{"all": ok, "tools": "-32602 Unknown prompt: other__open"}},
		{"/servers/hr/mcp", "prompts/get", prompt("secret"), map[string]string{"all": ok, "servers": ok, "tools": "-32602 Unknown prompt: secret"}},
		{"/proxy/mcp", "resources/read", read("hr__doc:///pub/y"), map[string]string{"all": ok, "servers": ok, "some": ok,
			"tools": "-32602 Unknown resource: hr__doc:///pub/y"}},
		{"/proxy/mcp", "resources/read", read("hr+doc:///key"), map[string]string{"all": ok, "servers": ok,
			"tools": "-32602 Unknown resource: hr+doc:///key"}},
		{"/servers/hr/mcp", "resources/read", read("doc:///key"), map[string]string{"all": ok, "servers": ok, "tools": "-32602 Unknown resource: doc:///key"}},
		{"/servers/hr/mcp", "resources/read", read("doc:///pub/../key"), map[string]string{"all": ok, "servers": ok,
			"tools": "-32602 Unknown resource: doc:///pub/../key"}},
		{"/servers/hr/mcp", "resources/read", `{"uri":"doc:///pub/x","URI":"doc:///key"}`, map[string]string{
			"all":   "-32602 Invalid params: uri must be a string and appear once",
			"tools": "-32602 Invalid params: uri must be a string and appear once"}},
		{"/servers/hr/mcp", "resources/subscribe", read("doc:///key"), map[string]string{"all": "{}", "servers": "{}",
			"tools": "-32602 Unknown resource: doc:///key"}},
		{"/proxy/mcp", "resources/unsubscribe", read("hr__doc:///key"), map[string]string{"all": "{}", "servers": "{}",
			"tools": "-32602 Unknown resource: hr__doc:///key"}},
		{"/proxy/mcp", "resources/subscribe", read("hr__doc:///pub/x"), map[string]string{"all": "{}", "servers": "{}", "some": "{}",
			"tools": "-32602 Unknown resource: hr__doc:///pub/x"}},
		{"/proxy/mcp", "completion/complete", ref("prompt", "name", "hr__open"), map[string]string{"all": ok, "servers": ok, "some": ok,
			"tools": "-32602 Unknown reference: hr__open"}},
		{"/servers/hr/mcp", "completion/complete", ref("prompt", "name", "secret"), map[string]string{"all": ok, "servers": ok,
			"tools": "-32602 Unknown reference: secret"}},
		{"/servers/hr/mcp", "completion/complete", ref("resource", "uri", "doc:///{n}"), map[string]string{"all": ok, "servers": ok,
			"tools": "-32602 Unknown reference: doc:///{n}"}},
		{"/servers/hr/mcp", "completion/complete", `{"ref":{"type":"ref/prompt","name":"open","Name":"secret"}}`, map[string]string{
			"all": ok, "servers": ok, "tools": "-32602 Unknown reference: open"}},
		{"/servers/hr/mcp", "completion/complete", `{"ref":{"type":"REF/PROMPT","name":"open"}}`, map[string]string{
			"all": ok, "servers": ok, "tools": "-32602 Unknown reference: open"}},
		{"/servers/hr/mcp", "acme/secret", "{}", map[string]string{"all": ok, "servers": ok, "tools": "-32601 Method not found: acme/secret"}},
		{"/servers/hr/mcp", "tools/callAll", prompt("put"), map[string]string{"all": ok, "servers": ok, "tools": "-32601 Method not found: tools/callAll"}},
		{"/servers/hr/mcp", "Tools/Call", prompt("put"), map[string]string{"all": "-32601 Method not found: Tools/Call",
			"tools": "-32601 Method not found: Tools/Call"}},
		{"/servers/hr/mcp", "resources/Read", read("doc:///key"), map[string]string{"all": "-32601 Method not found: resources/Read",
			"tools": "-32601 Method not found: resources/Read"}},
		{"/proxy/mcp", "acme/secret", "{}", map[string]string{"all": "-32601 Method not found: acme/secret",
			"tools": "-32601 Method not found: acme/secret"}},
		{"/servers/hr/mcp", "logging/setLevel", `{"level":"info"}`, map[string]string{"all": "{}", "tools": "{}"}},
		{"/servers/other/mcp", "prompts/list", "", map[string]string{"all": "open secret", "denied": "",
			"servers": "-32602 Unknown server: other", "tools": "-32602 Unknown server: other"}},
	} {
		for name := range limited {
			want, given := row.want[name]
			if !given && row.want["all"] == row.want["tools"] || !given && name == "servers" && strings.Contains(row.want["tools"], " ") {
				want, given = row.want["tools"], true
			}
			if !given {
				want = row.want["tools"]
			}
			c := w.newClient(row.path)
			c.header.Set("X-API-Key", "secret-key-"+name)
			a := c.do(row.method, row.params)
			var got string
			switch kind, _, list := strings.Cut(row.method, "/list"); {
			case a.err != "":
				got = fmt.Sprintf("%s %s", jsonrpc.Get([]byte(a.err), "code"), jsonrpc.Text(jsonrpc.Get([]byte(a.err), "message")))
			case strings.HasSuffix(row.method, "/subscribe"), strings.HasSuffix(row.method, "unsubscribe"):
				got = a.result
			case strings.Contains(a.result, `"reached"`):
				got = ok
			case list && kind == "resources/templates":
				got = strings.Join(names(a.result, "resourceTemplates", "uriTemplate"), " ")
			case list && kind == "resources":
				got = strings.Join(names(a.result, "resources", "uri"), " ")
			case list:
				got = strings.Join(names(a.result, kind, "name"), " ")
			default:
				got = a.result
			}
			if strings.HasSuffix(row.method, "subscribe") && strings.Contains(got, "needs a session") {
				c.hello()
				a = c.do(row.method, row.params)
				if got = a.result; a.err != "" {
					got = fmt.Sprintf("%s %s", jsonrpc.Get([]byte(a.err), "code"), jsonrpc.Text(jsonrpc.Get([]byte(a.err), "message")))
				}
			}
			if got != want {
				t.Errorf("%s %s %s as %s: got %q, want %q", row.path, row.method, row.params, name, got, want)
			}
		}
	}
	for _, s := range []*server{hr, other} {
		if got := slices.Concat(s.got("Tools/Call"), s.got("resources/Read")); len(got) > 0 {
			t.Errorf("methods in another case: got %q at the server, want none", got)
		}
	}
}

// Notifications reach a limited caller only if they announce something that it may use, and its own do not pass where
// they could mean anything.
func TestLimitedNotifications(t *testing.T) {
	hr := stocked()
	w := newWorld(t, func(s *setup) { s.edge.Keys = restricted(t, limitedKeys()...) }, place{"hr", overPipe, hr, ""})
	w.wait("hr")
	open := func(name string) *client {
		c := w.newClient(proxyPath)
		c.header.Set("X-API-Key", "secret-key-"+name)
		c.hello()
		c.listen()
		return c
	}
	tools, some, all := open("tools"), open("some"), open("all")
	for _, c := range []*client{some, all} {
		if a := c.do("resources/subscribe", `{"uri":"hr__doc:///pub/x"}`); a.result != "{}" {
			t.Fatalf("subscribe: got %s", a.err)
		}
	}
	for _, method := range []string{"prompts/list_changed", "resources/list_changed", "acme/news", "tools/list_changed"} {
		hr.say(`{"jsonrpc":"2.0","method":"notifications/` + method + `"}`)
	}
	for _, uri := range []string{"doc:///pub/x/../../key", "doc:///pub/x"} {
		hr.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
	}
	heard := func(c *client) (all []string) {
		for _, raw := range c.heard() {
			m := []byte(raw)
			all = append(all, strings.TrimPrefix(jsonrpc.Text(jsonrpc.Get(m, "method")), "notifications/")+
				jsonrpc.Text(jsonrpc.Get(m, "params", "uri")))
		}
		return all
	}
	mcptest.Eventually(t, "all is told", func() bool { return len(heard(all)) == 6 && len(heard(some)) == 4 && len(heard(tools)) == 1 })
	if got, want := fmt.Sprint(heard(tools)), "[tools/list_changed]"; got != want {
		t.Errorf("tools: got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(heard(some)), "[prompts/list_changed resources/list_changed tools/list_changed resources/updatedhr__doc:///pub/x]"; got != want {
		t.Errorf("some: got %s, want %s", got, want)
	}
	tools.notify("notifications/acme/do", "{}")
	tools.notify("Tools/Call", `{"name":"put"}`)
	all.notify("Tools/Call", `{"name":"put"}`)
	all.notify("notifications/acme/do", "{}")
	mcptest.Eventually(t, "a notification of an unlimited caller passes", func() bool { return len(hr.got("notifications/acme/do")) > 0 })
	if n, m := len(hr.got("notifications/acme/do")), len(hr.got("Tools/Call")); n != 1 || m != 0 {
		t.Errorf("got %d vendor notifications and %d calls without id, want one and none", n, m)
	}
	if !strings.Contains(w.logs.String(), "dropped a notification that the caller may not send") {
		t.Error("the dropped notification is not logged")
	}
}
