package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// measured is what a call costs: CPU of the routers alone, and with that of the client and the plain
// proxy, and the median time.
type measured struct{ routers, all, median time.Duration }

// figures are those of some rounds.
type figures []measured

func (f figures) median(of func(measured) time.Duration) time.Duration {
	var values []time.Duration
	for _, m := range f {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func routers(m measured) time.Duration { return m.routers }
func total(m measured) time.Duration   { return m.all }
func half(m measured) time.Duration    { return m.median }

// cpu returns the CPU of this process and that of replicas.
func cpu(t *testing.T, replicas []*clustertest.Replica) (own, theirs time.Duration) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with these arguments
	for _, r := range replicas {
		ran, err := r.CPU()
		if err != nil {
			t.Skip("the time of a process cannot be read: ", err)
		}
		theirs += ran
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), theirs
}

// measure makes calls in a number of sessions at once, for which dial gives clients.
func measure(t *testing.T, replicas []*clustertest.Replica, callers, calls int, dial func(n int) *mcptest.Client) measured {
	t.Helper()
	var clients []*mcptest.Client
	for n := range callers {
		clients = append(clients, dial(n))
	}
	times := make([][]time.Duration, callers)
	ctx := t.Context()
	run := func(calls int) {
		var running sync.WaitGroup
		for n, client := range clients {
			times[n] = nil
			running.Go(func() {
				for range calls / callers {
					began := time.Now()
					if got := client.Call(ctx, "work__echo", `{"key":"a"}`).Outcome(); got != "result" {
						t.Errorf("got %s, want result", got)
						return
					}
					times[n] = append(times[n], time.Since(began))
				}
			})
		}
		running.Wait()
	}
	run(10 * callers)
	own, theirs := cpu(t, replicas)
	run(calls)
	ownNow, theirsNow := cpu(t, replicas)
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) == 0 {
		t.FailNow()
	}
	n := time.Duration(len(all))
	return measured{(theirsNow - theirs) / n, (ownNow - own + theirsNow - theirs) / n, all[len(all)/2]}
}

// TestClusterBench prints what a call to a stdio server costs at its session's home, through another replica, in a router
// without a cluster and through a plain proxy in front of that, and what idle sessions take on NATS (`make
// cluster-bench`).
func TestClusterBench(t *testing.T) {
	if os.Getenv("CLUSTER_BENCH") == "" {
		t.Skip("runs by make cluster-bench")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("{command: %q, env: {%s: %q}}", self, soleServer, t.TempDir())
	c := clusterOf(t, 3, server, "limits: {sessions: 30000}")
	c.edit("level: debug", "level: warn")
	c.restart(c.replicas...)
	keep := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer keep.CloseIdleConnections()
	dial := func(url string) *mcptest.Client {
		client, err := mcptest.Dial(t.Context(), keep, url+"/proxy/mcp")
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	c.config = filepath.Join(c.dir, "alone.yaml")
	if err := os.WriteFile(c.config, []byte("log: {level: warn}\nmcpServers: {work: "+server+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	alone := c.replica("alone")
	c.start(alone)
	to, err := url.Parse(alone.URL())
	if err != nil {
		t.Fatal(err)
	}
	plain := httputil.NewSingleHostReverseProxy(to)
	plain.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	front := httptest.NewServer(plain)
	defer front.Close()
	all := append(slices.Clone(c.replicas), alone)
	for _, callers := range []int{1, 16} {
		got := map[string]figures{}
		paths := []struct {
			name string
			dial func(n int) *mcptest.Client
		}{
			{"without a cluster", func(int) *mcptest.Client { return dial(alone.URL()) }},
			{"at its home", func(int) *mcptest.Client { return dial(c.replicas[0].URL()) }},
			{"through another replica", func(int) *mcptest.Client {
				client := dial(c.replicas[0].URL())
				return &mcptest.Client{URL: c.replicas[1].URL() + "/proxy/mcp", HTTP: keep, Session: client.Session}
			}},
			{"through a plain proxy", func(int) *mcptest.Client { return dial(front.URL) }},
		}
		for range 5 {
			for _, path := range paths {
				got[path.name] = append(got[path.name], measure(t, all, callers, 2000, path.dial))
			}
		}
		base := got["without a cluster"]
		for _, path := range paths {
			f := got[path.name]
			t.Logf("%2d callers, %-24s routers %v a call (%.2f ×), with the client %v (%.2f ×), p50 %v", callers, path.name,
				f.median(routers), float64(f.median(routers))/float64(base.median(routers)),
				f.median(total), float64(f.median(total))/float64(base.median(total)), f.median(half))
		}
	}
	const sessions = 20_000
	before := c.stored()
	var opening sync.WaitGroup
	for worker := range 8 {
		opening.Go(func() {
			for n := worker; n < sessions && !t.Failed(); n += 8 {
				if _, err := mcptest.Dial(context.WithoutCancel(t.Context()), keep, c.replicas[n%3].URL()+"/proxy/mcp"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	opening.Wait()
	t.Logf("%d idle sessions: %.1f bytes on NATS each", sessions, float64(c.stored()-before)/sessions)
}

// stored returns the bytes of the bucket.
func (c *replicated) stored() (bytes int64) {
	c.t.Helper()
	c.bucket(func(_ jetstream.JetStream, info *jetstream.StreamInfo) error {
		bytes = int64(info.State.Bytes)
		return nil
	})
	return bytes
}
