// Package network puts a network that can be disturbed in front of a server.
package network

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	_ "github.com/Shopify/toxiproxy/v2/toxics" // registers them
	"github.com/rs/zerolog"
)

// Leftover is a function of goroutines that toxiproxy leaves behind when a connection ends in the middle of
// a transfer.
const Leftover = "github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"

// Toxic is a disturbance of all that comes from the server: a kind of toxiproxy and its attributes, as the
// members of a JSON object.
type Toxic struct{ Kind, Attributes string }

// Network forwards TCP connections. Its methods are for one goroutine at a time.
type Network struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// New starts a network without disturbance in front of the server at the address upstream. It ends with
// the test.
func New(t testing.TB, upstream string) *Network {
	t.Helper()
	n := &Network{t: t}
	n.start("127.0.0.1:0", upstream)
	t.Cleanup(n.Stop)
	return n
}

// Address returns the host and port to connect to. They do not change.
func (n *Network) Address() string { return n.proxy.Listen }

// Stop closes all connections and refuses new ones.
func (n *Network) Stop() { n.proxy.Stop() }

// Disturb adds a toxic to the connections there are, and to those that follow.
func (n *Network) Disturb(toxic Toxic) {
	n.t.Helper()
	if err := n.add(toxic); err != nil {
		n.t.Error(err)
	}
}

// Restart closes all connections. The toxics given, and no others, act on those that follow.
//
// It makes a new proxy: toxiproxy can wait for ever for a toxic that is removed while its connection ends.
func (n *Network) Restart(toxics ...Toxic) {
	n.t.Helper()
	n.proxy.Stop()
	n.start(n.proxy.Listen, n.proxy.Upstream, toxics...)
}

func (n *Network) start(listen, upstream string, toxics ...Toxic) {
	n.t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n.proxy = toxiproxy.NewProxy(server, "network", listen, upstream)
	for _, toxic := range toxics {
		if err := n.add(toxic); err != nil {
			n.t.Error(err)
		}
	}
	if err := n.proxy.Start(); err != nil {
		n.t.Error(err)
	}
}

func (n *Network) add(toxic Toxic) error {
	_, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(
		fmt.Sprintf(`{"type":%q,"stream":"downstream","attributes":{%s}}`, toxic.Kind, toxic.Attributes)))
	return err
}
