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
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxHead limits the header of a response, including preceding informational responses, as net/http does.
const maxHead = 10 << 20

var errLongHead = errors.New("the header of the response is too long")

// conn is a connection with at most one request on it.
type conn struct {
	net.Conn
	pool        *pool
	host        string
	probe       func() bool                  // nil = cannot detect that the server has closed it
	sendAndWait func(probe bool) (sent bool) // sends the request and awaits the response; nil if probe is
	cut         func()                       // closes it
	reused      bool
	since       time.Time // when it became idle

	out     outgoing    // set until it is sent
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
			c.probe, c.sendAndWait = newProbe(raw), newSendAndWait(raw, c.send)
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

// readers shares buffers between connections, so that idle ones need none.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// errDisturbed means that nothing was written: the server has closed the idle connection or sent data on it, or the
// request has ended.
var errDisturbed = errors.New("the idle connection is closed")

// roundTrip sends a request and reads the header of its response. On error it closes the connection.
func (c *conn) roundTrip(out outgoing) (*http.Response, error) {
	c.out, c.written, c.unsent, c.left = out, 0, nil, maxHead
	c.stop = context.AfterFunc(out.Context(), c.cut)
	resp, err := c.exchange(out.Request)
	if err != nil {
		c.stop()
		c.Close()
	}
	return resp, err
}

func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	if c.sendAndWait == nil {
		c.send()
	} else if !c.sendAndWait(c.reused) { // no buffer is needed while waiting
		return nil, errDisturbed
	}
	if !c.heard() {
		return nil, c.unsent
	}
	r := readers.Get().(*bufio.Reader)
	r.Reset(c)
	resp, err := readResponse(r, req)
	if err != nil {
		return nil, cmp.Or(c.unsent, err)
	}
	c.left = math.MaxInt64
	b := &body{ReadCloser: resp.Body, c: c, r: r, ctx: req.Context()}
	b.last = c.unsent != nil || resp.Close || resp.StatusCode == http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		b.end(true)
	}
	resp.Body = b
	return resp, nil
}

// heard reports whether there may be a response. A server may refuse a request and close the connection before it has
// read all of it.
func (c *conn) heard() bool { return c.unsent == nil || c.written > 0 && isReset(c.unsent) }

// send writes the request and reports whether there may be a response.
func (c *conn) send() bool {
	out := c.out
	c.out = outgoing{} // an idle connection must not retain it
	if out.trace.GotConn != nil {
		out.trace.GotConn(httptrace.GotConnInfo{Conn: c.Conn, Reused: c.reused})
	}
	c.written, c.unsent = c.Write(out.message)
	if out.trace.WroteRequest != nil {
		out.trace.WroteRequest(httptrace.WroteRequestInfo{Err: c.unsent})
	}
	return c.heard()
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
