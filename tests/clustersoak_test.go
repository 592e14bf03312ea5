package tests

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// tally counts the calls of a load.
type tally struct {
	mu       sync.Mutex
	outcomes map[string]int
	took     []time.Duration // of calls with a result
}

func (l *tally) add(outcome string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[outcome]++
	if outcome == "result" {
		l.took = append(l.took, took)
	}
}

// TestClusterSoak kills replicas under load (`make cluster-soak`): no session is lost and no write happens twice.
func TestClusterSoak(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv("CLUSTER_KILLS"))
	if kills == 0 {
		t.Skip("runs by make cluster-soak")
	}
	c := cluster(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	load := &tally{outcomes: map[string]int{}}
	var callers sync.WaitGroup
	for i := range 12 {
		home := c.dial(c.replicas[i%3])
		client := &mcptest.Client{URL: c.balancer.URL() + "/proxy/mcp", HTTP: c.http, Session: home.Session}
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				r := client.Call(context.WithoutCancel(ctx), "work__write", fmt.Sprintf(`{"key":"%d-%d"}`, i, n))
				load.add(r.Outcome(), time.Since(began))
			}
		})
	}
	var adopted []time.Duration
	for n := range kills {
		victim, other := c.replicas[n%3], c.replicas[(n+1)%3]
		session := c.dial(victim)
		victim.Kill()
		began := time.Now()
		c.want(c.at(other, session), "result")
		adopted = append(adopted, time.Since(began))
		c.start(victim)
	}
	stop()
	callers.Wait()
	slices.Sort(adopted)
	slices.Sort(load.took)
	t.Logf("%d kills; adopted sessions answer within %v (median %v); calls: %v; p50 %v, p99 %v", kills, adopted[len(adopted)-1],
		adopted[len(adopted)/2], load.outcomes, load.took[len(load.took)/2], load.took[len(load.took)*99/100])
	if worst := adopted[len(adopted)-1]; worst > 2*time.Second {
		t.Errorf("an adopted session answered after %v, want at most 2 s", worst)
	}
	for outcome, n := range load.outcomes {
		switch outcome { // a killed replica cuts connections; 503 means that nothing was served
		case "result", "-32000 outcome_unknown", "HTTP 502", "no answer", "HTTP 503 -32000 unavailable":
		default:
			t.Errorf("%d calls ended as %s", n, outcome)
		}
	}
	writes, err := c.ledger.Writes()
	if err != nil {
		t.Fatal(err)
	}
	for key, n := range writes {
		if n > 1 {
			t.Errorf("%s was written %d times", key, n)
		}
	}
	if len(writes) < load.outcomes["result"] {
		t.Errorf("%d writes happened, but %d were confirmed", len(writes), load.outcomes["result"])
	}
}
