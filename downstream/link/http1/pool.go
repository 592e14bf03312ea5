package http1

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// sweepTime limits how long an idle connection stays open after the server has closed it or its timeout has passed.
var sweepTime = 5 * time.Second // a variable for tests

// pool keeps the idle connections. No goroutine watches them: a connection is probed when it is used, and a timer
// probes all of them.
type pool struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	perHost int
	timeout time.Duration // maximum idle time of a connection; 0 = unlimited

	mu    sync.Mutex
	idle  map[string][]*conn // by host:port, most recently used last
	sweep *time.Timer        // nil without idle connections
}

// dialer returns the dial function of rest.
func dialer(rest *http.Transport) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if rest.DialContext != nil {
		return rest.DialContext
	}
	return new(net.Dialer).DialContext
}

func newPool(rest *http.Transport) pool {
	return pool{
		dial: dialer(rest), perHost: cmp.Or(rest.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost),
		timeout: rest.IdleConnTimeout,
		idle:    map[string][]*conn{},
	}
}

// get returns an idle connection or a new one. The round trip detects whether an idle one is still usable.
func (p *pool) get(ctx context.Context, u *url.URL) (*conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c := p.take(u.Host); c != nil {
		return c, nil
	}
	host, err := httpguts.PunycodeHostPort(u.Hostname())
	if err != nil {
		return nil, err
	}
	nc, err := p.dial(ctx, "tcp", net.JoinHostPort(host, cmp.Or(u.Port(), "80")))
	if err != nil {
		return nil, err
	}
	return newConn(nc, p, u.Host), nil
}

func (p *pool) take(host string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[host]
	if len(idle) == 0 {
		return nil
	}
	c := idle[len(idle)-1]
	idle[len(idle)-1] = nil
	p.idle[host] = idle[:len(idle)-1]
	return c
}

func (p *pool) put(c *conn) {
	c.reused, c.since = true, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.probe == nil || len(p.idle[c.host]) >= p.perHost {
		c.Close()
		return
	}
	p.idle[c.host] = append(p.idle[c.host], c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(sweepTime, p.tidy)
	}
}

// tidy closes the idle connections that the server has closed or that are too old.
func (p *pool) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, idle := range p.idle {
		p.idle[host] = slices.DeleteFunc(idle, func(c *conn) bool {
			useful := c.quiet() && (p.timeout <= 0 || time.Since(c.since) < p.timeout)
			if !useful {
				c.Close()
			}
			return !useful
		})
		if len(p.idle[host]) == 0 {
			delete(p.idle, host)
		}
	}
	switch {
	case p.sweep == nil:
	case len(p.idle) > 0:
		p.sweep.Reset(sweepTime)
	default:
		p.sweep = nil
	}
}

// close closes the idle connections.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, idle := range p.idle {
		for _, c := range idle {
			c.Close()
		}
	}
	clear(p.idle)
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
