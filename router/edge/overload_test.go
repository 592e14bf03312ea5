package edge_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// When the memory limit is reached, requests are refused before their body is read. They are served again when the
// memory is free, without a garbage collection by others.
func TestMemoryShort(t *testing.T) {
	runtime.GC()
	var before runtime.MemStats // what earlier tests left
	runtime.ReadMemStats(&before)
	limit := int64(2*(before.HeapAlloc+before.StackInuse) + 64<<20)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	w := newWire(t, edge.Options{})
	used := make([]byte, limit)
	runtime.GC() // what lives is known from here on
	status, got, body := w.post(call("1", "echo", "{}"), nil)
	if status != http.StatusTooManyRequests || got.Get("Retry-After") != "1" || !strings.Contains(body,
		`"reason":"overloaded","retryable":true`) {
		t.Errorf("got %d %v %s, want 429 with Retry-After and overloaded", status, got, body)
	}
	if got := w.edge.Refused(); got != 1 {
		t.Errorf("got %d requests counted as refused, want 1", got)
	}
	if len(w.srv.log()) != 0 {
		t.Errorf("the handler got %v, want nothing", w.srv.log())
	}
	runtime.KeepAlive(used)
	mcptest.Eventually(t, "requests are served again", func() bool {
		status, _, _ := w.post(call("1", "echo", "{}"), nil)
		return status == http.StatusOK
	})
}

// A client that sends its body too slowly, or stops sending it, loses its connection.
func TestSlowBody(t *testing.T) {
	for name, tc := range map[string]struct{ pause, least, most time.Duration }{
		"stops":   {pause: time.Hour, least: 9 * time.Second, most: 11 * time.Second},
		"trickle": {pause: 5 * time.Second, least: 55 * time.Second, most: 65 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := edge.New(edge.Options{})
				client, server := net.Pipe()
				s := &http.Server{Handler: e.Streamable(newServer(), nil)}
				l := &oneConn{conn: server, done: make(chan struct{})}
				served := make(chan struct{})
				go func() { _ = s.Serve(l); close(served) }()
				sender := make(chan struct{})
				go func() {
					defer close(sender)
					_, _ = io.WriteString(client, "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/"+
						"json\r\nContent-Length: 1000\r\n\r\n")
					for {
						if _, err := io.WriteString(client, " "); err != nil {
							return
						}
						time.Sleep(tc.pause)
					}
				}()
				began := time.Now()
				answer, _ := io.ReadAll(client) // until the server closes the connection
				if took := time.Since(began); took < tc.least || took > tc.most {
					t.Errorf("got the connection closed after %v, want %v to %v", took, tc.least, tc.most)
				}
				if !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
					t.Errorf("got %q, want 400", answer)
				}
				client.Close()
				<-sender
				_ = s.Close()
				<-served
				if err := e.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn net.Conn
	once sync.Once
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error { l.once.Do(func() { close(l.done) }); return nil }

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
