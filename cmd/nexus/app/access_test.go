package app_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router"
)

// keys configures API keys that are named as they read.
func keys(all ...string) (out []auth.KeyConfig) {
	for _, key := range all {
		out = append(out, auth.KeyConfig{Name: key, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(key)))})
	}
	return out
}

func bearer(key string) map[string]string { return map[string]string{"Authorization": "Bearer " + key} }

func basic(password string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+password))}
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"api_key":"%s"}}}`

func TestKeys(t *testing.T) {
	p := newPeer(echoTool("echo"))
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = keys("good", "fine")
		o.Config.Servers = append(o.Config.Servers, server("peer", p.serve(t).URL))
	})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	call := func(key string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"echo"},"_meta":{"api_key":"` + key + `","other":1}}}`
	}
	for _, row := range []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		want                     string
	}{
		{"bearer", "POST", "/mcp", list, bearer("good"), 200, "process_query"},
		{"_meta.api_key", "POST", "/mcp", fmt.Sprintf(listTools, "good"), nil, 200, "process_query"},
		{"_meta.api_key of a call", "POST", "/mcp", call("good"), nil, 200, `"structuredContent":{}`},
		{"none", "POST", "/mcp", list, nil, 401, "key"},
		{"wrong bearer", "POST", "/mcp", list, bearer("bad"), 401, "key"},
		{"wrong _meta.api_key of a call, text", "POST", "/mcp", call("bad"), nil, 200, `Invalid API key`},
		{"sse without", "GET", "/sse", "", nil, 401, "key"},
		{"livez", "GET", "/livez", "", nil, 200, "ok"},
		{"readyz", "GET", "/readyz", "", nil, 200, "ok"},
		{"healthz without", "GET", "/healthz", "", nil, 401, "key"},
		{"healthz", "GET", "/healthz", "", bearer("good"), 200, `"servers"`},
		{"a page with the key as password", "GET", "/ui/", "", basic("good"), 200, "<html"},
		{"a page with a wrong password", "GET", "/ui/", "", basic("bad"), 401, "key"},
		{"healthz with the key as password", "GET", "/healthz", "", basic("good"), 200, `"servers"`},
		{"healthz with a key and the password of a proxy", "GET", "/healthz", "", map[string]string{"X-API-Key": "good", "Authorization": basic("bad")["Authorization"]}, 200, `"servers"`},
		{"no password for /mcp", "POST", "/mcp", list, basic("good"), 401, "key"},
		{"metrics", "GET", "/metrics", "", map[string]string{"X-API-Key": "good"}, 200, "nexus_"},
	} {
		t.Run(row.name, func(t *testing.T) {
			resp, text := r.raw(row.method, row.path, row.body, row.header)
			if resp.StatusCode != row.status || !strings.Contains(text, row.want) {
				t.Errorf("got %d %s, want %d with %q", resp.StatusCode, text, row.status, row.want)
			}
			if got := resp.Header.Get("WWW-Authenticate"); (got != "") != (row.status == 401) {
				t.Errorf("WWW-Authenticate: got %q with status %d", got, resp.StatusCode)
			}
		})
	}
	for _, params := range p.calls() {
		if strings.Contains(params, "good") || !strings.Contains(params, `"other":1`) {
			t.Errorf("the server got %s, want _meta without the key", params)
		}
	}
	c, _ := r.dialStdio("")
	if got := names(c.list()); len(got) != len(ownTools) {
		t.Errorf("stdio without a key: got %v, want the tools", got)
	}
	if log := r.logs.String(); strings.Contains(log, `good"`) && strings.Contains(log, `Bearer good`) {
		t.Error("log: got a key in it, want none")
	}
}

// What a caller may not use it does not see, by any name and on any way.
func TestAllowLists(t *testing.T) {
	a, b := newPeer(textTool("read", `"description":"Read a document",`+object, "A"), textTool("erase", `"description":"Erase a document",`+object, "erased")), newPeer(textTool("other", `"description":"Other document",`+object, "B"))
	m := scripted(t, "ok", `[{"tool":"read","arguments":{}},{"tool":"erase","arguments":{}},{"tool":"b__other","arguments":{}}]`)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
		o.Config.Auth.APIKeys = keys("all", "servers", "tools", "denied")
		o.Config.Auth.APIKeys[1].Servers = []string{"b"}
		o.Config.Auth.APIKeys[2].Tools = auth.Filter{Allow: []string{"a__read"}}
		o.Config.Auth.APIKeys[3].Tools = auth.Filter{Deny: []string{"*__erase", "b__*"}}
	})
	// Nobody can tell a server that is hidden from one that is not there.
	for _, method := range []string{"initialize", "ping", "tools/list", "server/discover"} {
		for _, key := range []string{"", "servers"} {
			answer := func(server string) string {
				header := map[string]string{}
				if key != "" {
					header = bearer(key)
				}
				resp, text := r.raw("POST", "/servers/"+server+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+fmt.Sprintf(initializeParams, "{}")+`}`, header)
				return fmt.Sprint(resp.StatusCode, strings.ReplaceAll(text, ": "+server+`"`, `: SERVER"`))
			}
			if hidden, none := answer("a"), answer("none"); key != "" && hidden != none || hidden[:3] != none[:3] {
				t.Errorf("%s with key %q: got %s of a hidden server and %s of none, want the same", method, key, hidden, none)
			}
		}
	}
	for _, row := range []struct{ key, tools, servers, steps string }{
		{"all", "read erase other", "a b", `s1=a/read{}; s2=a/erase{}; s3=b/other{}`},
		{"servers", "other", "b", `s1=/read{} unknown_tool; s2=/erase{} unknown_tool; s3=b/other{}`},
		{"tools", "read", "a", `s1=a/read{}; s2=/erase{} unknown_tool; s3=/b__other{} unknown_tool`},
		{"denied", "read", "a", `s1=a/read{}; s2=/erase{} unknown_tool; s3=/b__other{} unknown_tool`},
	} {
		t.Run(row.key, func(t *testing.T) {
			c := r.dial("", bearer(row.key))
			c.t = t
			may := func(tool string) bool { return strings.Contains(row.tools, tool) }
			var list struct{ Tools []router.ToolInfo }
			c.structured("list_available_tools", c.call("list_available_tools", `{}`, ""), &list)
			var listed []string
			for _, tool := range list.Tools {
				listed = append(listed, tool.Name)
			}
			if got := strings.Join(listed, " "); got != row.tools {
				t.Errorf("list_available_tools: got %s, want %s", got, row.tools)
			}
			var found struct{ Tools []router.FoundTool }
			c.structured("search_available_tools", c.call("search_available_tools", `{"query":"document"}`, ""), &found)
			if len(found.Tools) != len(listed) {
				t.Errorf("search: got %v, want %s", found.Tools, row.tools)
			}
			for full, tool := range map[string]string{"a__read": "read", "a__erase": "erase", "b__other": "other"} {
				for _, reply := range []*reply{c.call("run", `{"tool":"`+full+`"}`, ""), c.call("run", `{"tool":"`+tool+`"}`, ""), c.call(full, `{}`, ""), c.call("run", `{"tool":"`+full+`","dry_run":true}`, "")} {
					if may(tool) != (reply.Error == nil) {
						t.Errorf("%s: got %s %s, want it to work: %v", full, reply.Result, reply.Error, may(tool))
					}
					if !may(tool) {
						wantError(t, reply, -32602, "Unknown tool: ", "")
					}
				}
			}
			var h router.Health
			c.structured("health_check", c.call("health_check", `{}`, ""), &h)
			for _, name := range []string{"a", "b"} {
				sees := strings.Contains(row.servers, name)
				if _, ok := h.Servers[name]; ok != sees {
					t.Errorf("health of %s: got it: %v, want %v", name, ok, sees)
				}
				for _, call := range []struct{ tool, arguments string }{{"health_check", `{"server":"` + name + `"}`}, {"list_available_tools", `{"server":"` + name + `"}`}, {"process_query", `{"query":"q","dry_run":true,"servers":["` + name + `"]}`}} {
					result := c.result(c.call(call.tool, call.arguments, ""))
					if result.IsError == sees {
						t.Errorf("%s %s: got isError %v, want %v", call.tool, call.arguments, result.IsError, !sees)
					}
					if other := strings.TrimSpace(strings.Replace("a b", row.servers, "", 1)); result.IsError && strings.Contains(result.text(), "known: a, b") {
						t.Errorf("%s: got %q, want nothing of server %s", call.tool, result.text(), other)
					}
				}
			}
			_, metrics := r.raw("GET", "/metrics", "", bearer(row.key))
			for _, name := range []string{"a", "b"} {
				if got, want := strings.Contains(metrics, `server="`+name+`"`), strings.Contains(row.servers, name); got != want {
					t.Errorf("/metrics of %s: got it: %v, want %v", name, got, want)
				}
			}
			for _, name := range []string{"nexus_sessions", "nexus_query_duration_seconds"} { // of all callers together
				if strings.Contains(metrics, name) {
					t.Errorf("/metrics of %s: got %s, want it of an operator alone", row.key, name)
				}
			}
			_, healthz := r.raw("GET", "/healthz", "", bearer(row.key))
			for _, name := range []string{"a", "b"} {
				sees := strings.Contains(row.servers, name)
				if got := strings.Contains(healthz, `"`+name+`": {`); got != sees {
					t.Errorf("/healthz of %s: got it: %v, want %v", name, got, sees)
				}
				initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + fmt.Sprintf(initializeParams, "{}") + `}`
				_, hello := r.raw("POST", "/servers/"+name+"/mcp", initialize, bearer(row.key))
				if got := !strings.Contains(hello, `"code":-32602,"message":"Unknown server: `+name+`"`); got != sees {
					t.Errorf("/servers/%s/mcp: got %s, want it to be there: %v", name, hello, sees)
				}
			}
			before := len(m.Requests())
			answer := c.query(`{"query":"q"}`)
			if got := brief(answer); got != row.steps {
				t.Errorf("steps: got %s, want %s", got, row.steps)
			}
			if prompt := m.Requests()[before].Text; strings.Contains(prompt, "Erase a") != may("erase") || strings.Contains(prompt, "Other") != may("other") {
				t.Errorf("prompt: got %s, want %s alone", prompt, row.tools)
			}
		})
	}
}

// A server's tool that counts does so on every surface and under every name, once for each call.
func TestRateLimitOfServerTools(t *testing.T) {
	p := newPeer(textTool("get", object, "got"), textTool("free", object, "free"))
	url := p.serve(t).URL
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		o.Config.RateLimit.Requests, o.Config.RateLimit.Per = 5, time.Minute
		o.Config.RateLimit.Tools = []string{"peer__get", "run"}
	})
	calls := [][2]string{
		{"/mcp", `"name":"peer__get"`}, {"/mcp", `"name":"run","arguments":{"tool":"get"}`}, {"/mcp", `"name":"run","arguments":{"tool":"free"}`},
		{"/proxy/mcp", `"name":"peer__get"`}, {"/servers/peer/mcp", `"name":"get"`},
	}
	for _, want := range []string{`"text"`, "Rate limit exceeded"} {
		for _, call := range calls {
			_, got := r.raw("POST", call[0], `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call[1]+`}}`, nil)
			if !strings.Contains(got, want) || strings.Contains(got, "Rate limit") != (want != `"text"`) {
				t.Errorf("%s %s: got %s, want %s", call[0], call[1], got, want)
			}
		}
	}
	if _, got := r.raw("POST", "/servers/peer/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free"}}`, nil); strings.Contains(got, "Rate limit") {
		t.Errorf("a tool that does not count: got %s", got)
	}
}

func TestBindRefused(t *testing.T) {
	for _, row := range []struct {
		listen    string
		anonymous bool
		keys      []auth.KeyConfig
		refused   bool
	}{
		{"0.0.0.0:0", false, nil, true}, {"[::]:0", false, nil, true}, {":0", false, nil, true},
		{"0.0.0.0:0", true, nil, false}, {"0.0.0.0:0", false, keys("k"), false}, {"localhost:0", false, nil, false},
	} {
		t.Run(fmt.Sprintf("%s %v %d", row.listen, row.anonymous, len(row.keys)), func(t *testing.T) {
			r := prepare(t, func(o *app.Options) {
				o.Config.Listen, o.Config.Auth.Anonymous, o.Config.Auth.APIKeys = row.listen, row.anonymous, row.keys
			})
			err := r.Listen(t.Context())
			if wrong := new(config.Error); errors.As(err, &wrong) != row.refused || (err != nil) != row.refused {
				t.Errorf("Listen on %s: got %v, want it refused as a mistake of the configuration: %v", row.listen, err, row.refused)
			}
		})
	}
}

// However loopback is written, a router that listens there answers nobody who thinks it is elsewhere.
func TestLoopbackHost(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "[::ffff:127.0.0.1]:0"} {
		r := start(t, func(o *app.Options) { o.Config.Listen = listen })
		for host, want := range map[string]int{"localhost": http.StatusOK, "evil.example": http.StatusForbidden} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.base+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Host, req.Close = host, true
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s, host %s: got status %d, want %d", listen, host, resp.StatusCode, want)
			}
		}
	}
}

// A server that a key may not use is named nowhere, also when it cannot be reached.
func TestUnreachableServersAreHidden(t *testing.T) {
	m := scripted(t, "ok", `[{"tool":"echo","arguments":{}}]`)
	r, _ := withPeer(t, m, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("hidden", "http://127.0.0.1:1/mcp"))
		restricted("some", "peer")(o)
		restricted("other", "hidden")(o)
	}, echoTool("echo"))
	c := r.dial("", bearer("some"))
	for tool, arguments := range map[string]string{"process_query": `{"query":"q"}`, "list_available_tools": `{}`, "search_available_tools": `{"query":"echo"}`, "health_check": `{}`, "run": `{"tool":"hidden__x"}`} {
		reply := c.call(tool, arguments, "")
		if text := string(reply.Result) + strings.Replace(string(reply.Error), "hidden__x", "", 1); strings.Contains(text, "hidden") {
			t.Errorf("%s: got %s, want nothing of the server", tool, text)
		}
	}
	if got := r.dial("", bearer("other")).refused("search_available_tools", `{"query":"echo"}`); !strings.Contains(got, "hidden") || strings.Contains(got, "peer") {
		t.Errorf("a search over a server that is down: got %q, want it named", got)
	}
}
