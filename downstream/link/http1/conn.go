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

// maxHead bounds the header of a response, informational ones before it included, as in net/http.
const maxHead = 10 << 20

var errLongHead = errors.New("the header of the response is too long")

// conn is a connection and, while it is in use, one request on it.
type conn struct {
	net.Conn
	pool   *pool
	host   string
	probe  func() bool // nil = it cannot be told whether the server has closed it
	await  func()      // waits until something can be read; nil if that cannot be told
	cut    func()      // closes it
	reused bool
	since  time.Time // when it became idle

	stop    func() bool // ends the watch over the context of the request
	written int         // bytes of the request
	failed  error       // of the last write; http.Request.Write hides it
	left    int64       // bytes that may still be read
}

func newConn(nc net.Conn, p *pool, host string) *conn {
	c := &conn{Conn: nc, pool: p, host: host, cut: func() { nc.Close() }}
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.probe, c.await = newProbe(raw), newAwait(raw)
		}
	}
	return c
}

// quiet reports whether the server has neither closed the idle connection nor sent anything on it.
func (c *conn) quiet() bool { return c.probe != nil && c.probe() }

// Write implements io.Writer for the request.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written += n
	c.failed = err
	return n, err
}

// Read implements io.Reader for the response.
func (c *conn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// The buffers of idle connections serve others.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}
)

// roundTrip sends a request and reads the header of its response. The connection is closed if that fails.
func (c *conn) roundTrip(req *http.Request) (*http.Response, error) {
	c.written, c.failed, c.left = 0, nil, maxHead
	c.stop = context.AfterFunc(req.Context(), c.cut)
	resp, err := c.exchange(req)
	if err != nil {
		c.stop()
		c.Close()
	}
	return resp, err
}

func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	unsent := c.send(req)
	if unsent != nil && !(c.written > 0 && isReset(c.failed)) {
		return nil, unsent
	}
	// A server may refuse a request and close the connection before it has read all of it.
	if c.await != nil {
		c.await() // a call that waits for its answer needs no buffer
	}
	r := readers.Get().(*bufio.Reader)
	r.Reset(c)
	resp, err := readResponse(r, req)
	if err != nil {
		return nil, cmp.Or(unsent, err)
	}
	c.left = math.MaxInt64
	b := &body{ReadCloser: resp.Body, c: c, r: r, ctx: req.Context()}
	b.last = unsent != nil || resp.Close || req.Close || resp.StatusCode == http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		b.end(true)
	}
	resp.Body = b
	return resp, nil
}

func (c *conn) send(req *http.Request) error {
	trace := httptrace.ContextClientTrace(req.Context())
	if trace != nil {
		req = req.WithContext(context.Background()) // it would call WroteRequest before the flush
	}
	w := writers.Get().(*bufio.Writer)
	w.Reset(c)
	err := req.Write(w)
	if err == nil {
		err = w.Flush()
	}
	w.Reset(nil)
	writers.Put(w)
	if trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
	return err
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

// untouched reports whether a request that failed may be sent on another connection: nothing of it has left, or
// no answer has begun and it may be sent twice.
func (c *conn) untouched(req *http.Request) bool {
	return c.written == 0 || c.left == maxHead && repeatable(req)
}

// body is that of a response. At its end the connection is free again.
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

// end gives the connection back if the response is whole, or closes it.
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
