package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/internal/shared/jetstream"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const (
	joinTime  = 15 * time.Second // to reach NATS at the start
	leaveTime = 2 * time.Second  // to give up the lease
	orderLife = time.Hour        // of an order to drain
	orders    = "drain/"         // prefix of the keys of such orders; an incarnation follows
	lookIdle  = 20 * time.Millisecond
	stuckTime = 3 * time.Second // without a session handed over
)

// Cluster is the place of an App in a cluster. Join makes it; the App that gets it closes it.
type Cluster struct {
	cfg     config.Cluster
	log     *slog.Logger
	store   *jetstream.Store
	ring    *shared.Ring
	state   shared.State   // sealed
	common  *shared.Mirror // of what is kept beside sessions
	replica *cluster.Replica
	begun   chan struct{}          // closed when the replica takes part, or cannot
	digest  atomic.Pointer[string] // of the configuration
	rate    *limit.Rate            // counts with the other replicas
	lives   context.Context        // ends running
	stop    context.CancelFunc     // of lives
	running sync.WaitGroup
}

// Join connects to the cluster's NATS within 15 s and reads the keys of the cluster. An App with the result takes part
// in the cluster from Listen to Stop. The error is one line that names the address of NATS.
func Join(ctx context.Context, cfg config.Cluster, log *slog.Logger) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	store, err := jetstream.Open(ctx, jetstream.Options{
		URL: cfg.NATS.URL, Credentials: cfg.NATS.Creds, CA: cfg.NATS.TLS.CA, Cert: cfg.NATS.TLS.Cert, Key: cfg.NATS.TLS.Key,
		Bucket: cfg.Name, Log: log,
	})
	if err != nil {
		return nil, err
	}
	ring, err := shared.OpenRing(ctx, store, cfg.Key.Reveal())
	if err != nil {
		store.Close()
		return nil, err
	}
	state := shared.Sealed(store, ring)
	common, err := shared.OpenMirror(ctx, state, append(oauth.SharedPrefixes(), pins.SharedPrefix, switchKey)...)
	if err != nil {
		store.Close()
		return nil, err
	}
	c := &Cluster{cfg: cfg, log: log, store: store, ring: ring, state: state, common: common,
		begun: make(chan struct{})}
	c.lives, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close leaves the cluster without an App.
func (c *Cluster) Close() {
	c.stop()
	c.common.Close()
	c.store.Close()
}

// Pins returns the pins that the replicas share, for pins.Options.
func (c *Cluster) Pins() *shared.Mirror { return c.common }

// prepare makes the replica of an App.
func (c *Cluster) prepare(a *App) error {
	address, err := c.cfg.Address(a.opts.Config.Listen)
	if err != nil {
		return err
	}
	a.rate.Share(c.state, rand.Text(), c.ring.Now)
	c.rate = a.rate
	c.configure(a.opts.Config)
	c.replica = cluster.New(cluster.Config{
		Leases: c.store, Sessions: c.state, Name: c.cfg.Replica, Address: address, Version: a.opts.Version,
		Digest: func() string { return *c.digest.Load() },
		Keys:   func() [][]byte { return c.ring.Keys("requests between replicas") },
		Count:  func() int { return a.edge.Sessions() },
		Ended: func(uint64) {
			a.serverSet.placed.lapsed()
			edge.Fenced(a.edge)
		},
		Log: a.log,
	})
	return nil
}

// configure notes a digest of the configuration without secrets and without what may differ between replicas.
func (c *Cluster) configure(cfg config.Config) {
	s := cfg.Settings
	s.Listen, s.State, s.Cluster = "", "", config.Cluster{}
	s.Log, s.Telemetry, s.Audit.Path = telemetry.LogConfig{}, telemetry.Config{}, ""
	text, _ := json.Marshal(struct { // cannot fail
		Settings config.Settings
		Servers  []downstream.ServerConfig
	}{s, cfg.Servers})
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:8])
	c.digest.Store(&digest)
}

// receive accepts requests of other replicas. Those of clients wait until the replica takes part.
func (c *Cluster) receive(next http.Handler) http.Handler {
	return c.replica.Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case <-c.begun:
		case <-r.Context().Done():
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// start takes part in the cluster. Requests of other replicas can be answered already. drained is called when the
// replica hands its sessions over because an operator wants it; follow is called until the replica leaves.
func (c *Cluster) start(ctx context.Context, drained func(), follow func(context.Context)) error {
	defer close(c.begun)
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	if err := c.replica.Start(ctx); err != nil {
		return fmt.Errorf("joining the cluster %s: %w", c.cfg.Name, err)
	}
	c.running.Go(func() {
		defer safe.Recover(c.log, "keeping the cluster's keys", nil)
		c.ring.Run(c.lives, c.log)
	})
	c.running.Go(func() {
		defer safe.Recover(c.log, "counting calls with the other replicas", nil)
		c.rate.Run(c.lives)
	})
	c.running.Go(func() {
		defer safe.Recover(c.log, "waiting for orders to drain", nil)
		_ = c.state.Watch(c.lives, orders, func(e shared.Entry) { // until lives ends
			if e.Value != nil && e.Key == orders+incarnation(c.replica.Directory().Self()) {
				c.log.Warn("this replica hands its sessions over and takes no new ones", "by", string(e.Value))
				c.replica.Drain()
				drained()
			}
		})
	})
	c.running.Go(func() {
		defer safe.Recover(c.log, "following the switches of servers", nil)
		follow(c.lives)
	})
	c.log.Info("joined the cluster", "cluster", c.cfg.Name, "replica", c.cfg.Replica)
	return nil
}

func incarnation(n uint64) string { return strconv.FormatUint(n, 16) }

// order lets a replica hand its sessions over on behalf of an operator.
func (c *Cluster) order(ctx context.Context, name, by string) error {
	members := c.replica.Members()
	i := slices.IndexFunc(members, func(m *cluster.Member) bool { return m.Name == name })
	if i < 0 {
		names := make([]string, len(members))
		for n, m := range members {
			names[n] = m.Name
		}
		return fmt.Errorf("no replica has the name %s; there are %s", name, strings.Join(names, ", "))
	}
	if !slices.ContainsFunc(members, func(m *cluster.Member) bool { return m.Name != name && !m.Draining }) {
		return fmt.Errorf("%s is the last replica that takes sessions; start another one first", name)
	}
	key := orders + incarnation(members[i].Incarnation)
	_, err := c.state.Put(ctx, key, []byte(cmp.Or(by, "an operator")), 0, orderLife)
	if errors.Is(err, shared.ErrConflict) { // it is draining already
		return nil
	}
	return err
}

// drain hands the sessions over, and waits while those that are left get less. Requests that come meanwhile are passed
// on. What stays, such as sessions with a long call, ends with the App.
func (c *Cluster) drain(ctx context.Context, left func() int) {
	c.replica.Drain()
	tick := time.NewTicker(lookIdle)
	defer tick.Stop()
	for before, since := left(), time.Now(); before > 0 && time.Since(since) < stuckTime; {
		if _, others := c.replica.Directory().Elsewhere(); !others {
			return
		}
		if now := left(); now != before {
			before, since = now, time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave gives up the lease, when nothing is served any more.
func (c *Cluster) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := c.replica.Leave(ctx); err != nil {
		c.log.Warn("leaving the cluster failed; the other replicas wait for the end of the lease", "error", err)
	}
}

// close ends all goroutines and the connection to NATS.
func (c *Cluster) close() {
	c.replica.Stop()
	c.stop()
	c.running.Wait()
	c.Close()
}

// status describes the cluster.
func (c *Cluster) status() *router.Cluster {
	out := &router.Cluster{
		Name: c.cfg.Name, Replica: c.cfg.Replica, NATS: router.NATSDisconnected, Replicas: []router.Replica{},
	}
	if c.store.Connected() {
		out.NATS = router.NATSConnected
	}
	for _, m := range c.replica.Members() {
		out.Replicas = append(out.Replicas, router.Replica{
			Name: m.Name, Address: m.Address, Version: m.Version, Sessions: m.Sessions, Since: m.Started.UTC(),
			Draining: m.Draining,
		})
	}
	return out
}

// collect sends the metrics of the cluster.
func (c *Cluster) collect(send func(kind prometheus.ValueType, name, help string, value float64)) {
	s := c.status()
	forwarded, adopted := cluster.Counts(c.replica)
	send(prometheus.GaugeValue, "nexus_cluster_replicas", "Replicas of the cluster that live.", float64(len(s.Replicas)))
	send(prometheus.GaugeValue, "nexus_cluster_nats_connected", "Whether the replica is connected to NATS.",
		float64(flag(s.NATS == router.NATSConnected)))
	send(prometheus.CounterValue, "nexus_cluster_forwarded_requests_total", "Requests passed on to other replicas.",
		float64(forwarded))
	send(prometheus.CounterValue, "nexus_cluster_adopted_sessions_total", "Sessions taken over from other replicas.",
		float64(adopted))
}
