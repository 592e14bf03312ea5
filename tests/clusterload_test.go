package tests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// load is a load on a cluster: callers with a session each call through the balancer, one call after the other. Each
// call writes a key of its own.
type load struct {
	c        *replicated
	number   int64
	sessions []*mcptest.Client
	stop     context.CancelFunc
	callers  sync.WaitGroup

	mu    sync.Mutex
	calls []loadCall
}

// loadCall is a call of a load.
type loadCall struct {
	home          string // the replica at which its session was opened
	session, key  string
	began, ended  time.Time
	outcome, text string // in a few words, and all that came
}

func (l loadCall) took() time.Duration { return l.ended.Sub(l.began) }

var loads atomic.Int64

// load begins a load with a number of sessions at each replica. Their callers begin a call each pace, or when the one
// before has ended. Every fifth call has a stream as response, which takes a quarter of a second.
func (c *replicated) load(perReplica int, pace time.Duration) *load {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	l := &load{c: c, number: loads.Add(1), stop: stop}
	for range perReplica {
		for _, r := range c.replicas {
			client := c.through(c.dial(r))
			l.sessions = append(l.sessions, client)
			n := len(l.sessions)
			l.callers.Go(func() { l.run(ctx, client, r, n, pace) })
		}
	}
	return l
}

// through returns a client with the session of another, through the balancer.
func (c *replicated) through(of *mcptest.Client) *mcptest.Client {
	return &mcptest.Client{URL: c.front + "/proxy/mcp", HTTP: c.http, Session: of.Session}
}

func (l *load) run(ctx context.Context, client *mcptest.Client, home *clustertest.Replica, caller int, pace time.Duration) {
	next := time.NewTicker(max(pace, 1))
	defer next.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		tool, key := "work__write", fmt.Sprintf("%d-%d-%d", l.number, caller, n)
		if n%5 == 4 {
			tool = "work__slow"
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		r := client.Call(limited, tool, fmt.Sprintf(`{"key":%q,"ms":250}`, key))
		cancel()
		one := loadCall{home.Name, client.Session, key, began, time.Now(), r.Outcome(), fmt.Sprint(r.Status, r.Raw, r.Err)}
		if n%5 == 4 {
			one.began = one.began.Add(250 * time.Millisecond) // what the router has added
		}
		l.mu.Lock()
		l.calls = append(l.calls, one)
		l.mu.Unlock()
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
}

// end ends the load. Each outcome must be one of those that are allowed, each session must still be there, and each
// write must have happened once if its call had a result, and never twice.
func (l *load) end(allowed ...string) {
	t := l.c.t
	t.Helper()
	l.stop()
	l.callers.Wait()
	writes, err := l.c.ledger.Writes()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range l.calls {
		if !slices.Contains(allowed, one.outcome) {
			t.Errorf("%s: a call of a session at %s ended after %v as %s: %s", one.began.Format(time.StampMilli), one.home, one.took(), one.outcome, one.text)
		}
		if n := writes[one.key]; n > 1 || n == 0 && one.outcome == "result" {
			t.Errorf("%s: %d writes and %s", one.key, n, one.outcome)
		}
	}
	for _, session := range l.sessions {
		l.c.want(session, "result")
	}
}

// outcomes counts how the calls ended, in words.
func outcomes(calls []loadCall) string {
	counts := map[string]int{}
	for _, one := range calls {
		counts[one.outcome]++
	}
	var words []string
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d × %s", counts[outcome], outcome))
	}
	return fmt.Sprint(words)
}

// quantile returns a quantile of the times of calls with a result, 0 without any.
func quantile(calls []loadCall, of float64) time.Duration {
	var times []time.Duration
	for _, one := range calls {
		if one.outcome == "result" {
			times = append(times, one.took())
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.SortFunc(times, cmp.Compare)
	return times[int(of*float64(len(times)-1))]
}
