package tests

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestClusterSoak runs for minutes (`make cluster-soak`): RUNS kills and as many restarts under load.
func TestClusterSoak(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("CLUSTER_RUNS"))
	if runs == 0 {
		t.Skip("runs by make cluster-soak")
	}
	t.Run("kills", func(t *testing.T) { soakKills(t, runs) })
	t.Run("NATS", soakNATS)
	t.Run("restarts", func(t *testing.T) { rollingRestarts(t, runs) })
}

// soakKills kills replicas. Nothing is written twice, no session is lost, and those of the replica that is killed
// answer within 2 s. It logs how long calls of other sessions take meanwhile.
func soakKills(t *testing.T, runs int) {
	c := cluster(t, 3)
	var before, during, all []loadCall
	var adopted []time.Duration
	var old []*load
	for n := range runs {
		victim := c.replicas[n%3]
		l := c.load(4, 20*time.Millisecond)
		began := time.Now()
		time.Sleep(time.Second) // calls without a kill
		killed := time.Now()
		victim.Kill()
		c.start(victim)
		ended := time.Now()
		// A killed replica cuts connections, also those of requests that it passes on; 503 means that nothing was served.
		l.end("result", "-32000 outcome_unknown", "HTTP 502", "no answer", "HTTP 503 -32000 unavailable")
		old, all = append(old, l), append(all, l.calls...)
		first := map[string]time.Duration{} // results after the kill, by session
		for _, one := range l.calls {
			switch {
			case one.home == victim.Name && one.outcome == "result" && one.began.After(killed):
				if _, known := first[one.session]; !known {
					first[one.session] = one.ended.Sub(killed)
				}
			case one.home == victim.Name:
			case one.began.After(began) && one.ended.Before(killed):
				before = append(before, one)
			case one.began.After(killed) && one.began.Before(ended):
				during = append(during, one)
			}
		}
		for session, took := range first {
			if adopted = append(adopted, took); took > 2*time.Second {
				t.Errorf("kill %d: the session %s answered after %v, want at most 2 s", n, session, took)
			}
		}
	}
	for _, l := range old {
		for _, session := range l.sessions {
			c.want(session, "result")
		}
	}
	slices.Sort(adopted)
	quiet, disturbed := quantile(before, .99), quantile(during, .99)
	t.Logf("%d kills, %d sessions, calls: %v", runs, len(old)*12, outcomes(all))
	t.Logf("%d adopted sessions: first result after %v at the median and %v at most", len(adopted), adopted[len(adopted)/2],
		adopted[len(adopted)-1])
	t.Logf("calls of other sessions: p50 %v and p99 %v without kills (%d calls), p50 %v and p99 %v during kills (%d calls): %.1f ×",
		quantile(before, .5), quiet, len(before), quantile(during, .5), disturbed, len(during), float64(disturbed)/float64(quiet))
}
