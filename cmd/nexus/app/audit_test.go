package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// audited adds an audit log to an App.
func audited(t *testing.T, change func(*app.Options)) (func(*app.Options), string) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	return func(o *app.Options) {
		o.Config.Audit.Path = path
		if change != nil {
			change(o)
		}
	}, path
}

// recorded returns what a log says about each call: where, what, the decision and the outcome.
func recorded(t *testing.T, path string) (all []string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(content)) {
		var l audit.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all = append(all, strings.Join(strings.Fields(fmt.Sprintln(l.Caller, l.Profile, l.Surface, l.Server, l.Method, l.Tool,
			l.Source, l.Decision, l.Rule, l.Consent, l.Outcome, l.Reason)), " "))
	}
	return all
}

// wantRecorded stops the App and compares its log.
func wantRecorded(t *testing.T, r *running, path string, want ...string) {
	t.Helper()
	r.stop(5 * time.Second)
	got := recorded(t, path)
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("line %d: got  %s\n        want %s", i+1, g, w)
		}
	}
	if _, err := audit.Verify(path); err != nil {
		t.Error(err)
	}
}

func breakTool() peerTool {
	return peerTool{"break", object, func(*peerCall) (string, string) { return "", `{"code":-32000,"message":"it broke"}` }}
}

// Every surface and every way to a server is recorded with its path.
func TestAudit_Surfaces(t *testing.T) {
	change, path := audited(t, func(o *app.Options) { o.Config.Auth.APIKeys = keys("alice") })
	r, _ := withPeer(t, nil, change, echoTool("echo"))
	head := bearer("alice")
	var want []string
	line := func(profile, surface string) {
		want = append(want, "alice "+profile+" "+surface+" peer tools/call echo client allow ok")
	}
	for _, profile := range []struct{ base, name, tool string }{
		{"", "router", "peer__echo"}, {"/proxy", "proxy", "peer__echo"}, {"/servers/peer", "server:peer", "echo"},
	} {
		url := profile.base + "/mcp"
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + callParams(profile.tool, `{"a":1}`, "") + `}`
		if _, got := r.raw("POST", url, body, head); !strings.Contains(got, `{"a":1}`) {
			t.Fatalf("%s: got %s, want the result", url, got)
		}
		line(profile.name, url)
	}
	sse := r.dialSSE("", head)
	sse.call("run", `{"tool":"echo","parameters":{}}`, "")
	line("router", "/sse")
	modern := r.dialModern("/proxy/mcp", "{}")
	_ = modern // has no key: refused before any call
	modern.call("peer__echo", "{}", `{"api_key":"alice"}`)
	line("proxy", "/proxy/mcp")
	stdio, _ := r.dialStdio("")
	stdio.call("peer__echo", "{}", "")
	want = append(want, "local router stdio peer tools/call echo client allow ok")
	wantRecorded(t, r, path, want...)
}

// Each outcome, and calls that never reach a server.
func TestAudit_Outcomes(t *testing.T) {
	started, cancelled := make(chan string, 2), make(chan string, 2)
	change, path := audited(t, func(o *app.Options) {
		o.Config.Policy = []trust.Rule{{When: `tool == "echo" && arguments.secret == true`, Then: "deny", Reason: "no"},
			{When: `tool == "text"`, Then: "ask"}}
		o.Config.Auth.APIKeys = append(keys("alice"), auth.KeyConfig{Name: "bob", SHA256: keys("bob")[0].SHA256,
			Tools: auth.Filter{Allow: []string{"peer__echo"}}})
	})
	r, _ := withPeer(t, nil, change, echoTool("echo"), textTool("text", object, "x"), failTool("fails"), breakTool(),
		hangTool("hang", started, cancelled))
	alice := r.dial(`{"elicitation":{}}`, bearer("alice"))
	answers := make(chan string, 1)
	alice.answer = func(message) string { return <-answers }
	for _, call := range [][2]string{{"fails", "{}"}, {"break", "{}"}, {"echo", `{"secret":true}`}, {"nope", "{}"}} {
		alice.call("run", `{"tool":"peer__`+call[0]+`","parameters":`+call[1]+`}`, "")
		alice.call("peer__"+call[0], call[1], "")
	}
	for _, action := range []string{"accept", "decline"} {
		answers <- `{"action":"` + action + `","content":{}}`
		alice.call("peer__text", "{}", "")
	}
	bob := r.dial("", bearer("bob"))
	bob.call("peer__text", "{}", "")
	bob.call("peer__echo", "{}", "")
	bob.do("resources/read", `{"uri":"x"}`)
	_, id := alice.start("tools/call", callParams("peer__hang", "{}", ""))
	<-started // its line is the last one, whenever it is written
	alice.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id), nil)
	<-cancelled

	router := func(caller, rest string) string { return caller + " router /mcp peer tools/call " + rest }
	var want []string
	for _, rest := range []string{"fails client allow error tool_error", "break client allow error -32000",
		"echo client deny policy[0] denied forbidden", "nope client deny denied unknown_tool"} {
		want = append(want, router("alice", rest), router("alice", rest))
	}
	want = append(want, router("alice", "text client ask policy[1] user ok"),
		router("alice", "text client ask policy[1] none declined declined"),
		router("bob", "text client deny access denied unknown_tool"), router("bob", "echo client allow ok"),
		router("alice", "hang client allow cancelled cancelled"))
	wantRecorded(t, r, path, want...)
}

// What a server does with a call that ends late is unknown.
func TestAudit_Timeout(t *testing.T) {
	started, cancelled := make(chan string, 1), make(chan string, 1)
	change, path := audited(t, func(o *app.Options) { o.Config.Servers[0].Timeout = 300 * time.Millisecond })
	r, _ := withPeer(t, nil, change, hangTool("hang", started, cancelled))
	r.dial("", nil).call("peer__hang", "{}", "")
	<-cancelled
	wantRecorded(t, r, path, "127.0.0.1 router /mcp peer tools/call hang client allow unknown timeout")
}

// Steps of plans, with consent of the user, of a plan given back, and without any; loops have a line per call.
func TestAudit_Steps(t *testing.T) {
	const plan = `{"steps":[{"id":"a","tool":"echo","arguments":{"list":[1,2]}},` +
		`{"id":"b","tool":"echo","each":"$a.list","arguments":{"n":"$item"}},` +
		`{"id":"c","tool":"wipe","arguments":{},"after":["b"]}]}`
	echo, wipe := "echo model allow ok", "wipe model ask write "
	for name, tc := range map[string]struct{ caps, action, wipe string }{
		"accepted": {`{"elicitation":{}}`, "accept", "user ok"},
		"declined": {`{"elicitation":{}}`, "decline", "none declined declined"},
		"unasked":  {"", "", "none denied needs_approval"},
	} {
		t.Run(name, func(t *testing.T) {
			change, path := audited(t, func(o *app.Options) { o.Config.Execution.ConfirmWrites = downstream.ConfirmAuto })
			r, _ := withPeer(t, scripted(t, "ok", plan), change, echoTool("echo"),
				textTool("wipe", object+`,"annotations":{"destructiveHint":true}`, "wiped"))
			c := r.dial(tc.caps, nil)
			c.answer = func(message) string { return `{"action":"` + tc.action + `","content":{}}` }
			a := c.query(`{"query":"q"}`)
			prefix := "127.0.0.1 router /mcp peer tools/call "
			want := []string{prefix + echo, prefix + echo, prefix + echo, prefix + wipe + tc.wipe}
			if a.NeedsApproval {
				returned, _ := json.Marshal(a.Plan)
				c.query(`{"query":"q","plan":` + string(returned) + `}`)
				given := strings.ReplaceAll(prefix+echo, "model", "given")
				want = append(want, given, given, given, prefix+"wipe given allow ok")
			}
			r.stop(5 * time.Second)
			content, err := os.ReadFile(path)
			if err != nil || strings.Count(string(content), `"trace_id":"`+a.TraceID+`"`) != 4 {
				t.Errorf("got %v, %s, want the trace %s in four lines", err, content, a.TraceID)
			}
			wantRecorded(t, r, path, want...)
		})
	}
}

// Each call of a loop has its own decision. Consent, or its lack, is that of the calls that need it; a denied call fails
// as forbidden whatever becomes of the others.
func TestAudit_Loops(t *testing.T) {
	const plan = `{"steps":[{"id":"l","tool":"pay","each":"[7,1,20000]","arguments":{"amount":"$item"}}]}`
	const allowed, asked, denied = "allow policy[1] ", "ask policy[2] ", "deny policy[0] denied forbidden"
	for name, tc := range map[string]struct {
		caps, action       string
		lines, steps, then []string
	}{
		"accepted": {`{"elicitation":{}}`, "accept", []string{allowed + "ok", asked + "user ok", denied}, []string{"", "", "forbidden"}, nil},
		"declined": {`{"elicitation":{}}`, "decline", []string{allowed + "declined declined", asked + "none declined declined", denied},
			[]string{"declined", "declined", "forbidden"}, nil},
		"unasked, then approved": {"", "", []string{allowed + "denied needs_approval", asked + "none denied needs_approval", denied},
			[]string{"needs_approval", "needs_approval", "forbidden"}, []string{allowed + "ok", asked + "plan ok", denied}},
	} {
		t.Run(name, func(t *testing.T) {
			change, path := audited(t, func(o *app.Options) {
				o.Config.Policy = []trust.Rule{{When: "arguments.amount > 10000", Then: "deny", Reason: "too much"},
					{When: "arguments.amount == 7", Then: "allow"}, {When: "true", Then: "ask"}}
			})
			r, _ := withPeer(t, scripted(t, "ok", plan), change, echoTool("pay"))
			c := r.dial(tc.caps, nil)
			c.answer = func(message) string { return `{"action":"` + tc.action + `","content":{}}` }
			a := c.query(`{"query":"q"}`)
			var got, want []string
			for _, s := range a.Steps {
				why := ""
				if s.Error != nil {
					why = s.Error.Reason
				}
				got = append(got, why)
			}
			if !slices.Equal(got, tc.steps) {
				t.Errorf("got the steps %q, want %q", got, tc.steps)
			}
			for _, line := range tc.lines {
				want = append(want, "127.0.0.1 router /mcp peer tools/call pay model "+line)
			}
			if tc.then != nil {
				returned, _ := json.Marshal(a.Plan)
				c.query(`{"query":"q","plan":` + string(returned) + `}`)
			}
			for _, line := range tc.then {
				want = append(want, "127.0.0.1 router /mcp peer tools/call pay given "+line)
			}
			r.stop(5 * time.Second)
			if got := recorded(t, path); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		})
	}
}

// A request that is refused before it reaches its server has a line if it names the server or something of it.
func TestAudit_Refusals(t *testing.T) {
	definition := func(text string) peerTool { return textTool("pinned", `"description":"`+text+`",`+readHint, "x") }
	change, path := audited(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = append(keys("alice"), auth.KeyConfig{Name: "bob", SHA256: keys("bob")[0].SHA256,
			Servers: []string{"peer"}, Tools: auth.Filter{Allow: []string{"peer__echo"}}})
		o.Config.RateLimit.Requests, o.Config.RateLimit.Tools = 1, []string{"peer__text"}
		o.Config.Tools.Pin = pins.Enforce
		o.Config.Servers = append(o.Config.Servers, server("other", newPeer(echoTool("echo")).serve(t).URL))
	})
	tools := []peerTool{echoTool("echo"), textTool("text", readHint, "x")}
	r, p := withPeer(t, nil, change, append(tools, definition("old"))...)
	r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer("alice"))
	p.setTools(append(tools, definition("new"))...)
	r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer("alice"))
	const router, proxy, one = "/mcp", "/proxy/mcp", "/servers/peer/mcp"
	profiles := map[string]string{router: "router", proxy: "proxy", one: "server:peer", "/servers/other/mcp": "server:other"}
	run := func(arguments string) string { return `{"name":"run","arguments":` + arguments + `}` }
	const limited = "tools/call text client deny rate_limit denied overloaded"
	var want []string
	for _, row := range []struct{ key, path, method, params, line string }{
		{"alice", one, "Tools/Call", `{"name":"echo"}`, "peer Tools/Call echo client deny denied -32601"},
		{"alice", one, "tasks/get", `{"taskId":"x"}`, "peer tasks/get client deny denied -32601"},
		{"alice", one, "tools/call", `{}`, "peer tools/call client deny denied -32602"},
		{"alice", one, "resources/subscribe", `{"uri":"x:1"}`, "peer resources/subscribe x:1 client deny denied -32600"},
		{"alice", one, "vendor/thing", `{}`, "peer vendor/thing client allow error protocol"}, // it reached the server
		{"bob", one, "vendor/thing", `{}`, "peer vendor/thing client deny access denied unknown_tool"},
		{"bob", one, "resources/read", `{"uri":"x:1"}`, "peer resources/read x:1 client deny access denied unknown_tool"},
		{"bob", one, "prompts/get", `{"name":"p"}`, "peer prompts/get p client deny access denied unknown_tool"},
		{"bob", one, "completion/complete", `{"ref":{"type":"ref/prompt","name":"p"}}`, "peer completion/complete client deny access denied unknown_tool"},
		{"bob", one, "tools/call", `{"name":"text"}`, "peer tools/call text client deny access denied unknown_tool"},
		{"bob", proxy, "resources/read", `{"uri":"other__x:1"}`, "other resources/read other__x:1 client deny access denied unknown_tool"},
		{"bob", proxy, "prompts/get", `{"name":"other__p"}`, "other prompts/get other__p client deny access denied unknown_tool"},
		{"bob", proxy, "completion/complete", `{"ref":{"type":"ref/prompt","name":"other__p"}}`, "other completion/complete client deny access denied unknown_tool"},
		{"bob", "/servers/other/mcp", "vendor/thing", `{}`, "other vendor/thing client deny access denied unknown_tool"},
		{"alice", proxy, "tools/call", `{"name":"peer__pinned"}`, "peer tools/call pinned client deny pins denied quarantined"},
		{"alice", router, "tools/call", run(`{"tool":"peer__pinned"}`), "peer tools/call pinned client deny pins denied quarantined"},
		{"alice", router, "tools/call", `{"name":"peer__pinned"}`, "peer tools/call pinned client deny pins denied quarantined"},
		{"alice", router, "tools/call", run(`{"tool":"peer__echo","parameters":5}`), "peer tools/call echo client allow error invalid_arguments"},
		{"alice", router, "tools/call", run(`{"tool":"peer__echo","x":5}`), "peer tools/call echo client allow error invalid_arguments"},
		{"alice", proxy, "tools/call", `{"name":"peer__text"}`, "peer tools/call text client allow ok"},
		{"alice", proxy, "tools/call", `{"name":"peer__text"}`, "peer " + limited},
		{"alice", one, "tools/call", `{"name":"text"}`, "peer " + limited},
		{"alice", router, "tools/call", run(`{"tool":"text"}`), "peer " + limited},
		{"alice", router, "tools/call", `{"name":"peer__text"}`, "peer " + limited},
		// What names no server, and what asks for nothing of it.
		{"alice", proxy, "vendor/thing", `{}`, ""},
		{"alice", proxy, "tools/call", `{}`, ""},
		{"alice", proxy, "resources/read", `{}`, ""},
		{"alice", router, "tools/call", `{}`, ""},
		{"alice", router, "tools/call", run(`{}`), ""},
		{"alice", router, "tools/call", run(`{"tool":"peer__echo","dry_run":true}`), ""},
		{"bob", one, "tools/list", `{}`, ""},
		{"bob", one, "ping", `{}`, ""},
		{"eve", one, "tools/call", `{"name":"echo"}`, ""},
	} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, row.method, row.params)
		r.raw("POST", row.path, body, bearer(row.key))
		if row.line != "" {
			want = append(want, strings.Join([]string{row.key, profiles[row.path], row.path, row.line}, " "))
		}
	}
	wantRecorded(t, r, path, want...)
}

// A line has the trace of its call: that of the client, or that of the router. Nothing is added to what is forwarded.
func TestAudit_Trace(t *testing.T) {
	const meta = `"_meta":{"traceparent":"` + parent + `"}`
	for name, row := range map[string]struct {
		tracing       bool
		address, head string // of the client; empty = on this machine, without a header
		meta          string // of the params
		want          string // empty = another one, of the router
	}{
		"in _meta":                    {meta: meta, want: parentTrace},
		"in a header":                 {head: parent, want: parentTrace},
		"of a stranger":               {address: "203.0.113.9", meta: meta, want: parentTrace},
		"in a header of a stranger":   {address: "203.0.113.9", head: parent, want: parentTrace},
		"with tracing":                {tracing: true},
		"in _meta, with tracing":      {tracing: true, meta: meta, want: parentTrace},
		"of a stranger, with tracing": {tracing: true, address: "203.0.113.9", meta: meta},
	} {
		t.Run(name, func(t *testing.T) {
			if row.tracing {
				collect(t)
			}
			change, path := audited(t, func(o *app.Options) { o.Config.TrustedProxies = []string{"127.0.0.1"} })
			r, p := withPeer(t, nil, change, echoTool("echo"))
			header := map[string]string{}
			if row.head != "" {
				header["Traceparent"] = row.head
			}
			if row.address != "" {
				header["X-Forwarded-For"] = row.address
			}
			for _, call := range [][2]string{{"/mcp", `"name":"run","arguments":{"tool":"echo"}`}, {"/proxy/mcp", `"name":"peer__echo"`},
				{"/servers/peer/mcp", `"name":"echo"`}, {"/proxy/mcp", `"name":"peer__nope"`}, {"/mcp", `"name":"run","arguments":{"tool":"peer__nope"}`}} {
				params := call[1]
				if row.meta != "" {
					params += "," + row.meta
				}
				r.raw("POST", call[0], `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`}}`, header)
			}
			r.stop(deadline)
			for _, sent := range p.calls() {
				if got := strings.Contains(sent, "traceparent"); got != (row.meta != "") {
					t.Errorf("the server got %s, want what the client sent", sent)
				}
			}
			content, err := os.ReadFile(path)
			if err != nil || strings.Count(string(content), "\n") != 5 {
				t.Fatalf("got %s, %v, want five lines", content, err)
			}
			for text := range strings.Lines(string(content)) {
				var l audit.Line
				if err := json.Unmarshal([]byte(text), &l); err != nil || len(l.TraceID) != 32 || (l.TraceID == parentTrace) != (row.want != "") {
					t.Errorf("got %s, %v, want the trace %s", text, err, row.want)
				}
			}
		})
	}
}

// A call that cannot be recorded is not made.
func TestAudit_Refuse(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for mode, refused := range map[string]bool{audit.FailureContinue: false, audit.FailureRefuse: true} {
		t.Run(mode, func(t *testing.T) {
			r, p := withPeer(t, nil, func(o *app.Options) {
				o.Config.Audit.Path, o.Config.Audit.OnFailure = "/dev/full", mode
			}, echoTool("echo"))
			if !refused {
				r.ends = audit.ErrLost
			}
			reply := r.dial("", nil).call("peer__echo", "{}", "")
			want := ""
			if refused {
				want = `{"code":-32000,"message":"the call was not made, because the audit log cannot record it: no space left on device; ` +
					`make the log writable, or set audit.on_failure: continue","data":{"server":"","reason":"unavailable","retryable":true}}`
			}
			if got := string(reply.Error); got != want || refused != (len(p.calls()) == 0) {
				t.Errorf("got %s and %d calls, want the error %s", got, len(p.calls()), want)
			}
			for end := time.Now().Add(deadline); r.logs.line("the audit log cannot be written") == nil; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("got no warning")
				}
			}
		})
	}
}
