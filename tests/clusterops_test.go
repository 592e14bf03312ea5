package tests

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Only a key with ops: true drains a replica; others are told in one line.
func TestCluster_DrainNeedsOps(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, fmt.Sprintf("auth: {api_keys: [{name: ann, sha256: %x}, {name: ops, sha256: %x, ops: true}]}",
		sha256.Sum256([]byte("ann's")), sha256.Sum256([]byte("op's"))))
	drain := func(key string) (string, int) {
		cmd := command(c.dir, "cluster", "drain", "r1", "--remote", c.replicas[1].URL())
		cmd.Env = append(cmd.Env, "NEXUS_API_KEY="+key)
		out, _ := cmd.CombinedOutput() // the exit code tells
		return string(out), cmd.ProcessState.ExitCode()
	}
	for name, test := range map[string]struct{ key, want string }{
		"none":    {"", "set NEXUS_API_KEY to one with ops: true"},
		"unknown": {"other", "set NEXUS_API_KEY to one with ops: true"},
		"no ops":  {"ann's", "only a key with ops: true can drain replicas"},
	} {
		out, code := drain(test.key)
		if code != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(out, test.want) {
			t.Errorf("%s: got %q and exit code %d, want a line with %q", name, out, code, test.want)
		}
	}
	if out, code := drain("op's"); code != 0 {
		t.Errorf("got %q and exit code %d, want that r1 is drained", out, code)
	}
}

// A draining replica that has lost NATS can serve no session. What asks it does not advise to start it.
func TestCluster_StatusWhileDraining(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	one := c.replicas[0]
	if out, code := c.nexus("cluster", "drain", one.Name, "--remote", one.URL()); code != 0 {
		t.Fatalf("drain: got %q and exit code %d", out, code)
	}
	c.nats.Stop()
	var out string
	mcptest.Eventually(t, "the loss to show", func() bool {
		var code int
		out, code = c.nexus("cluster", "status", "--remote", one.URL())
		return code == 1
	})
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, "ask another replica") || strings.Contains(out, "start a router") {
		t.Errorf("got %q, want a line that advises to ask another replica", out)
	}
}
