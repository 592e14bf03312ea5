package tests

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// page makes a request to the page of a replica and returns its status and answer.
func (c *replicated) page(r *clustertest.Replica, method, path, body string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, r.URL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A server that is switched at one replica is switched at all, also after a restart; without NATS nothing is switched.
func TestClusterSwitch(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	one, other := c.replicas[0], c.replicas[1]
	disabled := func(r *clustertest.Replica) bool {
		_, text := c.page(r, http.MethodGet, "/ui/api/servers", "")
		return strings.Contains(text, `"status":"disabled"`)
	}
	if status, text := c.page(one, http.MethodPost, "/ui/api/servers/work", `{"enabled":false}`); status != http.StatusOK {
		t.Fatalf("got %d %s", status, text)
	}
	mcptest.Eventually(t, "it is disabled at all", func() bool { return disabled(one) && disabled(other) })
	if code := one.Stop(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	c.start(one)
	if !disabled(one) {
		t.Error("it is enabled after a restart")
	}
	c.nats.Stop()
	mcptest.Eventually(t, "nothing is switched without NATS", func() bool {
		status, _ := c.page(other, http.MethodPost, "/ui/api/servers/work", `{"enabled":true}`)
		return status == http.StatusServiceUnavailable
	})
	if !disabled(other) {
		t.Error("it is enabled without NATS")
	}
}

// What the command approves holds at all replicas.
func TestClusterApprove(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	for _, r := range c.replicas {
		c.want(c.dial(r), "result")
	}
	mcptest.Eventually(t, "the server is known", func() bool {
		out, _ := c.nexus("tools", "approve", "--config", c.config, "work")
		return strings.Contains(out, "nothing to approve")
	})
}
