package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
