package app_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The end of a server's error output is in the log and, for those who see what all callers do, in its health: without
// secrets and escape sequences.
func TestErrorOutput(t *testing.T) {
	const script = `printf '\033[31mreading \007settings\033[0m\n' >&2; echo "Error: key $KEY is wrong" >&2; exit 3`
	breaks := downstream.ServerConfig{Name: "breaks", Type: downstream.TransportStdio, Command: "sh", Args: []string{"-c", script},
		Env: map[string]redact.Secret{"KEY": "hunter2hunter2"}}
	check := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"health_check","arguments":%s}}`, `{"server":"breaks"}`)
	const want = `"stderr":["reading settings","Error: key [redacted] is wrong"]`
	for name, row := range map[string]struct {
		change func(*app.Options)
		header map[string]string
		sees   bool
	}{
		"this machine":     {func(*app.Options) {}, nil, true},
		"the only key":     {func(o *app.Options) { o.Config.Auth.APIKeys = keys("one") }, bearer("one"), true},
		"one of two":       {func(o *app.Options) { o.Config.Auth.APIKeys = keys("one", "two") }, bearer("one"), false},
		"an operator":      {func(o *app.Options) { o.Config.Auth.APIKeys = slices.Concat(keys("one"), operators("ops")) }, bearer("ops"), true},
		"behind a proxy":   {func(o *app.Options) { o.Config.TrustedProxies = []string{"127.0.0.0/8"} }, map[string]string{"X-Forwarded-For": "192.0.2.1"}, false},
		"another operator": {func(o *app.Options) { o.Config.Auth.APIKeys = operators("a", "b") }, bearer("b"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(o *app.Options) {
				row.change(o)
				o.Config.Servers = append(o.Config.Servers, breaks)
			})
			mcptest.Eventually(t, "the server ends", func() bool { return r.logs.line("last error output of server") != nil })
			_, text := r.raw("POST", "/mcp", check, row.header)
			if strings.Contains(text, want) != row.sees {
				t.Errorf("got %s, want the error output: %t", text, row.sees)
			}
			if !strings.Contains(text, "the process ended with exit status 3: Error: key [redacted] is wrong") {
				t.Errorf("got %s, want why the process ended", text)
			}
			if got := r.logs.want(t, "last error output of server")["lines"]; got != "reading settings\nError: key [redacted] is wrong" {
				t.Errorf("log: got %q", got)
			}
			if _, all := r.raw("POST", "/mcp", strings.Replace(check, `{"server":"breaks"}`, `{}`, 1), row.header); strings.Contains(all, `"stderr"`) {
				t.Errorf("of all servers: got %s, want no error output", all)
			}
		})
	}
}

// On the page, operators see the error output of a server, and whoever may use everything restarts it: another process
// serves, and one line of the log says who did it.
func TestConsoleRestart(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = slices.Concat(keys("all"), operators("ops"))
		restricted("some", "child")(o)
		o.Config.Servers = append(o.Config.Servers, downstream.ServerConfig{Name: "child", Type: downstream.TransportStdio,
			Command: "sh", Args: []string{"-c", `echo "process $$" >&2; exec "$0"`, os.Args[0]}, Env: map[string]redact.Secret{asChild: "1"}})
	})
	lines := func() string {
		_, text := r.raw("GET", "/ui/api/servers/child/stderr", "", bearer("ops"))
		return text
	}
	mcptest.Eventually(t, "the process writes", func() bool { return strings.Contains(lines(), "process ") })
	first := lines()
	for _, row := range []struct {
		name, method, path string
		header             map[string]string
		status             int
	}{
		{"error output, not an operator", "GET", "child/stderr", bearer("all"), 403},
		{"error output, no such server", "GET", "nobody/stderr", bearer("ops"), 404},
		{"a limited key", "POST", "child/restart", bearer("some"), 403},
		{"no key", "POST", "child/restart", nil, 401},
		{"no such server", "POST", "nobody/restart", bearer("all"), 404},
		{"a form", "POST", "child/restart", with(bearer("all"), "Content-Type", "text/plain"), 415},
		{"another site", "POST", "child/restart", with(bearer("all"), "Sec-Fetch-Site", "cross-site"), 403},
		{"a key for everything", "POST", "child/restart", bearer("all"), 200},
	} {
		if resp, text := r.raw(row.method, "/ui/api/servers/"+row.path, "{}", row.header); resp.StatusCode != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, resp.StatusCode, text, row.status)
		}
	}
	mcptest.Eventually(t, "another process writes", func() bool { now := lines(); return strings.Contains(now, "process ") && now != first })
	if _, text := r.raw("POST", "/mcp", fmt.Sprintf(runTool, "child__echo"), bearer("all")); !strings.Contains(text, `"result"`) {
		t.Errorf("got %s, want a result of the new process", text)
	}
	if line := r.logs.want(t, "server restarted"); line["by"] != "all" || line["server"] != "child" {
		t.Errorf("log: got %v, want who did what", line)
	}
}

// Calls in flight at a server that is restarted go on, also if the operator does not wait.
func TestConsoleRestart_OperatorLeaves(t *testing.T) {
	started, goOn := make(chan string, 1), make(chan struct{})
	r, _ := withPeer(t, nil, nil, slowTool(started, goOn))
	c := r.dial("", nil)
	call, _ := c.start("tools/call", callParams("run", `{"tool":"slow"}`, ""))
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+"/ui/api/servers/peer/restart", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	left := make(chan error, 1)
	go func() {
		_, err := (&http.Transport{}).RoundTrip(req)
		left <- err
	}()
	mcptest.Eventually(t, "the restart", func() bool { return r.logs.line("server restarted") != nil })
	cancel()
	if err := <-left; err == nil {
		t.Error("the restart did not wait for the call")
	}
	select {
	case <-call.done:
		t.Error("the call ended with the request of the operator")
	case <-time.After(200 * time.Millisecond):
	}
	close(goOn)
	if got := c.result(c.wait(call)).text(); got != "finished" {
		t.Errorf("got %s, want finished", got)
	}
}
