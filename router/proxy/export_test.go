package proxy

import (
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Naming is how a surface calls the things of its servers.
type Naming struct{ n naming }

// NewNaming names the things of several servers.
func NewNaming(c Config, servers []string) *Naming { return &Naming{newNaming(c, servers)} }

// Name returns how a tool is listed, and whether it could be told from that to be one of the server.
func (n *Naming) Name(server, tool string) (listed string, found bool) {
	listed = n.n.name(server, tool)
	return listed, catalog.MayBeAlias(listed, server)
}

// URI returns how a resource is called.
func (n *Naming) URI(server, uri string) string { return n.n.uri(server, uri) }

// Split finds the server and its own URI.
func (n *Naming) Split(uri string) (server, own string, ok bool) { return n.n.splitURI(uri) }

// Rewrite renames the URIs in a raw result.
func (n *Naming) Rewrite(server, method string, result []byte) []byte {
	m, _ := jsonrpc.Parse(jsonrpc.Result("1", result))
	return n.n.rewriteURIs(server, method, result, m.Names)
}
