package faults

import (
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/network"
)

// networkFaults are those of the connection to a server over streamable HTTP.
func networkFaults() []fault {
	through := func(timeout time.Duration, happen func(n *remote)) func(w *world) string {
		return func(w *world) string {
			return w.behind(w.serve(subject, &mcptest.Server{}), timeout).meanwhile("slow", happen)
		}
	}
	return []fault{
		{name: "a server that refuses connections", outcome: "-32000 unavailable, then result", run: func(w *world) string {
			n := w.behind(w.serve(subject, &mcptest.Server{}), ample)
			w.start(nil, n.server)
			w.ready()
			n.Stop()
			w.wait("the subject to be gone", func() bool { return w.call("echo", "{}").Outcome() != "result" })
			got := w.write("write", 0).Outcome()
			n.Restart()
			return got + ", then " + w.write("write", 0).Outcome()
		}},
		{name: "a server that accepts connections and freezes", outcome: "-32000 unavailable", run: func(w *world) string {
			w.start(nil, w.frozen(downstream.TransportHTTP))
			return w.write("write", 0).Outcome()
		}},
		{name: "a half-open connection: nothing comes through any more", outcome: "-32000 timeout, then result",
			run: through(short, func(n *remote) { n.Disturb(network.Toxic{Kind: "timeout", Attributes: `"timeout":0`}) })},
		{name: "a connection that is reset in the middle of a call", outcome: "-32000 outcome_unknown, then result",
			run: through(ample, func(n *remote) { n.Disturb(network.Toxic{Kind: "reset_peer", Attributes: `"timeout":0`}) })},
		{name: "a connection that is closed in the middle of an answer", outcome: "-32000 outcome_unknown, then result",
			run: through(ample, func(n *remote) { n.Disturb(network.Toxic{Kind: "limit_data", Attributes: `"bytes":1000`}) })},
		{name: "answers that come in pieces of a few bytes", outcome: "result", run: func(w *world) string {
			n := w.behind(w.serve(subject, &mcptest.Server{}), ample)
			n.Disturb(network.Toxic{Kind: "slicer", Attributes: `"average_size":7,"size_variation":3,"delay":10`})
			w.start(nil, n.server)
			return w.write("slow", 50).Outcome()
		}},
		{name: "a slow network", outcome: "result", run: func(w *world) string {
			n := w.behind(w.serve(subject, &mcptest.Server{}), ample)
			n.Disturb(network.Toxic{Kind: "latency", Attributes: `"latency":50,"jitter":20`})
			w.start(nil, n.server)
			return w.write("slow", 50).Outcome()
		}},
	}
}

// remote is the subject behind a network.
type remote struct {
	*network.Network
	w      *world
	server downstream.ServerConfig
}

// behind puts a network that is fine for now in front of a server.
func (w *world) behind(c downstream.ServerConfig, timeout time.Duration) *remote {
	w.t.Helper()
	u, err := url.Parse(c.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	n := &remote{w: w, Network: network.New(w.t, u.Host)}
	c.URL, c.Timeout = "http://"+n.Address()+u.Path, timeout
	n.server = c
	return n
}

// meanwhile calls a tool that takes a while, and has something happen to the network meanwhile.
func (n *remote) meanwhile(tool string, happen func(n *remote)) string {
	n.w.start(nil, n.server)
	n.w.ready()
	return n.w.meanwhile(tool, func() { happen(n) }, func() { n.Restart() })
}

// frozen configures a server that accepts connections and does nothing else.
func (w *world) frozen(transport string) downstream.ServerConfig {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	})
	w.t.Cleanup(func() {
		listener.Close()
		wg.Wait()
		for _, c := range conns {
			c.Close()
		}
	})
	return downstream.ServerConfig{Name: subject, Type: transport, URL: "http://" + listener.Addr().String(), Timeout: short}
}
