package http1

import (
	"cmp"
	"context"
	"maps"
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

// sweepBatch is the number of connections per host that a sweep removes at a time.
const sweepBatch = 64

// pool keeps the idle connections. No goroutine watches them: a connection is probed when it is used, and a timer
// probes all of them. No probe runs while the lock is held.
type pool struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	perHost int
	timeout time.Duration // maximum idle time of a connection; 0 = unlimited

	mu     sync.Mutex
	idle   map[string][]*conn // by host:port, most recently used last
	sweep  *time.Timer        // nil without idle connections
	closed int                // number of calls of close
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

// useful reports whether to keep an idle connection.
func (p *pool) useful(c *conn) bool {
	return c.quiet() && (p.timeout <= 0 || time.Since(c.since) < p.timeout)
}

// tidy closes idle connections that are not useful. It removes them for probing, a few at a time and the least
// recently used first, so that requests never wait and find the others.
func (p *pool) tidy() {
	p.mu.Lock()
	hosts := slices.Collect(maps.Keys(p.idle))
	p.mu.Unlock()
	for _, host := range hosts {
		at := 0 // connections before it have been probed
		for left := p.perHost; left > 0; {
			batch, closed := p.oldest(host, at)
			if len(batch) == 0 {
				break
			}
			left -= len(batch)
			batch = slices.DeleteFunc(batch, func(c *conn) bool {
				if p.useful(c) {
					return false
				}
				c.Close()
				return true
			})
			at = p.restore(host, at, batch, closed)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.idle, func(_ string, idle []*conn) bool { return len(idle) == 0 })
	switch {
	case p.sweep == nil:
	case len(p.idle) > 0:
		p.sweep.Reset(sweepTime)
	default:
		p.sweep = nil
	}
}

// oldest removes connections starting at index at, except the most recently used unless it is the only one. closed
// must be passed to restore.
func (p *pool) oldest(host string, at int) (batch []*conn, closed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[host]
	at = min(at, len(idle))
	end := min(at+sweepBatch, max(len(idle)-1, at+1), len(idle))
	batch = slices.Clone(idle[at:end])
	p.idle[host] = slices.Delete(idle, at, end)
	return batch, p.closed
}

// restore puts connections back and returns the index after them.
func (p *pool) restore(host string, at int, batch []*conn, closed int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[host]
	if p.closed != closed {
		for _, c := range batch {
			c.Close()
		}
		return len(idle)
	}
	at = min(at, len(idle))
	p.idle[host] = slices.Insert(idle, at, batch...)
	return at + len(batch)
}

// close closes the idle connections.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
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
