package output

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// CoalesceWrites makes an HTTP server send each event in one piece: net/http splits writes at its 4 KiB buffer, and
// simple clients treat each read as a whole event. It also sets a deadline for every write, so that a client that
// does not read loses its connection. It is optional; without it events may be split and writes have no deadline.
func CoalesceWrites(s *http.Server, l net.Listener) net.Listener {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	return coalescing{l}
}

type coalescing struct{ net.Listener }

// Accept implements net.Listener.
func (l coalescing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

type connKey struct{}

// connOf returns the connection of a request; nil without CoalesceWrites.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// conn is a connection that can collect writes, and whose writes have a deadline.
type conn struct {
	net.Conn
	mu      sync.Mutex
	holding bool
	held    []byte
	until   time.Time // the write deadline
}

// SetWriteDeadline implements net.Conn. net/http clears the deadline between requests; the last one is kept, because
// the next write sets its own.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

// writeTimeout limits one write. Some writes get only half of it, see conn.write.
const writeTimeout = 30 * time.Second

// write writes within writeTimeout. It renews the deadline only after half of it has passed, because setting it costs
// as much as most writes. The caller holds c.mu.
func (c *conn) write(b []byte) (int, error) {
	if now := time.Now(); c.until.Sub(now) < writeTimeout/2 {
		c.until = now.Add(writeTimeout)
		_ = c.Conn.SetWriteDeadline(c.until) // Write returns the error
	}
	return c.Conn.Write(b)
}

// Write implements net.Conn. While writes are collected it never fails; release reports their error.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.holding {
		return c.write(b)
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

// hold collects writes until release. A nil conn does nothing.
func (c *conn) hold() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = true
}

// release writes the collected bytes. If that fails it closes the connection, because net/http considers them
// written.
func (c *conn) release() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held
	c.holding, c.held = false, nil
	if len(held) == 0 {
		return nil
	}
	_, err := c.write(held)
	if err != nil {
		c.Conn.Close()
	}
	return err
}
