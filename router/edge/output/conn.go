package output

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// CoalesceWrites prepares an HTTP server to send each event in one piece: net/http cuts what it writes at its
// buffer's 4 KiB, and plain clients take what one read gives them for a whole event. It also gives every write
// a time, so that a client that does not read loses its connection whatever is written to it. Without it all
// works, in pieces and without a time.
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

// connOf returns the connection of a request; nil where events may go out in pieces.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// conn is a connection that can hold back what is written, and that lets no write take for ever.
type conn struct {
	net.Conn
	mu      sync.Mutex
	holding bool
	held    []byte
	until   time.Time // the write deadline
}

// SetWriteDeadline implements net.Conn. net/http lifts the deadline between requests.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

// writeTimeout is how long a client may take at most, and half of it at least, to accept what is written at once.
const writeTimeout = 30 * time.Second

// write writes within writeTimeout. The deadline is set anew when half of that is gone, for most writes take no
// time and setting it costs as much. c.mu is held.
func (c *conn) write(b []byte) (int, error) {
	if now := time.Now(); c.until.Sub(now) < writeTimeout/2 {
		c.until = now.Add(writeTimeout)
		_ = c.Conn.SetWriteDeadline(c.until) // Write tells what is wrong with the connection
	}
	return c.Conn.Write(b)
}

// Write implements net.Conn. An error of what is held back is that of release.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.holding {
		return c.write(b)
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

// hold collects what is written until release. The nil conn does nothing.
func (c *conn) hold() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = true
}

// release writes what was collected. If that fails the connection is closed: net/http takes it for written.
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
