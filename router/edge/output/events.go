package output

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// eventSink writes messages as server-sent events.
type eventSink struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	buf    []byte
	cursor *cursor // numbers the events of a resumable stream; else nil
	conn   *conn   // sends flushed bytes in one piece; may be nil
}

func newEventSink(w http.ResponseWriter, c *cursor, on *conn) *eventSink {
	return &eventSink{w: w, rc: http.NewResponseController(w), cursor: c, conn: on}
}

// write sends events; those below largeBody in one piece.
func (s *eventSink) write(ms []Message) error {
	if err := s.putEvents(ms); err != nil {
		return err
	}
	return s.flush()
}

// writeLast writes the only event of a stream; the end of the HTTP handler flushes it.
func (s *eventSink) writeLast(m Message) error {
	if err := s.putEvents([]Message{m}); err != nil {
		return err
	}
	return writePieces(s.w, s.buf)
}

// putEvents writes large events and leaves the rest in buf.
func (s *eventSink) putEvents(ms []Message) error {
	s.buf = s.buf[:0]
	if s.cursor != nil && s.cursor.prime {
		s.buf = s.cursor.appendPriming(s.buf)
	}
	for _, m := range ms {
		s.buf = append(s.buf, "event: message\n"...)
		if s.cursor != nil {
			s.buf = s.cursor.append(s.buf, m)
		}
		var err error
		if s.buf, err = m.put(append(s.buf, "data: "...), s.w); err != nil {
			return err
		}
		s.buf = append(s.buf, "\n\n"...)
	}
	return nil
}

// resend sends kept events again. If there are none, it sends a comment to show that the stream is open.
func (s *eventSink) resend(events []event) error {
	s.buf = s.buf[:0]
	for _, e := range events {
		s.buf = append(s.buf, "event: message\n"...)
		s.buf = s.cursor.lines(s.buf, e.seq)
		s.buf = append(s.buf, "data: "...)
		s.buf = append(e.data.Append(s.buf), "\n\n"...)
	}
	if len(events) == 0 {
		return s.heartbeat()
	}
	return s.flush()
}

// event sends one event of a given name.
func (s *eventSink) event(name, data string) error {
	s.buf = append(s.buf[:0], "event: "+name+"\ndata: "+data+"\n\n"...)
	return s.flush()
}

// heartbeat sends a comment. The first comment of a resumable stream carries the id of the last event.
func (s *eventSink) heartbeat() error {
	s.buf = append(s.buf[:0], ": keep-alive\n"...)
	if s.cursor != nil {
		s.buf = s.cursor.appendStart(s.buf)
	}
	s.buf = append(s.buf, '\n')
	return s.flush()
}

func (s *eventSink) flush() error {
	s.conn.hold()
	err := writePieces(s.w, s.buf)
	if err == nil {
		err = s.rc.Flush()
	}
	if sent := s.conn.release(); sent != nil {
		return sent
	}
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

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

// NetConn returns the connection that c wraps.
func (c *conn) NetConn() net.Conn { return c.Conn }

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
