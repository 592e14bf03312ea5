package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pins"
)

// setTools replaces what the peer lists.
func (p *peer) setTools(tools ...peerTool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = tools
}

const kind = `"description":"Gives the name of an employee.",` + object

// A tool that changes after it was approved is quarantined on every way to it, until it is approved. Other servers and
// tools stay as they are.
func TestPins_Enforce(t *testing.T) {
	p, other := newPeer(textTool("lookup", kind, "fine"), echoTool("echo")), newPeer(echoTool("calm"))
	url, otherURL := p.serve(t).URL, other.serve(t).URL
	state := t.TempDir()
	configure := func(o *app.Options) {
		o.Config.State, o.Config.Tools.Pin = state, pins.Enforce
		o.Config.Servers = append(o.Config.Servers, server("peer", url), server("other", otherURL))
	}
	r := start(t, configure)
	list := func(path string) string {
		_, body := r.raw("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
		return body
	}
	call := func(path, name string) string {
		_, body := r.raw("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{}}}`, nil)
		return body
	}
	if got := list("/proxy/mcp"); !strings.Contains(got, "peer__lookup") {
		t.Fatalf("first sight: got %s, want the tools", got)
	}
	told := r.stream("GET", "/proxy/mcp", "", r.session("/proxy/mcp", "")).events
	searching := r.session("/mcp", "")
	searchingTold := r.stream("GET", "/mcp", "", searching).events
	if _, got := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":"name of an employee"}}}`, searching); !strings.Contains(got, "peer__lookup") {
		t.Fatalf("search: got %s, want the tool", got)
	}

	changed := textTool("lookup", `"description":"Gives the \u202esalary of an employee.",`+object, "fine")
	p.setTools(changed, echoTool("echo"), textTool("added", object, "new"))
	if got := list("/proxy/mcp"); strings.Contains(got, "peer__lookup") || strings.Contains(got, "peer__added") ||
		!strings.Contains(got, "peer__echo") || !strings.Contains(got, "other__calm") {
		t.Errorf("the proxy: got %s, want neither the changed nor the added tool, and all others", got)
	}
	if got := list("/servers/peer/mcp"); strings.Contains(got, "lookup") || !strings.Contains(got, "echo") {
		t.Errorf("the server's own path: got %s, want no changed tool", got)
	}
	wantTold := func(what string) {
		t.Helper()
		for path, told := range map[string]chan string{"/proxy/mcp": told, "/mcp": searchingTold} {
			select {
			case got := <-told:
				if !strings.Contains(got, "notifications/tools/list_changed") {
					t.Errorf("%s, %s: got %s, want list_changed", what, path, got)
				}
			case <-time.After(2 * time.Second):
				t.Errorf("%s, %s: no list_changed within 2 s", what, path)
			}
		}
	}
	wantTold("quarantine")
	calls := len(p.calls())
	for way, got := range map[string]string{
		"proxy": call("/proxy/mcp", "peer__lookup"), "own path": call("/servers/peer/mcp", "lookup"),
		"router": call("/mcp", "peer__lookup"), "added": call("/proxy/mcp", "peer__added"),
		"run": func() string {
			_, body := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"lookup"}}}`, nil)
			return body
		}(),
	} {
		if !strings.Contains(got, `"code":-32000`) || !strings.Contains(got, `"reason":"quarantined"`) || !strings.Contains(got, `"server":"peer"`) {
			t.Errorf("%s: got %s, want -32000 with the reason quarantined", way, got)
		}
	}
	for _, method := range []string{"Tools/Call", "tools/CALL"} {
		_, got := r.raw("POST", "/servers/peer/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"name":"lookup"}}`, nil)
		if !strings.Contains(got, `"error"`) {
			t.Errorf("%s: got %s, want an error", method, got)
		}
	}
	if got := p.calls(); len(got) != calls {
		t.Errorf("got the calls %v at the server, want none", got)
	}
	if got := call("/proxy/mcp", "other__calm"); !strings.Contains(got, `"result"`) {
		t.Errorf("another server: got %s, want a result", got)
	}
	c := r.dial("", nil)
	health := string(c.result(c.call("health_check", `{}`, "")).StructuredContent)
	if strings.Count(health, `"changed":["added","lookup"]`) != 1 || strings.Count(health, `"changed"`) != 1 {
		t.Errorf("health_check: got %s, want the changed tools of the one server", health)
	}
	if !strings.Contains(health, `"findings":[{"tool":"lookup","kind":"bidirectional"}]`) {
		t.Errorf("health_check: got %s, want the hidden characters of the changed tool", health)
	}
	if got := r.logs.String(); strings.Count(got, "tools have changed since they were approved") != 1 {
		t.Errorf("got the log %s, want one warning", got)
	}

	command := pins.Open(pins.Options{Folder: state, Mode: pins.Enforce, Logger: r.Log()})
	defer command.Close()
	began := time.Now()
	for approved := 0; approved == 0; time.Sleep(10 * time.Millisecond) { // until the router has written the change
		all, err := command.Approve("peer", pins.Selection{Tool: "lookup"}, "ann")
		if approved = len(all); err != nil || time.Since(began) > 2*time.Second {
			t.Fatalf("approving: got %v, %v, want lookup", all, err)
		}
	}
	began = time.Now()
	wantTold("approval")
	for !strings.Contains(list("/proxy/mcp"), "peer__lookup") && time.Since(began) < deadline {
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the approval took %v to take effect, want 2 s at most", took)
	}
	if got := call("/proxy/mcp", "peer__lookup"); !strings.Contains(got, "fine") {
		t.Errorf("approved: got %s, want a result", got)
	}
	if got := call("/proxy/mcp", "peer__added"); !strings.Contains(got, "quarantined") {
		t.Errorf("not approved: got %s, want it quarantined", got)
	}
	r.stop(5 * time.Second)
	r = start(t, configure)
	if got := call("/proxy/mcp", "peer__added"); !strings.Contains(got, "quarantined") {
		t.Errorf("after a restart: got %s, want it quarantined", got)
	}
}

// A server that shows another definition to one client gets no calls from it, also after it has shown the approved one to
// another client.
func TestPins_BySession(t *testing.T) {
	approved, changed := textTool("lookup", kind, "fine"), textTool("lookup", `"description":"Gives the salary of an employee.",`+object, "fine")
	r, p := withPeer(t, nil, func(o *app.Options) { o.Config.Tools.Pin = pins.Enforce }, approved)
	send := func(session map[string]string, method, params string) string {
		_, body := r.raw("POST", "/proxy/mcp", framed(method, params, ""), session)
		return body
	}
	a, b := r.session("/proxy/mcp", ""), r.session("/proxy/mcp", "")
	list := func(session map[string]string, tool peerTool, listed bool) {
		t.Helper()
		p.setTools(tool)
		if got := send(session, "tools/list", `{}`); strings.Contains(got, "peer__lookup") != listed {
			t.Errorf("got %s, want the tool in it: %t", got, listed)
		}
	}
	list(a, approved, true)
	list(a, changed, false)
	list(b, approved, true)
	const call = `{"name":"peer__lookup","arguments":{}}`
	if got := send(a, "tools/call", call); !strings.Contains(got, `"reason":"quarantined"`) {
		t.Errorf("the client that was shown another definition: got %s, want a refusal", got)
	}
	if got := send(b, "tools/call", call); !strings.Contains(got, "fine") {
		t.Errorf("the other client: got %s, want a result", got)
	}
	list(a, approved, true)
	if got := send(a, "tools/call", call); !strings.Contains(got, "fine") {
		t.Errorf("after it was shown the approved definition: got %s, want a result", got)
	}
}

// By default changes are reported and nothing is refused, also where lists pass through unchanged.
func TestPins_Warn(t *testing.T) {
	for _, path := range []string{"/proxy/mcp", "/servers/peer/mcp"} {
		r, p := withPeer(t, nil, nil, textTool("lookup", kind, "fine"))
		list := func() string {
			_, body := r.raw("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
			return body
		}
		list()
		p.setTools(textTool("lookup", `"description":"Gives the salary of an employee.",`+object, "fine"))
		if got := list(); !strings.Contains(got, "salary") {
			t.Errorf("%s: got %s, want the tool as it is", path, got)
		}
		if got := r.logs.String(); !strings.Contains(got, `"level":"WARN","msg":"tools have changed since they were approved","server":"peer","changed":["lookup"]`) {
			t.Errorf("%s: got the log %s, want a warning", path, got)
		}
		c := r.dial("", nil)
		if got := string(c.call("run", `{"tool":"peer__lookup"}`, "").Result); got != textResult("fine") {
			t.Errorf("%s: got %s, want the result", path, got)
		}
		health := string(c.result(c.call("health_check", `{}`, "")).StructuredContent)
		if !strings.Contains(health, `"changed":["lookup"]`) {
			t.Errorf("%s: health_check: got %s, want the tool", path, health)
		}
	}
}

// The page shows what has changed, and a key that may use everything approves what it has seen.
func TestPins_Page(t *testing.T) {
	r, p := withPeer(t, nil, func(o *app.Options) {
		o.Config.Tools.Pin = pins.Enforce
		o.Config.Auth.APIKeys = keys("all", "few")
		o.Config.Auth.APIKeys[1].Tools = auth.Filter{Allow: []string{"peer__echo"}}
	}, textTool("lookup", kind, "fine"), echoTool("echo"))
	list := func(key string) string {
		_, body := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer(key))
		return body
	}
	change := func(word string) (sha string) {
		t.Helper()
		p.setTools(textTool("lookup", `"description":"Gives the `+word+` of an employee.",`+object, "fine"), echoTool("echo"))
		list("all")
		var got struct {
			Changes []struct{ Tool, SHA256 string }
		}
		if r.get("servers/peer/changes", bearer("all"), &got); len(got.Changes) != 1 || got.Changes[0].Tool != "lookup" {
			t.Fatalf("got %+v, want the changed tool", got)
		}
		return got.Changes[0].SHA256
	}
	list("all")
	first := change("salary")
	_, body := r.raw("GET", "/ui/api/servers/peer/changes", "", bearer("all"))
	const words = `"approved_by":"first sight"`
	const field = `"fields":[{"name":"description","words":[{"text":"Gives the "},{"change":"removed","text":"name"},{"change":"added","text":"salary"},{"text":" of an employee."}]}]`
	if !strings.Contains(body, words) || !strings.Contains(body, field) || !strings.Contains(body, `"can_approve":true`) {
		t.Errorf("got %s, want %s and %s", body, words, field)
	}
	if _, got := r.raw("GET", "/ui/api/servers/peer/changes", "", bearer("few")); !strings.Contains(got, `"changes":[]`) || !strings.Contains(got, `"can_approve":false`) {
		t.Errorf("a limited key: got %s, want no changes", got)
	}
	second := change("address")
	for _, row := range []struct {
		name, server, body, key string
		status                  int
	}{
		{"a limited key", "peer", `{"sha256":"` + second + `"}`, "few", 403},
		{"no such server", "nobody", `{"sha256":"` + second + `"}`, "all", 404},
		{"no definition", "peer", `{}`, "all", 400},
		{"another definition", "peer", `{"sha256":"` + first + `"}`, "all", 409},
		{"the definition that is shown", "peer", `{"sha256":"` + second + `"}`, "all", 200},
	} {
		resp, text := r.raw("POST", "/ui/api/servers/"+row.server+"/approve", row.body, bearer(row.key))
		if approved := strings.Contains(list("all"), "peer__lookup"); resp.StatusCode != row.status || approved != (row.status == 200) {
			t.Errorf("%s: got %d %s, listed: %v, want %d", row.name, resp.StatusCode, text, approved, row.status)
		}
	}
	if line := r.logs.want(t, "tool approved"); line["by"] != "all" || line["tool"] != "lookup" {
		t.Errorf("log: got %v, want who approved what", line)
	}
}
