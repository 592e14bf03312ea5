package limit_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// site is an HTTP server whose connections are limited.
type site struct {
	t       *testing.T
	limits  *limit.Connections
	log     bytes.Buffer // to be read after the end
	address string
	held    chan struct{} // one per request of /hold
}

// serve serves with 32 files: 24 connections, 18 of them of one address.
func serve(t *testing.T, exempt ...netip.Prefix) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, address: listener.Addr().String(), held: make(chan struct{}, 100)}
	s.limits = limit.NewConnections(listener, 32, exempt, slog.New(slog.NewTextHandler(&s.log, nil)))
	server := &http.Server{ConnState: s.limits.Watch, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			s.held <- struct{}{}
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "ok")
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(s.limits) // it ends with Close
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return s
}

// dial connects from an address.
func (s *site) dial(from string) net.Conn {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request and reports whether it is answered.
func ask(c net.Conn, path string) bool {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && string(text) == "ok"
}

func hold(s *site, from string, n int) {
	for range n {
		c := s.dial(from)
		if _, err := io.WriteString(c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			s.t.Fatal(err)
		}
		<-s.held
	}
}

const one, other, third = "127.0.0.1", "127.0.0.2", "127.0.0.3" // all of 127.0.0.0/8 is loopback

func addresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs several loopback addresses")
	}
}

// Idle connections make room for new ones, of the same address first, and never those with a request.
func TestConnections_Idle(t *testing.T) {
	addresses(t)
	s := serve(t)
	kept := s.dial(one)
	if !ask(kept, "/") {
		t.Fatal("the first request is not answered")
	}
	hold(s, one, 5)
	quiet := s.dial(other)
	for range 100 {
		s.dial(one)
	}
	if !ask(s.dial(one), "/") || !ask(s.dial(other), "/") || !ask(quiet, "/") {
		t.Error("a request beside idle connections is not answered")
	}
	if ask(kept, "/") {
		t.Error("the connection that is idle for longest is open")
	}
	for range 100 {
		s.dial(other)
	}
	if !ask(s.dial(third), "/") {
		t.Error("a request from a third address is not answered")
	}
	if n := s.limits.Closed(); n < 150 || len(s.held) != 0 {
		t.Errorf("got %d closed", n)
	}
}

// If all connections of an address are busy, its next one is closed at once; other addresses go on.
func TestConnections_Busy(t *testing.T) {
	addresses(t)
	s := serve(t)
	hold(s, one, 18)
	for range 3 {
		if ask(s.dial(one), "/") {
			t.Error("one connection too many is served")
		}
	}
	if !ask(s.dial(other), "/") {
		t.Error("another address is not served")
	}
	if n := s.limits.Closed(); n != 3 {
		t.Errorf("got %d closed, want 3", n)
	}
	if got := s.log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "address=127.0.0.1") {
		t.Errorf("got the log %s, want one warning", got)
	}
}

// A proxy may hold the connections of all addresses.
func TestConnections_Exempt(t *testing.T) {
	addresses(t)
	s := serve(t, netip.MustParsePrefix("127.0.0.1/32"))
	hold(s, one, 24)
	if ask(s.dial(one), "/") || ask(s.dial(other), "/") {
		t.Error("more than all are served")
	}
}
