package app_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// On a profile a caller sees and uses what the profile and its key allow, whichever surface it has.
func TestProfiles(t *testing.T) {
	a := newPeer(textTool("read", `"description":"Read a document",`+object, "A"), textTool("erase", `"description":"Erase a document",`+object, "erased"))
	b := newPeer(textTool("other", `"description":"Other document",`+object, "B"))
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
		o.Config.Auth.APIKeys = keys("all")
		restricted("some", "b")(o)
		o.Config.Profiles = map[string]config.Profile{
			"reader": {Servers: []string{"a"}, Tools: auth.Filter{Allow: []string{"a__r*"}}},
			"tools":  {Tools: auth.Filter{Deny: []string{"*__erase"}}, Surface: config.SurfaceProxy},
		}
	})
	list := func(method string) string { return `{"jsonrpc":"2.0","id":1,"method":"` + method + `"}` }
	call := func(tool, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	}
	for _, row := range []struct {
		path, key, body string
		has, lacks      []string
	}{
		{"reader", "all", list("tools/list"), []string{`"process_query"`}, nil},
		{"reader", "all", call("list_available_tools", "{}"), []string{`"read"`}, []string{"erase", "other"}},
		{"reader", "all", call("run", `{"tool":"a__read"}`), []string{`"text":"A"`}, nil},
		{"reader", "all", call("a__read", "{}"), []string{`"text":"A"`}, nil},
		{"reader", "all", call("run", `{"tool":"a__erase"}`), []string{"Unknown tool: a__erase"}, nil},
		{"reader", "all", call("b__other", "{}"), []string{"Unknown tool: b__other"}, nil},
		{"reader", "all", call("process_query", `{"query":"q","plan":[{"tool":"read"},{"tool":"erase"}]}`), []string{`"reason":"unknown_tool"`}, []string{"erased"}},
		{"reader", "all", call("health_check", "{}"), []string{`"a":`}, []string{`"b":`}},
		{"reader", "some", call("list_available_tools", "{}"), []string{`"tools":[]`}, []string{"read"}},
		{"reader", "some", call("run", `{"tool":"b__other"}`), []string{"Unknown tool"}, nil},
		{"tools", "all", list("tools/list"), []string{`"a__read"`, `"b__other"`}, []string{"erase", "process_query"}},
		{"tools", "all", call("a__erase", "{}"), []string{"Unknown tool"}, []string{"erased"}},
		{"tools", "all", call("a__read", "{}"), []string{`"text":"A"`}, nil},
		{"tools", "some", list("tools/list"), []string{`"b__other"`}, []string{"a__read"}},
	} {
		resp, text := r.raw("POST", "/profiles/"+row.path+"/mcp", row.body, bearer(row.key))
		for _, want := range row.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s with %s: %s: got %d %s, want %s in it", row.path, row.key, row.body, resp.StatusCode, text, want)
			}
		}
		for _, never := range row.lacks {
			if strings.Contains(text, never) {
				t.Errorf("%s with %s: %s: got %s, want no %s in it", row.path, row.key, row.body, text, never)
			}
		}
	}
	for path, status := range map[string]int{"/profiles/none/mcp": 404, "/profiles/reader/sse": 404, "/profiles/reader/mcp": 401} {
		if resp, _ := r.raw("POST", path, list("tools/list"), nil); resp.StatusCode != status {
			t.Errorf("%s without a key: got %d, want %d", path, resp.StatusCode, status)
		}
	}
	// What is found on one path is listed on that path alone, and so are sessions.
	r.raw("POST", "/mcp", call("search_available_tools", `{"query":"document"}`), bearer("all"))
	if _, text := r.raw("POST", "/profiles/reader/mcp", list("tools/list"), bearer("all")); strings.Contains(text, "a__read") {
		t.Errorf("after a search elsewhere: got %s, want no tool of it", text)
	}
	session := r.session("/profiles/reader/mcp", "all")
	for path, status := range map[string]int{"/profiles/reader/mcp": 200, "/profiles/tools/mcp": 404, "/mcp": 404} {
		if resp, text := r.raw("POST", path, list("tools/list"), session); resp.StatusCode != status {
			t.Errorf("the session of another path: %s: got %d %s, want %d", path, resp.StatusCode, text, status)
		}
	}
}

// A server gets the headers of callers that its forward_headers name, with the calls that they cause and no other
// request, over each transport.
func TestForwardedHeaders(t *testing.T) {
	var mu sync.Mutex
	got := map[string]http.Header{} // by method, and by what the header X-Case says
	record := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			mu.Lock()
			got[q.URL.Path+q.Header.Get("X-Case")] = q.Header.Clone()
			mu.Unlock()
			next.ServeHTTP(w, q)
		})
	}
	streamable := httptest.NewServer(record(newPeer(echoTool("echo"))))
	t.Cleanup(streamable.Close)
	old := &mcptest.Server{}
	old.SetTools(`[{"name":"old",` + object + `}]`)
	legacy := httptest.NewServer(record(http.HandlerFunc(old.ServeSSE)))
	t.Cleanup(legacy.Close)
	r := start(t, func(o *app.Options) {
		names := []string{"x-tenant", "X-Case"}
		o.Config.Servers = append(o.Config.Servers,
			downstream.ServerConfig{Name: "new", Type: downstream.TransportHTTP, URL: streamable.URL + "/new", ForwardHeaders: names},
			downstream.ServerConfig{Name: "old", Type: downstream.TransportSSE, URL: legacy.URL + "/sse", ForwardHeaders: names})
	})
	preflight, _ := r.raw("OPTIONS", "/mcp", "", map[string]string{"Origin": "http://localhost",
		"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,X-TENANT,x-other"})
	if allowed := preflight.Header.Get("Access-Control-Allow-Headers"); !strings.Contains(allowed, "x-tenant") || strings.Contains(allowed, "x-other") {
		t.Errorf("got allowed headers %q, want x-tenant among them, and no x-other", allowed)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%","arguments":`
	for _, row := range []struct{ name, path, body, to string }{
		{"run", "/mcp", strings.Replace(call, "%", "run", 1) + `{"tool":"new__echo"}}}`, "/new"},
		{"hidden", "/mcp", strings.Replace(call, "%", "new__echo", 1) + `{}}}`, "/new"},
		{"step", "/mcp", strings.Replace(call, "%", "process_query", 1) + `{"query":"q","plan":[{"tool":"echo"}]}}}`, "/new"},
		{"proxy", "/proxy/mcp", strings.Replace(call, "%", "new__echo", 1) + `{}}}`, "/new"},
		{"one", "/servers/new/mcp", strings.Replace(call, "%", "echo", 1) + `{}}}`, "/new"},
		{"sse", "/mcp", strings.Replace(call, "%", "old__old", 1) + `{}}}`, "/sse"},
	} {
		_, text := r.raw("POST", row.path, row.body, map[string]string{"X-Tenant": "7", "X-Case": row.name, "X-Other": "1", "Authorization": "Bearer k", "X-API-Key": "k", "Cookie": "c=1"})
		mu.Lock()
		h := got[row.to+row.name]
		mu.Unlock()
		if h.Get("X-Tenant") != "7" || h.Get("X-Other")+h.Get("Authorization")+h.Get("X-API-Key")+h.Get("Cookie") != "" {
			t.Errorf("%s: got %s and headers %v, want X-Tenant and no other of the caller", row.name, text, h)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if h := got[path]; !slices.Contains([]string{"run", "hidden", "step", "proxy", "one", "sse"}, h.Get("X-Case")) && h.Get("X-Tenant") != "" {
			t.Errorf("%s: got X-Tenant with a request of the router itself", path)
		}
	}
}
