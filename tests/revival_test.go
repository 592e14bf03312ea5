package tests

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// kill ends the router without warning.
func (r *router) kill() {
	r.once.Do(func() {})     // it need not end well
	_ = r.cmd.Process.Kill() // it may have ended by itself
	<-r.end
}

// Clients that do not initialize again after a restart of the router go on with their sessions.
func TestClientsOutliveTheRouter(t *testing.T) {
	t.Parallel()
	c := others(t)
	server := c.listen("streamableHttp")
	for _, name := range []string{"@modelcontextprotocol/sdk", "@modelcontextprotocol/client"} {
		for _, tt := range []struct{ path, tool, args string }{
			{"/mcp", "run", `{"tool":"everything.echo","parameters":{"message":"still here"}}`},
			{"/proxy/mcp", "everything__echo", `{"message":"still here"}`},
			{"/servers/everything/mcp", "echo", `{"message":"still here"}`},
		} {
			t.Run(strings.TrimPrefix(name, "@modelcontextprotocol/")+tt.path, func(t *testing.T) {
				config := fmt.Sprintf("state: %q\nmcpServers: {everything: {url: %q}}\n", t.TempDir(), server.url())
				r := serve(t, config)
				out, log := &mcptest.Log{}, &mcptest.Log{}
				cmd := exec.Command(c.node, filepath.Join(c.folder, "restart.mjs"), name, r.url+tt.path, tt.tool, tt.args)
				cmd.Stdout, cmd.Stderr = out, log
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatalf("starting the client: %v", err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended
				mcptest.Eventually(t, "the first call", func() bool { return strings.Count(out.String(), "still here") == 1 || len(ended) > 0 })
				r.kill()
				serve(t, config, "--listen", strings.TrimPrefix(r.url, "http://"))
				_, _ = io.WriteString(in, "again\n") // if it has ended, its output says why
				if err := <-ended; err != nil || strings.Count(out.String(), "still here") != 2 {
					t.Errorf("after the restart: got %v, %s\n%s", err, out, log)
				}
				if strings.Contains(out.String(), "session undefined") {
					t.Errorf("got %s, want a client that has a session", out)
				}
			})
		}
	}
}
