package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/network"
)

// lossTime is longer than a lease lasts and longer than others wait before they end it.
const lossTime = 8 * time.Second

// reroute lets replicas that start from now on reach NATS through a network.
func (c *replicated) reroute() *network.Network {
	c.t.Helper()
	n := network.New(c.t, strings.TrimPrefix(c.nats.URL(), "nats://"))
	c.edit(c.nats.URL(), "nats://"+n.Address())
	return n
}

func (c *replicated) restart(all ...*clustertest.Replica) {
	c.t.Helper()
	for _, r := range all {
		if code := r.Stop(); code != 0 {
			c.t.Errorf("%s ended with %d, want 0", r.Name, code)
		}
		c.start(r)
	}
}

// bucket hands the stream of the cluster's bucket to use.
func (c *replicated) bucket(use func(js jetstream.JetStream, info *jetstream.StreamInfo) error) {
	c.t.Helper()
	conn, err := nats.Connect(c.nats.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		c.t.Fatal(err)
	}
	stream, err := js.Stream(c.t.Context(), "KV_agenticnexus")
	if err == nil {
		err = use(js, stream.CachedInfo())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// bound sets the limit of the bucket. What it holds stays, and a limit below that lets nothing in: at the limit itself,
// an entry that expires makes room for another.
func (c *replicated) bound(bytes int64) {
	c.t.Helper()
	c.bucket(func(js jetstream.JetStream, info *jetstream.StreamInfo) error {
		info.Config.MaxBytes = bytes
		_, err := js.UpdateStream(c.t.Context(), info.Config)
		return err
	})
}

const elsewhere = "HTTP 503 -32000 unavailable" // for a session whose home cannot be asked

// soakNATS disturbs NATS under load. No call is lost or done twice, calls end as docs/scaling.md says, no replica loses
// its lease, and afterwards all sessions are served everywhere.
func soakNATS(t *testing.T) {
	for name, row := range map[string]struct {
		allowed []string // outcomes of calls beside "result"
		disturb func(c *replicated)
	}{
		"restarted": {nil, func(c *replicated) {
			c.nats.Stop()
			if err := c.nats.Start(); err != nil {
				c.t.Fatal(err)
			}
			time.Sleep(lossTime)
		}},
		"cut off from all": {[]string{elsewhere}, func(c *replicated) {
			n := c.reroute()
			c.restart(c.replicas...)
			n.Stop()
			time.Sleep(lossTime)
			n.Restart()
		}},
		"cut off from one": {[]string{elsewhere}, func(c *replicated) {
			n := c.reroute()
			c.restart(c.replicas[2])
			n.Stop()
			time.Sleep(lossTime)
			n.Restart()
		}},
		"silent": {[]string{elsewhere}, func(c *replicated) {
			n := c.reroute()
			c.restart(c.replicas...)
			n.Disturb(network.Toxic{Kind: "timeout", Attributes: `"timeout":0`})
			time.Sleep(lossTime)
			n.Restart()
		}},
		"full": {[]string{"-32000 outcome_unknown", "HTTP 502", "no answer", elsewhere}, func(c *replicated) {
			own := c.dial(c.replicas[1])
			c.bound(1)
			time.Sleep(lossTime)
			for _, r := range c.replicas {
				c.want(c.at(r, own), "result")
			}
			moves := c.dial(c.replicas[0])
			c.replicas[0].Kill()
			c.want(c.at(c.replicas[1], moves), elsewhere)
			c.want(c.at(c.replicas[2], own), "result")
			c.bound(256 << 20)
			c.start(c.replicas[0])
		}},
		"slow": {[]string{"-32000 outcome_unknown", "HTTP 502", "no answer", elsewhere}, func(c *replicated) {
			n := c.reroute()
			c.restart(c.replicas...)
			n.Disturb(network.Toxic{Kind: "latency", Attributes: `"latency":300`})
			time.Sleep(lossTime)
			moves := c.dial(c.replicas[0])
			c.replicas[0].Kill()
			began := time.Now()
			c.want(c.at(c.replicas[1], moves), "result")
			c.t.Logf("a session was adopted in %v with a slow NATS", time.Since(began))
			c.start(c.replicas[0])
		}},
		"too slow": {[]string{elsewhere}, func(c *replicated) {
			n := c.reroute()
			c.restart(c.replicas...)
			n.Disturb(network.Toxic{Kind: "latency", Attributes: `"latency":2500`})
			time.Sleep(lossTime)
			n.Restart()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 3)
			l := c.load(2, 20*time.Millisecond)
			row.disturb(c)
			for _, session := range l.sessions { // everywhere, as soon as it can be reached again
				for _, r := range c.replicas {
					at := c.at(r, session)
					mcptest.Eventually(t, "a result at "+r.Name, func() bool { return c.echo(at) == "result" })
				}
			}
			l.end(append(row.allowed, "result")...)
			t.Logf("%s, p99 %v", outcomes(l.calls), quantile(l.calls, .99))
			for i, log := range c.logs {
				if log.Has("has lost its lease") {
					t.Errorf("%s has lost its lease", c.replicas[i].Name)
				}
			}
		})
	}
}
