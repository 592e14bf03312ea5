package http1

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// sweepTime is how long an idle connection may stay open after the server has closed it, or after its time.
var sweepTime = 5 * time.Second // a variable for tests

// pool keeps the idle connections. No goroutine watches them: they are looked at when they are needed, and by a
// timer that runs while there are any.
type pool struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	perHost int
	timeout time.Duration // for which a connection may be idle; 0 = for ever

	mu    sync.Mutex
	idle  map[string][]*conn // by host and port as URLs have them, the last one used at the end
	sweep *time.Timer        // nil while there are none
}

func newPool(rest *http.Transport) pool {
	dial := rest.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return pool{
		dial: dial, perHost: cmp.Or(rest.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost), timeout: rest.IdleConnTimeout,
		idle: map[string][]*conn{},
	}
}

// get returns a connection on which nothing has happened since its last response, or a new one.
func (p *pool) get(ctx context.Context, u *url.URL) (*conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for c := p.take(u.Host); c != nil; c = p.take(u.Host) {
		if c.quiet() {
			return c, nil
		}
		c.Close()
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
	if len(p.idle[c.host]) >= p.perHost {
		c.Close()
		return
	}
	p.idle[c.host] = append(p.idle[c.host], c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(sweepTime, func() { p.clean(p.useful) })
	}
}

// useful reports whether an idle connection is worth keeping.
func (p *pool) useful(c *conn) bool {
	return c.quiet() && (p.timeout <= 0 || time.Since(c.since) < p.timeout)
}

// clean closes the idle connections but those to keep.
func (p *pool) clean(keep func(*conn) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, idle := range p.idle {
		left := idle[:0]
		for _, c := range idle {
			if keep(c) {
				left = append(left, c)
			} else {
				c.Close()
			}
		}
		clear(idle[len(left):])
		if p.idle[host] = left; len(left) == 0 {
			delete(p.idle, host)
		}
	}
	switch {
	case p.sweep == nil:
	case len(p.idle) > 0:
		p.sweep.Reset(sweepTime)
	default:
		p.sweep.Stop()
		p.sweep = nil
	}
}
