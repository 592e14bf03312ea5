package tests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// What people decided at routers that ran alone goes on when these become replicas: quarantines, switches and logins. Of
// two folders the first wins, and a refresh token has one owner.
func TestCluster_TakesOver(t *testing.T) {
	t.Parallel()
	o := &mcptest.OAuth{}
	t.Cleanup(mcptest.ServeOAuth(o, &mcptest.Server{Stateless: true}))
	c := clusterOf(t, 0, "")
	clustered := fmt.Sprintf("cluster: {nats: {url: %q}}\n", c.nats.URL())
	c.edit(clustered, "tools: {pin: enforce}\n")
	c.edit("mcpServers: {", fmt.Sprintf("mcpServers: {hr: {url: %q, auth: {}}, off: {url: 'http://127.0.0.1:1/mcp'}, ", o.URL+"/mcp"))
	one, other := c.replica("r1"), c.replica("r2")
	c.replicas = []*clustertest.Replica{one, other}
	tokens := func(r *clustertest.Replica) string {
		return filepath.Join(c.dir, r.Name, ".local", "state", "agenticnexus", "tokens")
	}
	disable := func(r *clustertest.Replica, server string) {
		t.Helper()
		if status, text := c.page(r, http.MethodPost, "/ui/api/servers/"+server, `{"enabled":false}`); status != http.StatusOK {
			t.Fatalf("disabling %s: got %d %s", server, status, text)
		}
	}

	// At the first one a tool changes after it was approved; at the other one it counts as approved as it is now.
	c.start(one)
	c.want(c.dial(one), "result")
	c.work.SetTools(strings.Replace(mcptest.Tools, "Returns its arguments", "Returns what it likes", 1))
	quarantined := func(r *clustertest.Replica) {
		t.Helper()
		client := c.dial(r)
		mcptest.Eventually(t, "the quarantine at "+r.Name, func() bool {
			client.Do(t.Context(), "tools/list", "{}")
			return c.echo(client) == "-32000 quarantined"
		})
	}
	quarantined(one)
	disable(one, "off")
	logIn(t, command(filepath.Join(c.dir, one.Name), "auth", "login", "hr", "--config", c.config))
	c.start(other)
	c.want(c.dial(other), "result")
	disable(other, "hr")
	if err := os.CopyFS(tokens(other), os.DirFS(tokens(one))); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.replicas {
		if code := r.Stop(); code != 0 {
			t.Errorf("%s ended with %d, want 0", r.Name, code)
		}
	}

	c.edit("tools: {pin: enforce}\n", clustered+"tools: {pin: enforce}\n")
	check := func(r *clustertest.Replica) {
		t.Helper()
		quarantined(r)
		mcptest.Eventually(t, "the servers of "+r.Name, func() bool {
			_, text := c.page(r, http.MethodGet, "/healthz", "")
			var health struct {
				Servers map[string]struct{ Status string }
			}
			return json.Unmarshal([]byte(text), &health) == nil && health.Servers["hr"].Status == "connected" &&
				health.Servers["off"].Status == "disabled"
		})
		if files, err := filepath.Glob(filepath.Join(tokens(r), "*.json")); err != nil || len(files) != 0 {
			t.Errorf("%s has the tokens %v (%v), want none", r.Name, files, err)
		}
	}
	for _, r := range c.replicas {
		c.start(r)
		check(r)
	}
	for part, want := range map[string][2]int{
		"takes over the approved tools of a server\" server=work": {1, 0},
		"takes over which servers are enabled":                    {1, 0},
		"takes over the login of a server\" server=hr":            {1, 0},
		"that of the state folder is deleted\" server=hr":         {0, 1},
	} {
		for i, log := range c.logs {
			if got := len(log.Lines(part)); got != want[i] {
				t.Errorf("%s: got %d lines with %s, want %d", c.replicas[i].Name, got, part, want[i])
			}
		}
	}
	o.Forget(false)
	for _, r := range c.replicas {
		client := c.dial(r)
		mcptest.Eventually(t, "a renewed login at "+r.Name, func() bool {
			return client.Call(t.Context(), "hr__echo", `{}`).Outcome() == "result"
		})
	}
	if o.Count("refresh_token") != 1 || o.Count("reuse") != 0 {
		t.Errorf("got %d renewals and %d refresh tokens used again, want one and none", o.Count("refresh_token"), o.Count("reuse"))
	}

	// Commands act on the cluster, and what they decide outlives restarts.
	if out, code := c.nexus("tools", "approve", "work", "echo", "--config", c.config); code != 0 {
		t.Errorf("tools approve: got %q and exit code %d", out, code)
	}
	if out, code := c.nexus("auth", "logout", "hr", "--config", c.config); code != 0 {
		t.Errorf("auth logout: got %q and exit code %d", out, code)
	}
	for _, r := range slices.Backward(c.replicas) {
		r.Stop()
		c.start(r)
		client := c.dial(r)
		mcptest.Eventually(t, "the approved tool", func() bool { return c.echo(client) == "result" })
	}
	if out, code := c.nexus("auth", "status", "hr", "--config", c.config); code != 3 || !strings.Contains(out, "not logged in") {
		t.Errorf("auth status: got %q and exit code %d, want not logged in", out, code)
	}
}
