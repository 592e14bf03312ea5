package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// A sweep that is slow to probe delays no request, closes what is dead, and leaves the others in their order.
func TestSweepDelaysNobody(t *testing.T) {
	p := newPool(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled") }, MaxIdleConnsPerHost: 1000})
	u := &url.URL{Scheme: "http", Host: "a:80"}
	add := func(probe func() bool) *conn {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		c := newConn(ours, &p, u.Host)
		c.probe = probe
		p.put(c)
		return c
	}
	defer p.close()
	probing, goOn := make(chan struct{}, 1000), make(chan struct{})
	slow := func() bool { probing <- struct{}{}; <-goOn; return true }
	dead := add(func() bool { return false })
	for range 2 * sweepBatch {
		add(slow)
	}
	newest := add(func() bool { return true })
	swept := make(chan struct{})
	go func() {
		p.tidy()
		close(swept)
	}()
	<-probing
	began := make(chan *conn)
	go func() {
		c, _ := p.get(t.Context(), u)
		began <- c
	}()
	select {
	case c := <-began:
		if c != newest {
			t.Error("got another connection than the last one used")
		}
		p.put(c)
	case <-time.After(10 * time.Second):
		t.Fatal("a request waits for the sweep")
	}
	close(goOn)
	<-swept
	if _, err := dead.Write(nil); err == nil {
		t.Error("the dead connection is open")
	}
	if idle := p.idle[u.Host]; len(idle) != 2*sweepBatch+1 || idle[len(idle)-1] != newest {
		t.Errorf("got %d idle connections, want all but the dead one, the newest last", len(idle))
	}
}

// Connections that a sweep has taken out do not outlive the closing of all.
func TestSweepBesideClose(t *testing.T) {
	p := newPool(&http.Transport{MaxIdleConnsPerHost: 10})
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(ours, &p, "a:80")
	c.probe = func() bool { p.close(); return true }
	p.put(c)
	p.tidy()
	if _, err := c.Write(nil); err == nil || len(p.idle["a:80"]) > 0 {
		t.Errorf("got error %v and %d idle connections, want it closed", err, len(p.idle["a:80"]))
	}
}
