package edge_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// writes counts the writes to connections.
type writes struct {
	net.Listener
	mu  sync.Mutex
	all [][]byte
}

type counted struct {
	net.Conn
	w *writes
}

func (w *writes) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return counted{c, w}, err
}

// Every write has a deadline: otherwise a client that never reads would keep its connection.
func TestAnswersHaveADeadline(t *testing.T) {
	e := edge.New(edge.Options{})
	defer stop(t, e)
	web := httptest.NewUnstartedServer(e.Streamable(newServer(), nil))
	d := &deadlines{Listener: web.Listener}
	web.Listener = output.CoalesceWrites(web.Config, d)
	web.Start()
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, accept := range []string{"application/json", "text/event-stream", "application/json"} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", web.URL,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Accept", accept)
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.left) < 3 {
		t.Fatalf("got %d writes, want one for each answer at least", len(d.left))
	}
	for i, left := range d.left {
		if left <= 0 || left > 30*time.Second {
			t.Errorf("write %d: got %v until the deadline, want 30 s at most", i, left)
		}
	}
}

// deadlines records the time left for each write.
type deadlines struct {
	net.Listener
	mu   sync.Mutex
	left []time.Duration
}

type timed struct {
	net.Conn
	d     *deadlines
	until time.Time
}

func (d *deadlines) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return &timed{Conn: c, d: d}, err
}

func (c *timed) SetWriteDeadline(t time.Time) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *timed) Write(b []byte) (int, error) {
	c.d.mu.Lock()
	c.d.left = append(c.d.left, time.Until(c.until))
	c.d.mu.Unlock()
	return c.Conn.Write(b)
}

func (c counted) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	c.w.all = append(c.w.all, bytes.Clone(b))
	c.w.mu.Unlock()
	return c.Conn.Write(b)
}

// An event longer than the buffers of net/http leaves in one piece.
func TestEventsInOnePiece(t *testing.T) {
	srv := newServer()
	e := edge.New(edge.Options{})
	defer stop(t, e)
	web := httptest.NewUnstartedServer(e.Streamable(srv, nil))
	w := &writes{Listener: web.Listener}
	web.Listener = output.CoalesceWrites(web.Config, w)
	web.Start()
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	do := func(method, body, session string) *http.Response {
		r, _ := http.NewRequestWithContext(t.Context(), method, web.URL, reader(body))
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := do("POST", initialize("2025-11-25"), "")
	resp.Body.Close()
	session := resp.Header.Get("Mcp-Session-Id")
	stream := do("GET", "", session)
	defer stream.Body.Close()
	events := readEvents(t, stream.Body)
	events.next() // it is open
	long := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 20_000) + `"}}`
	if !e.Send(session, []byte(long)) {
		t.Fatal("Send: got false, want the notification sent")
	}
	if got := events.message(); got != long {
		t.Errorf("got %d bytes, want the notification of %d", len(got), len(long))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.all {
		if bytes.Contains(b, []byte("xxx")) && !bytes.Contains(b, []byte(long)) {
			t.Errorf("got a write of %d bytes, want the whole event in one", len(b))
		}
	}
}
