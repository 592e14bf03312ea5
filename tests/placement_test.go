package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// soleServer is the environment variable with the folder of a server that must not run twice at a time. This program is
// that server if it is set.
const soleServer = "NEXUS_TEST_SOLE"

// soleAt returns the ledgers of the server: its starts, with "two" for those beside another one, and its writes.
func soleAt(dir string) (starts, writes mcptest.Ledger) {
	return mcptest.Ledger{Path: filepath.Join(dir, "starts")}, mcptest.Ledger{Path: filepath.Join(dir, "writes")}
}

// serveAlone is the server.
func serveAlone(dir string) int {
	starts, writes := soleAt(dir)
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 1
	}
	defer lock.Close()
	what := "one"
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		what = "two"
	}
	if starts.Add(what) != nil {
		return 1
	}
	(&mcptest.Server{Ledger: writes}).ServeLines(os.Stdin, os.Stdout)
	return 0
}

// soleCluster is a cluster with the one server "work", which is to run once.
type soleCluster struct {
	*replicated
	starts, writes mcptest.Ledger
}

func placedOnce(t *testing.T, session string, more ...string) *soleCluster {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &soleCluster{}
	c.starts, c.writes = soleAt(dir)
	server := fmt.Sprintf("{command: %q, env: {%s: %q}, placement: one, session: %s}", self, soleServer, dir, session)
	c.replicated = clusterOf(t, 3, server, more...)
	return c
}

// ran checks how often the server was started, and that it never ran twice at a time.
func (c *soleCluster) ran(want int) {
	c.t.Helper()
	starts, err := c.starts.Writes()
	if err != nil || starts["one"] != want || starts["two"] != 0 {
		c.t.Errorf("starts: got %v (%v), want %d, none beside another", starts, err, want)
	}
}

// holder returns the replica that runs the server, according to another.
func (c *soleCluster) holder(asked *clustertest.Replica) *clustertest.Replica {
	c.t.Helper()
	var found *clustertest.Replica
	mcptest.Eventually(c.t, "a replica to run the server", func() bool {
		out, _ := c.nexus("health", "--json", "--remote", asked.URL())
		var health struct {
			Servers map[string]struct{ Status, Replica string }
		}
		if json.Unmarshal([]byte(out), &health) != nil || health.Servers["work"].Status != "connected" {
			return false
		}
		for _, r := range c.replicas {
			if r.Name == health.Servers["work"].Replica {
				found = r
			}
		}
		return found != nil
	})
	return found
}

func (c *soleCluster) others(r *clustertest.Replica) (others []*clustertest.Replica) {
	for _, other := range c.replicas {
		if other != r {
			others = append(others, other)
		}
	}
	return others
}

// load makes clients write through all replicas until stop is called, which returns the outcomes that are no results.
func (c *soleCluster) load(replicas ...*clustertest.Replica) (stop func() []string) {
	ctx, cancel := context.WithCancel(c.t.Context())
	failed := make(chan []string)
	for i, r := range replicas {
		client := c.dial(r)
		go func() {
			var failures []string
			for n := 0; ctx.Err() == nil; n++ {
				got := client.Call(context.WithoutCancel(ctx), "work__write", fmt.Sprintf(`{"key":"%d-%d"}`, i, n))
				if got.Outcome() != "result" {
					failures = append(failures, got.Outcome()+" "+got.Raw)
				}
			}
			failed <- failures
		}()
	}
	return func() (all []string) {
		cancel()
		for range replicas {
			all = append(all, <-failed...)
		}
		return all
	}
}

// wroteOnce checks that no write was repeated.
func (c *soleCluster) wroteOnce() {
	c.t.Helper()
	writes, err := c.writes.Writes()
	if err != nil || len(writes) == 0 {
		c.t.Errorf("got %d writes (%v), want some", len(writes), err)
	}
	for key, n := range writes {
		if n != 1 {
			c.t.Errorf("%s was written %d times", key, n)
		}
	}
}

// One replica runs the server, and the others reach it there. After its death another runs it, and no write is repeated.
func TestPlacement_Kill(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"shared", "per_client"} {
		t.Run(session, func(t *testing.T) {
			t.Parallel()
			c := placedOnce(t, session)
			holder := c.holder(c.replicas[2])
			for _, r := range c.replicas {
				c.want(c.dial(r), "result")
			}
			if session == "shared" {
				c.ran(1)
			}
			others := c.others(holder)
			stop := c.load(others...)
			mcptest.Eventually(t, "writes", func() bool { w, err := c.writes.Writes(); return err == nil && len(w) > 20 })
			holder.Kill()
			began := time.Now()
			mcptest.Eventually(t, "another replica to run the server", func() bool {
				return c.echo(c.dial(others[0])) == "result"
			})
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("another replica ran the server after %v, want at most 10 s", took)
			} else {
				t.Logf("another replica ran the server after %v", took)
			}
			for _, got := range stop() {
				if !strings.HasPrefix(got, "-32000 outcome_unknown") {
					t.Errorf("a write: got %s, want a result or outcome_unknown", got)
				}
			}
			c.wroteOnce()
			if session == "shared" {
				c.ran(2)
			}
			if now := c.holder(others[1]); now == holder {
				t.Errorf("%s runs the server, which is dead", now.Name)
			}
		})
	}
}

// A replica that ends, or that is drained, passes the server on, and no call fails.
func TestPlacement_Leave(t *testing.T) {
	t.Parallel()
	c := placedOnce(t, "shared")
	holder := c.holder(c.replicas[0])
	stop := c.load(c.others(holder)...)
	mcptest.Eventually(t, "writes", func() bool { w, err := c.writes.Writes(); return err == nil && len(w) > 20 })
	if code := holder.Stop(); code != 0 {
		t.Errorf("%s ended with %d, want 0", holder.Name, code)
	}
	next := c.holder(c.others(holder)[0])
	c.start(holder)
	if out, code := c.nexus("cluster", "drain", next.Name, "--remote", holder.URL()); code != 0 {
		t.Fatalf("drain: got %q and exit code %d", out, code)
	}
	mcptest.Eventually(t, "a third start", func() bool { s, err := c.starts.Writes(); return err == nil && s["one"] == 3 })
	for _, r := range c.replicas {
		c.want(c.dial(r), "result")
	}
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d writes failed, such as %s", len(failed), failed[0])
	}
	c.wroteOnce()
	c.ran(3)
}

// Without NATS the server stays where it is, also after the lease from before has run out.
func TestPlacement_WithoutNATS(t *testing.T) {
	t.Parallel()
	c := placedOnce(t, "shared")
	holder := c.holder(c.replicas[0])
	session := c.dial(holder)
	c.nats.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); <-tick.C {
		c.want(session, "result")
	}
	if err := c.nats.Start(); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.replicas {
		mcptest.Eventually(t, "a result", func() bool { return c.echo(c.dial(r)) == "result" })
	}
	c.ran(1)
}

// With discovery: eager a replica is ready when the server has listed its tools. Commands beside the cluster do not
// start the server.
func TestPlacement_Eager(t *testing.T) {
	t.Parallel()
	c := placedOnce(t, "shared", "discovery: eager")
	c.ran(1)
	for _, r := range c.replicas {
		if out, code := c.nexus("tools", "--remote", r.URL()); code != 0 || !strings.Contains(out, "echo") {
			t.Errorf("tools of %s: got %q and exit code %d, want those of the server", r.Name, out, code)
		}
	}
	for _, command := range [][]string{{"tools"}, {"call", "work__echo", "{}"}, {"query", "echo"}, {"stdio"}} {
		out, _ := c.nexus(append(command, "--config", c.config)...)
		if !strings.Contains(out, "no replica of cluster agenticnexus") || !strings.Contains(out, "(work); --remote URL") {
			t.Errorf("nexus %s: got %q, want a line that it is no replica", command[0], out)
		}
	}
	c.ran(1)
}

// The path of replicas is not for clients.
func TestPlacement_Client(t *testing.T) {
	t.Parallel()
	c := placedOnce(t, "shared")
	holder := c.holder(c.replicas[0])
	response, err := c.http.Post(holder.URL()+"/cluster/servers/work/mcp", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 404 {
		t.Errorf("a client at the path of replicas: got %d, want 404", response.StatusCode)
	}
}
