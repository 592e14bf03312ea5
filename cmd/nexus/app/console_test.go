package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// consoleEntries is a page of the history.
type consoleEntries struct {
	Entries []struct {
		ID                                 uint64
		Kind, Caller, Outcome, Text, Error string
		Uses                               []struct {
			Server, Tool  string
			Calls, Failed int
		}
	}
	More uint64
}

// get reads a path of the page's interface.
func (r *running) get(path string, header map[string]string, into any) int {
	r.t.Helper()
	resp, text := r.raw("GET", "/ui/api/"+path, "", header)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		r.t.Fatalf("GET %s: %d %s: %v", path, resp.StatusCode, text, err)
	}
	return resp.StatusCode
}

// history waits until the history has so many entries for a key, and returns them, the newest first.
func (r *running) history(query string, header map[string]string, want int) (page consoleEntries) {
	r.t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
		page = consoleEntries{}
		r.get("queries?"+query, header, &page)
		if len(page.Entries) >= want {
			break
		}
		if time.Now().After(end) {
			r.t.Fatalf("history %s: got %+v, want %d entries", query, page, want)
		}
	}
	if len(page.Entries) != want {
		r.t.Fatalf("history %s: got %+v, want %d entries", query, page, want)
	}
	return page
}

// restricted adds a key that may use one server only.
func restricted(key, server string) func(*app.Options) {
	return func(o *app.Options) {
		limited := keys(key)[0]
		limited.Servers = []string{server}
		o.Config.Auth.APIKeys = append(o.Config.Auth.APIKeys, limited)
	}
}

const (
	askPlan = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"q of %s","plan":%s}}}`
	runTool = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{}}}`
)

func failTool(name string) peerTool {
	return peerTool{name, object, func(*peerCall) (string, string) {
		return `{"content":[{"type":"text","text":"broken inside"}],"isError":true}`, ""
	}}
}

// with returns a copy of headers with another one.
func with(header map[string]string, name, value string) map[string]string {
	all := maps.Clone(header)
	all[name] = value
	return all
}

// operators are keys without limits that see all callers.
func operators(names ...string) []auth.KeyConfig {
	all := keys(names...)
	for i := range all {
		all[i].Ops = true
	}
	return all
}

// Whoever is no operator sees its own queries, calls and sessions on every path of the page, also after a restart: keys
// without limits, and addresses where nobody needs a key.
func TestConsoleShowsCallersTheirOwn(t *testing.T) {
	from := func(address string) map[string]string { return map[string]string{"X-Forwarded-For": address} }
	for name, row := range map[string]struct {
		listen    string
		anonymous bool
		keys      []auth.KeyConfig
		one, two  map[string]string
		all       map[string]string // who sees both; nil = nobody
		two64     map[string]string // another address of two
	}{
		"keys":      {"127.0.0.1:0", false, slices.Concat(keys("one", "two"), operators("ops")), bearer("one"), bearer("two"), bearer("ops"), nil},
		"addresses": {"0.0.0.0:0", true, nil, from("192.0.2.1"), from("2001:db8::2"), nil, from("2001:db8::3")},
		"proxied":   {"127.0.0.1:0", false, nil, from("192.0.2.1"), from("192.0.2.2"), from("127.0.0.1"), nil},
		"loopback":  {"127.0.0.1:0", false, nil, from("192.0.2.1"), from("192.0.2.2"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			url, state := newPeer(echoTool("echo"), failTool("fails")).serve(t).URL, t.TempDir()
			release := make(chan struct{})
			gate := peerTool{"gate", object, func(c *peerCall) (string, string) {
				select {
				case <-release:
				case <-c.ctx.Done():
				}
				return textResult("open"), ""
			}}
			gates := newPeer(gate).serve(t).URL
			begin := func() *running {
				r := start(t, func(o *app.Options) {
					o.Config.Listen, o.Config.Auth.Anonymous, o.Config.Auth.APIKeys, o.Config.State = row.listen, row.anonymous, row.keys, state
					if name != "loopback" {
						o.Config.TrustedProxies = []string{"127.0.0.0/8"}
					}
					o.Config.Servers = append(o.Config.Servers, server("peer", url), server("gates", gates))
				})
				r.base = "http://127.0.0.1:" + r.Addr()[strings.LastIndex(r.Addr(), ":")+1:]
				return r
			}
			ask := func(who string, plan string) string { return fmt.Sprintf(askPlan, who, plan) }
			r := begin()
			plan := `[{"tool":"echo","arguments":{}},{"tool":"fails","arguments":{}}]`
			r.raw("POST", "/mcp", ask("first", plan), row.one)
			_, answer := r.raw("POST", "/mcp", ask("second", plan), row.two)
			trace := regexp.MustCompile(`"trace_id":"([0-9a-f]+)"`).FindStringSubmatch(answer)
			if trace == nil {
				t.Fatalf("got %s, want a trace id", answer)
			}
			if name == "loopback" { // no proxy is trusted: all are of this machine
				if page := r.history("kind=query", row.one, 2); page.Entries[0].Caller != page.Entries[1].Caller {
					t.Errorf("got %+v, want two queries of one caller", page)
				}
				return
			}
			r.history("kind=query", row.one, 1)
			r.history("kind=query", row.two, 1)
			r.stop(5 * time.Second)
			r = begin()
			r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+fmt.Sprintf(initializeParams, "{}")+`}`, row.two)
			r.raw("POST", "/proxy/mcp", fmt.Sprintf(runTool, "peer__fails"), row.two)
			r.raw("POST", "/proxy/mcp", fmt.Sprintf(runTool, "peer__fails"), row.two)
			r.raw("POST", "/proxy/mcp", fmt.Sprintf(runTool, "peer__fails"), row.two)
			live := r.stream("POST", "/mcp", ask("second and live", `[{"tool":"gate","arguments":{}}]`), with(row.two, "Content-Type", "application/json"))
			mcptest.Eventually(t, "it runs", func() bool {
				_, text := r.raw("GET", "/ui/api/now", "", row.two)
				return strings.Contains(text, "q of second and live")
			})
			foreign := r.history("kind=query", row.two, 1).Entries[0]
			if n := len(r.history("kind=call", row.two, 3).Entries); n != 3 {
				t.Errorf("got %d calls of two, want 3", n)
			}
			for _, path := range []string{
				"now", "queries", "queries?caller=" + neturl.QueryEscape(foreign.Caller), "queries?text=second", "queries?text=" + trace[1],
				"queries?failed=1&server=peer", "queries?kind=call", "sessions", "models", "servers", "tools", "tools?q=echo",
				"tool?server=peer&tool=echo", "queries/0", fmt.Sprint("queries/", foreign.ID), fmt.Sprint("queries/", foreign.ID+1),
			} {
				_, text := r.raw("GET", "/ui/api/"+path, "", row.one)
				for _, secret := range []string{"q of second", foreign.Caller + `"`, `"failed":4`, `4 of 4`, `3 of 3`, `"calls":5`, trace[1]} {
					if strings.Contains(text, secret) {
						t.Errorf("%s: got %s, want nothing of another caller (%s)", path, text, secret)
					}
				}
			}
			if resp, _ := r.raw("GET", fmt.Sprint("/ui/api/queries/", foreign.ID), "", row.one); resp.StatusCode != http.StatusNotFound {
				t.Errorf("got status %d for the query of another, want 404", resp.StatusCode)
			}
			if row.all != nil {
				r.history("kind=query", row.all, 2)
				if _, text := r.raw("GET", "/ui/api/now", "", row.all); !strings.Contains(text, "q of second and live") {
					t.Errorf("got %s, want that an operator sees the query", text)
				}
			}
			if row.two64 != nil {
				r.history("kind=query", row.two64, 1)
			}
			close(release)
			live.wantEnd(t, "the query")
		})
	}
}

// A limited key sees the metrics of its servers, and those of all callers together only as an operator's key.
func TestMetricsByKey(t *testing.T) {
	url := newPeer(echoTool("echo")).serve(t).URL
	r := start(t, func(o *app.Options) {
		limited := keys("some", "limited operator")
		limited[0].Servers, limited[1].Servers, limited[1].Ops = []string{"a"}, []string{"a"}, true
		o.Config.Auth.APIKeys = append(keys("all"), limited...)
		o.Config.Servers = append(o.Config.Servers, server("a", url), server("b", url))
	})
	for _, tool := range []string{"a__echo", "b__echo"} {
		r.raw("POST", "/mcp", fmt.Sprintf(runTool, tool), bearer("all"))
	}
	for key, want := range map[string][3]bool{"all": {true, true, false}, "some": {true, false, false}, "limited operator": {true, false, true}} {
		_, text := r.raw("GET", "/metrics", "", bearer(key))
		for i, series := range []string{`nexus_server_up{server="a"}`, `nexus_server_up{server="b"}`, "nexus_sessions "} {
			if strings.Contains(text, series) != want[i] {
				t.Errorf("%s: got %s shown: %t, want %t", key, series, !want[i], want[i])
			}
		}
	}
}

// An operator sees all, another key its own queries and calls; servers and tools are those that the key may use.
func TestConsoleShowsWhatTheKeyAllows(t *testing.T) {
	a, b := newPeer(echoTool("echo"), failTool("fails")), newPeer(echoTool("other"))
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = operators("all")
		restricted("some", "a")(o)
		o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
	})
	all, some := bearer("all"), bearer("some")
	for key, plan := range map[string]string{"all": `[{"tool":"other","arguments":{"k":"v"}}]`, "some": `[{"tool":"echo","arguments":{}},{"tool":"fails","arguments":{}}]`} {
		r.raw("POST", "/mcp", fmt.Sprintf(askPlan, key, plan), bearer(key))
		r.raw("POST", "/mcp", fmt.Sprintf(runTool, "a__fails"), bearer(key))
	}
	r.session("/mcp", "all")
	r.session("/mcp", "some")
	r.history("", all, 4)
	own := r.history("", some, 2)
	for _, e := range own.Entries {
		if e.Caller != "key:some" {
			t.Errorf("got an entry of %s, want those of the key alone", e.Caller)
		}
	}
	if page := r.history("kind=call&failed=1", all, 2); page.Entries[0].Outcome != "tool_error" || page.Entries[0].Uses[0].Tool != "fails" {
		t.Errorf("got %+v, want the calls that failed", page.Entries)
	}
	query := r.history("kind=query&tool=fails", some, 1).Entries[0]
	if query.Outcome != "degraded" || len(query.Uses) != 2 || query.Uses[1].Failed != 1 || query.Text != "q of some" {
		t.Errorf("got %+v, want two tools and one failure", query)
	}
	var whole struct {
		Detail struct {
			Question string
			Steps    []struct {
				ID, Tool string
				Success  bool
				Result   json.RawMessage
				Tries    []struct{ Duration float64 }
			}
			Graph struct{ Nodes []struct{ ID, State string } }
		}
	}
	if r.get(fmt.Sprint("queries/", query.ID), some, &whole); len(whole.Detail.Steps) != 2 || len(whole.Detail.Steps[0].Tries) != 1 ||
		whole.Detail.Question != "q of some" || whole.Detail.Graph.Nodes[1].State != "failed" || !strings.Contains(string(whole.Detail.Steps[1].Result), "broken inside") {
		t.Errorf("got %+v, want the query with its steps", whole)
	}
	foreign := r.history("kind=query&tool=other", all, 1).Entries[0]
	for path, status := range map[string]int{fmt.Sprint("queries/", foreign.ID): 404, "queries/999": 404, "tool?server=b&tool=other": 404, "tool?server=a&tool=echo": 200} {
		if got := r.get(path, some, &struct{}{}); got != status {
			t.Errorf("%s: got %d for the limited key, want %d", path, got, status)
		}
	}
	for path, shown := range map[string][2]string{"servers": {`"name":"a"`, `"name":"b"`}, "tools": {`"a__echo"`, `"b__other"`}, "tools?q=other": {"[]", `"b__other"`}, "sessions": {`"key:some"`, `"key:all"`}, "now": {`"status"`, "q of all"}, "models": {`[]`, "none"}} {
		_, text := r.raw("GET", "/ui/api/"+path, "", some)
		if !strings.Contains(text, shown[0]) || strings.Contains(text, shown[1]) {
			t.Errorf("%s: got %s, want %s and not %s", path, text, shown[0], shown[1])
		}
	}
	form := "--x\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nnowhere\r\n--x--\r\n"
	some["Content-Type"] = "multipart/form-data; boundary=x"
	if _, text := r.raw("GET", "/ui/api/queries", form, some); !strings.Contains(text, "q of some") {
		t.Errorf("a request with a body: got %s, want the body to be ignored", text)
	}
}

// A server that is disabled on the page stays so after a restart and a reload; only a key for everything may do it.
func TestConsoleSwitch(t *testing.T) {
	p := newPeer(echoTool("echo"))
	url, state := p.serve(t).URL, t.TempDir()
	change := func(o *app.Options) {
		o.Config.State = state
		o.Config.Auth.APIKeys = keys("all")
		restricted("some", "peer")(o)
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
	}
	r := start(t, change)
	json := map[string]string{"Content-Type": "application/json"}
	for _, row := range []struct {
		name, path, body string
		header           map[string]string
		status           int
	}{
		{"a limited key", "peer", `{"enabled":false}`, bearer("some"), 403},
		{"no key", "peer", `{"enabled":false}`, json, 401},
		{"no such server", "nobody", `{"enabled":false}`, bearer("all"), 404},
		{"no order", "peer", `{}`, bearer("all"), 400},
		{"no JSON", "peer", `enabled`, bearer("all"), 400},
		{"a form", "peer", `{"enabled":false}`, map[string]string{"X-API-Key": "all", "Content-Type": "text/plain"}, 415},
		{"another site", "peer", `{"enabled":false}`, map[string]string{"X-API-Key": "all", "Sec-Fetch-Site": "cross-site"}, 403},
		{"another port", "peer", `{"enabled":false}`, map[string]string{"X-API-Key": "all", "Sec-Fetch-Site": "same-site"}, 403},
		{"another origin", "peer", `{"enabled":false}`, map[string]string{"X-API-Key": "all", "Origin": "http://127.0.0.1:1"}, 403},
		{"the page", "peer", `{"enabled":false}`, map[string]string{"Authorization": basic("all")["Authorization"], "Origin": r.base, "Sec-Fetch-Site": "same-origin"}, 200},
	} {
		if resp, text := r.raw("POST", "/ui/api/servers/"+row.path, row.body, row.header); resp.StatusCode != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, resp.StatusCode, text, row.status)
		}
	}
	disabled := func(r *running, want bool) {
		t.Helper()
		_, text := r.raw("GET", "/ui/api/servers", "", bearer("all"))
		if got := strings.Contains(text, `"status":"disabled"`); got != want {
			t.Errorf("got %s, want disabled %t", text, want)
		}
		_, text = r.raw("POST", "/mcp", fmt.Sprintf(runTool, "peer__echo"), bearer("all"))
		if got := strings.Contains(text, "Unknown tool"); got != want {
			t.Errorf("got %s, want unknown %t", text, want)
		}
	}
	disabled(r, true)
	if line := r.logs.want(t, "server switched"); line["by"] != "all" || line["server"] != "peer" || line["enabled"] != false {
		t.Errorf("log: got %v, want who did what", line)
	}
	r.reload(func(c *config.Config) { c.Servers = append(c.Servers, server("peer", url)) })
	disabled(r, true)
	r.stop(5 * time.Second)
	again := start(t, change)
	disabled(again, true)
	if resp, text := again.raw("POST", "/ui/api/servers/peer", `{"enabled":true}`, bearer("all")); resp.StatusCode != 200 || strings.Contains(text, "warning") {
		t.Errorf("got %d %s, want it enabled", resp.StatusCode, text)
	}
	disabled(again, false)
	again.stop(5 * time.Second)
	if err := os.WriteFile(filepath.Join(state, "servers.json"), []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	last := start(t, change)
	if resp, text := last.raw("POST", "/ui/api/servers/peer", `{"enabled":false}`, bearer("all")); resp.StatusCode != 200 {
		t.Errorf("after an empty file: got %d %s, want it disabled", resp.StatusCode, text)
	}
	if _, text := last.raw("GET", "/metrics", "", bearer("all")); strings.Contains(text, `nexus_server_up{server="peer"}`) {
		t.Errorf("metrics of a disabled server: got %s, want none", text)
	}
}

// Whoever is not known, because everybody may connect without a key, switches nothing.
func TestConsoleSwitchAnonymous(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Config.Listen, o.Config.Auth.Anonymous = "0.0.0.0:0", true
		o.Config.Servers = append(o.Config.Servers, server("peer", newPeer(echoTool("echo")).serve(t).URL))
	})
	r.base = "http://127.0.0.1:" + r.Addr()[strings.LastIndex(r.Addr(), ":")+1:]
	if resp, text := r.raw("POST", "/ui/api/servers/peer", `{"enabled":false}`, nil); resp.StatusCode != 403 {
		t.Errorf("got %d %s, want 403", resp.StatusCode, text)
	}
}

// A damaged file of switches is named in a warning.
func TestConsoleSwitchesDamaged(t *testing.T) {
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "servers.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(o *app.Options) { o.Config.State = state })
	r.logs.want(t, "servers are as configured")
}

// The page is an MCP client of /ui/mcp with the password that the browser knows; other pages are not.
func TestConsoleMCP(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Config.Auth.APIKeys = keys("good") })
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, row := range []struct {
		name   string
		header map[string]string
		status int
	}{
		{"password", basic("good"), 200},
		{"key", bearer("good"), 200},
		{"wrong password", basic("bad"), 401},
		{"none", nil, 401},
		{"another page", map[string]string{"Authorization": basic("good")["Authorization"], "Origin": "http://localhost:1"}, 403},
	} {
		resp, text := r.raw("POST", "/ui/mcp", list, row.header)
		if resp.StatusCode != row.status || (row.status == 200) != strings.Contains(text, "process_query") {
			t.Errorf("%s: got %d %s, want %d", row.name, resp.StatusCode, text, row.status)
		}
	}
	for path, want := range map[string]string{"/ui/": "text/html", "/ui/nothing": "text/plain", "/ui/api/nothing": "text/plain"} {
		resp, _ := r.raw("GET", path, "", basic("good"))
		if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, want) || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: got %s and the policy %q", path, got, resp.Header.Get("Content-Security-Policy"))
		}
	}
	if resp, _ := r.raw("POST", "/ui/", "x", basic("good")); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /ui/: got %d, want 405", resp.StatusCode)
	}
}

// A stream of events begins with the state, shows a query while it runs and then that there is another entry. A caller
// has so many streams, and they end with the router.
func TestConsoleEvents(t *testing.T) {
	release := make(chan struct{})
	gate := peerTool{"gate", object, func(c *peerCall) (string, string) {
		select {
		case <-release:
		case <-c.ctx.Done():
		}
		return textResult("open"), ""
	}}
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", newPeer(gate).serve(t).URL))
	})
	stream := r.stream("GET", "/ui/api/events", "", nil)
	next := func(want string) {
		t.Helper()
		for {
			select {
			case data := <-stream.events:
				if strings.Contains(data, want) {
					return
				}
			case <-time.After(deadline):
				t.Fatalf("got no event with %s", want)
			}
		}
	}
	next(`"history":0`)
	call := r.stream("POST", "/mcp", fmt.Sprintf(askPlan, "live", `[{"tool":"gate","arguments":{}}]`), map[string]string{"Content-Type": "application/json"})
	next(`"text":"q of live","progress":0.2`)
	close(release)
	call.wantEnd(t, "the query")
	next(`"history":1`)
	var all []*opened
	for range 15 {
		all = append(all, r.stream("GET", "/ui/api/events", "", nil))
	}
	if resp, _ := r.raw("GET", "/ui/api/events", "", nil); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %d for one stream too many, want 503", resp.StatusCode)
	}
	r.stop(5 * time.Second)
	for _, s := range all {
		s.wantEnd(t, "a stream of events")
	}
}

// The history outlives a restart. Without contents it says what was done, not what was said; without entries there is
// none.
func TestConsoleHistorySettings(t *testing.T) {
	state, url := t.TempDir(), newPeer(echoTool("echo")).serve(t).URL
	with := func(change func(*app.Options)) *running {
		return start(t, func(o *app.Options) {
			o.Config.State = state
			o.Config.Servers = append(o.Config.Servers, server("peer", url))
			change(o)
		})
	}
	ask := fmt.Sprintf(askPlan, "x", `[{"tool":"echo","arguments":{"a":"argued"}}]`)
	r := with(func(*app.Options) {})
	r.raw("POST", "/mcp", ask, nil)
	r.stop(5 * time.Second)
	r = with(func(o *app.Options) { o.Config.History.Contents = false })
	r.raw("POST", "/mcp", ask, nil)
	page := r.history("", nil, 2)
	for i, kept := range []bool{false, true} {
		_, text := r.raw("GET", fmt.Sprint("/ui/api/queries/", page.Entries[i].ID), "", nil)
		if strings.Contains(text, "argued") != kept || strings.Contains(text, "q of x") != kept || !strings.Contains(text, `"tool":"echo"`) {
			t.Errorf("got %s, want contents %t", text, kept)
		}
	}
	r.stop(5 * time.Second)
	r = with(func(o *app.Options) { o.Config.History.Entries = 0 })
	r.raw("POST", "/mcp", ask, nil)
	if _, text := r.raw("GET", "/ui/api/queries", "", nil); !strings.Contains(text, `"entries":[]`) || !strings.Contains(text, `"off":true`) {
		t.Errorf("got %s, want no history", text)
	}
}

// What fails is what the page shows first.
func TestConsoleAttention(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", newPeer(failTool("fails")).serve(t).URL), server("gone", "http://127.0.0.1:1/mcp"))
	})
	for range 3 {
		r.raw("POST", "/mcp", fmt.Sprintf(runTool, "peer__fails"), nil)
	}
	r.raw("POST", "/mcp", fmt.Sprintf(askPlan, "x", `[{"tool":"fails","arguments":{}}]`), nil)
	r.history("", nil, 4)
	for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
		_, text := r.raw("GET", "/ui/api/now", "", nil)
		missing := ""
		for _, want := range []string{`"subject":"gone","text":"disconnected: unavailable`, `"subject":"peer__fails","text":"4 of 4 calls failed`, `"text":"q of x"`, `"link":"#/servers/gone"`} {
			if !strings.Contains(text, want) {
				missing = want
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %s, want %s in it", text, missing)
		}
	}
}
