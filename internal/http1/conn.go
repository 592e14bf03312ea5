package http1

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxHead limits the header of a response, including preceding informational responses, as net/http does.
const maxHead = 10 << 20

var errLongHead = errors.New("the header of the response is too long")

// conn is a connection with at most one request on it.
type conn struct {
	net.Conn
	pool   *pool
	host   string
	probe  func() bool // nil = cannot detect that the server has closed it
	cut    func()      // closes it
	reused bool
	since  time.Time // when it became idle

	unsent  error       // why the request could not be sent
	stop    func() bool // stops watching the request's context
	written int         // bytes of the request written
	left    int64       // bytes that may still be read
}

// outgoing is a request with the data needed to send it.
type outgoing struct {
	*http.Request
	message []byte // the encoded request
	trace   *httptrace.ClientTrace
}

func newConn(nc net.Conn, p *pool, host string) *conn {
	c := &conn{Conn: nc, pool: p, host: host, cut: func() { nc.Close() }}
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.probe = newProbe(raw)
		}
	}
	return c
}

// quiet reports whether an idle connection is open and the server has sent nothing on it.
func (c *conn) quiet() bool { return c.probe != nil && c.probe() }

// Read implements io.Reader for the response.
func (c *conn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// readers shares buffers between connections, so that idle ones need none. They hold the header of a response; a body
// is read into the buffer of its reader.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 2<<10) }}

// errDisturbed means that nothing was written: the server has closed the idle connection or sent data on it, or the
// request has ended.
var errDisturbed = errors.New("the idle connection is closed")

// roundTrip sends a request and reads the header of its response. On error it closes the connection.
func (c *conn) roundTrip(out outgoing) (*http.Response, error) {
	c.written, c.unsent, c.left = 0, nil, maxHead
	c.stop = context.AfterFunc(out.Context(), c.cut)
	resp, err := c.exchange(out)
	if err != nil {
		c.stop()
		c.Close()
	}
	return resp, err
}

func (c *conn) exchange(out outgoing) (*http.Response, error) {
	if c.reused && !c.quiet() {
		return nil, errDisturbed
	}
	c.send(out)
	// A server may refuse a request and close the connection before it has read all of it.
	if c.unsent != nil && (c.written == 0 || !isReset(c.unsent)) {
		return nil, c.unsent
	}
	r := readers.Get().(*bufio.Reader)
	r.Reset(c)
	resp, err := readResponse(r, out.Request)
	if err != nil {
		return nil, cmp.Or(c.unsent, err)
	}
	c.left = math.MaxInt64
	b := &body{ReadCloser: resp.Body, c: c, r: r, ctx: out.Context()}
	b.last = c.unsent != nil || resp.Close || resp.StatusCode == http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		b.end(true)
	}
	resp.Body = b
	return resp, nil
}

// send writes the request.
func (c *conn) send(out outgoing) {
	if out.trace.GotConn != nil {
		out.trace.GotConn(httptrace.GotConnInfo{Conn: c.Conn, Reused: c.reused})
	}
	c.written, c.unsent = c.Write(out.message)
	if out.trace.WroteRequest != nil {
		out.trace.WroteRequest(httptrace.WroteRequestInfo{Err: c.unsent})
	}
}

// readResponse reads the header of the final response.
func readResponse(r *bufio.Reader, req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(r, req)
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// untouched reports whether a failed request may be sent on another connection: nothing of it was written, or no
// response has begun and the request is repeatable.
func (c *conn) untouched(req *http.Request) bool {
	return c.written == 0 || c.left == maxHead && repeatable(req)
}

// body is a response body. At its end the connection is free again.
type body struct {
	io.ReadCloser
	c    *conn
	r    *bufio.Reader
	ctx  context.Context
	last bool // nothing may follow on the connection
	done atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	whole := errors.Is(err, io.EOF)
	b.end(whole)
	if !whole && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close implements io.Closer. It closes the connection unless the body was read to its end.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end returns the connection to the pool if the response is complete, else closes it.
func (b *body) end(whole bool) {
	if b.done.Swap(true) {
		return
	}
	if alive := b.c.stop(); !whole || !alive || b.last || b.r.Buffered() > 0 {
		b.c.Close()
		return
	}
	b.r.Reset(nil)
	readers.Put(b.r)
	b.c.pool.put(b.c)
}

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
