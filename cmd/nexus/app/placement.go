package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// placement lets one replica of a cluster run each server with placement: one. This App reaches those of others there,
// and serves its own to them. A nil placement changes nothing.
type placement struct {
	sole    *cluster.Sole
	lease   server.Lease              // of this replica
	peers   *edge.Edge                // serves the other replicas
	holders map[string]cluster.Holder // by server; App.lifecycle.reloading guards it

	mu    sync.Mutex
	names []string // of the servers with placement: one
}

func newPlacement(servers []downstream.ServerConfig) *placement {
	p := &placement{}
	p.configure(servers)
	return p
}

// configure sets the servers.
func (p *placement) configure(servers []downstream.ServerConfig) {
	if p == nil {
		return
	}
	var names []string
	for _, s := range servers {
		if s.Placement == server.PlacementOne {
			names = append(names, s.Name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = names
}

// attach connects the placement with the App and its replica.
func (p *placement) attach(a *App, r *cluster.Replica) {
	p.peers = edge.New(edge.Options{Logger: a.log, Name: router.Name, Version: a.opts.Version,
		Limits: a.opts.Config.Limits, Tracer: a.telemetry.Tracer()})
	p.sole, p.lease = cluster.NewSole(r), r.Directory()
	p.sole.Names = func() []string {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.names[:len(p.names):len(p.names)]
	}
	p.sole.Place = func(holders map[string]cluster.Holder) {
		a.lifecycle.reloading.Lock()
		defer a.lifecycle.reloading.Unlock()
		p.holders = holders
		applyServers(a)
	}
	p.sole.Close = func(ctx context.Context, server string) { downstream.CloseReplaced(ctx, a.servers, server) }
}

// lapsed closes what must not run here any more.
func (p *placement) lapsed() {
	p.sole.Lapsed()
	edge.Fenced(p.peers)
}

// stop lets others run the servers, and waits for their calls here. The edge of the clients has stopped.
func (p *placement) stop(ctx context.Context) {
	p.sole.Release(ctx)
	_ = p.peers.Stop(ctx) // what is cut off is told where it came from
	p.sole.Stop()
}

// of returns the configuration of a server for this replica.
func (p *placement) of(c downstream.ServerConfig) downstream.ServerConfig {
	if p == nil || c.Placement != server.PlacementOne {
		return c
	}
	at := p.holders[c.Name]
	c.Replica = at.Name
	if at.Here {
		c.Lease = p.lease
		return c
	}
	if c.ConnectTimeout = max(c.ConnectLimit(), server.DefaultConnectTimeout); c.PerClient() {
		c.Session = server.SessionPerClient
	} else {
		c.Session = server.SessionShared
	}
	c.Type, c.URL = downstream.TransportHTTP, cmp.Or(at.Address, "http://cluster")+"/cluster/servers/"+c.Name+"/mcp"
	c.Headers, c.Command, c.Args, c.Env, c.Cwd, c.Auth = nil, "", nil, nil, "", nil
	c.Via = nowhere{}
	if at.Peer != nil {
		c.Via = at.Peer
	}
	return c
}

// nowhere lets requests to a server that no replica runs wait until one does: until the configuration changes.
type nowhere struct{}

// placeTime is how long a server may run nowhere until its calls fail. It is shorter than an attempt to connect.
const placeTime = 12 * time.Second

// RoundTrip implements http.RoundTripper.
func (nowhere) RoundTrip(r *http.Request) (*http.Response, error) {
	timer := time.NewTimer(placeTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	return nil, errors.New("no replica of the cluster runs it now")
}

// handler serves the servers to the other replicas, and to nobody else.
func (p *placement) handler(a *App) http.Handler {
	servers := newSingles(a, p.peers, a.proxy.Peer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cluster.FromReplica(r.Context()) {
			http.NotFound(w, r)
			return
		}
		servers.ServeHTTP(w, r)
	})
}

// clients are those of this replica and the other replicas, which have sessions with its servers.
type clients struct{ own, peers *edge.Edge }

// Send implements proxy.Clients.
func (c clients) Send(session string, message []byte) bool {
	return c.own.Send(session, message) || c.peers.Send(session, message)
}

// Request implements proxy.Clients.
func (c clients) Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error) {
	m, err := c.own.Request(ctx, session, method, params)
	if errors.Is(err, edge.ErrNoClient) {
		return c.peers.Request(ctx, session, method, params)
	}
	return m, err
}
