package faults

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	_ "github.com/Shopify/toxiproxy/v2/toxics" // registers them
	"github.com/rs/zerolog"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// networkFaults are those of the connection to a server over streamable HTTP.
func networkFaults() []fault {
	through := func(timeout time.Duration, happen func(n *network)) func(w *world) string {
		return func(w *world) string {
			return w.network(w.serve(subject, &mcptest.Server{}), timeout).meanwhile("slow", happen)
		}
	}
	return []fault{
		{name: "a server that refuses connections", outcome: "-32000 unavailable, then result", run: func(w *world) string {
			n := w.network(w.serve(subject, &mcptest.Server{}), ample)
			w.start(nil, n.server)
			w.ready()
			n.proxy.Stop()
			w.wait("the subject to be gone", func() bool { return w.call("echo", "{}").Outcome() != "result" })
			got := w.write("write", 0).Outcome()
			n.heal()
			return got + ", then " + w.write("write", 0).Outcome()
		}},
		{name: "a server that accepts connections and freezes", outcome: "-32000 unavailable", run: func(w *world) string {
			w.start(nil, w.frozen(downstream.TransportHTTP))
			return w.write("write", 0).Outcome()
		}},
		{name: "a half-open connection: nothing comes through any more", outcome: "-32000 timeout, then result",
			run: through(short, func(n *network) { n.poison("timeout", `"timeout":0`) })},
		{name: "a connection that is reset in the middle of a call", outcome: "-32000 outcome_unknown, then result",
			run: through(ample, func(n *network) { n.poison("reset_peer", `"timeout":0`) })},
		{name: "a connection that is closed in the middle of an answer", outcome: "-32000 outcome_unknown, then result",
			run: through(ample, func(n *network) { n.poison("limit_data", `"bytes":1000`) })},
		{name: "answers that come in pieces of a few bytes", outcome: "result", run: func(w *world) string {
			n := w.network(w.serve(subject, &mcptest.Server{}), ample)
			n.poison("slicer", `"average_size":7,"size_variation":3,"delay":10`)
			w.start(nil, n.server)
			return w.write("slow", 50).Outcome()
		}},
		{name: "a slow network", outcome: "result", run: func(w *world) string {
			n := w.network(w.serve(subject, &mcptest.Server{}), ample)
			n.poison("latency", `"latency":50,"jitter":20`)
			w.start(nil, n.server)
			return w.write("slow", 50).Outcome()
		}},
	}
}

// network is what stands between the router and the subject.
type network struct {
	w      *world
	proxy  *toxiproxy.Proxy
	server downstream.ServerConfig
}

// network puts a network that is fine for now in front of a server.
func (w *world) network(c downstream.ServerConfig, timeout time.Duration) *network {
	w.t.Helper()
	u, err := url.Parse(c.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	log := zerolog.Nop()
	n := &network{w: w, proxy: toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), subject, "127.0.0.1:0", u.Host)}
	if err := n.proxy.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(n.proxy.Stop)
	c.URL, c.Timeout = "http://"+n.proxy.Listen+u.Path, timeout
	n.server = c
	return n
}

// meanwhile calls a tool that takes a while, and has something happen to the network meanwhile.
func (n *network) meanwhile(tool string, happen func(n *network)) string {
	n.w.start(nil, n.server)
	n.w.ready()
	return n.w.meanwhile(tool, func() { happen(n) }, n.heal)
}

// poison has all that comes from the server suffer from a toxic of toxiproxy.
func (n *network) poison(kind, attributes string) {
	n.w.t.Helper()
	toxic := fmt.Sprintf(`{"type":%q,"stream":"downstream","attributes":{%s}}`, kind, attributes)
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		n.w.t.Fatal(err)
	}
}

// heal makes the network fine again; connections of before are gone.
func (n *network) heal() {
	n.w.t.Helper()
	n.proxy.Stop()
	n.proxy.Toxics.ResetToxics(n.w.t.Context())
	if err := n.proxy.Start(); err != nil {
		n.w.t.Fatal(err)
	}
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
