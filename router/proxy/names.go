package proxy

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
)

// naming says how the things of servers are called on a surface. The zero value leaves names as they are,
// as a surface of one server does.
type naming struct {
	prefixed bool
	limit    int  // longest listed name; 0 = any
	scheme   bool // URIs as server+uri instead of server__uri
	servers  []string
	schemes  map[string]string // the server that a scheme in lower case stands for; empty where it could be several
}

// ownNames leaves everything as its server calls it.
var ownNames naming

// newNaming names the things of several servers.
func newNaming(c Config, servers []string) naming {
	n := naming{prefixed: true, limit: c.NameLimit, scheme: c.ResourceNames == ResourceScheme, servers: servers,
		schemes: map[string]string{}}
	for _, server := range servers {
		scheme := strings.ToLower(schemeOf(server)) // schemes have no case, and some clients lower it
		if _, taken := n.schemes[scheme]; taken {
			server = ""
		}
		n.schemes[scheme] = server
	}
	return n
}

// name returns how a tool or a prompt is listed: server__name, or an alias where clients would choke on it.
func (n *naming) name(server, name string) string {
	if !n.prefixed {
		return name
	}
	return downstream.Alias(server, name, n.limit)
}

// uri returns how a resource, or a template of resources, is called.
func (n *naming) uri(server, uri string) string {
	if !n.prefixed {
		return uri
	}
	if scheme := schemeOf(server); n.scheme && n.schemes[strings.ToLower(scheme)] == server && hasScheme(uri) {
		return scheme + "+" + uri
	}
	return downstream.FullName(server, uri)
}

// splitURI finds the server and its own URI behind either form.
func (n *naming) splitURI(uri string) (server, own string, ok bool) {
	if name, rest, found := strings.Cut(uri, "__"); found {
		for _, s := range n.servers {
			if s == name {
				return s, rest, true
			}
		}
	}
	if head, rest, found := strings.Cut(uri, "+"); found {
		server = n.schemes[strings.ToLower(head)]
		return server, rest, server != ""
	}
	return "", "", false
}

// schemeOf writes a server's name as the beginning of a URI scheme (RFC 3986 §3.1): no underscore, and a
// letter first.
func schemeOf(server string) string {
	s := strings.ReplaceAll(server, "_", ".")
	if s[0] >= '0' && s[0] <= '9' {
		s = "x" + s
	}
	return s
}

func hasScheme(uri string) bool {
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok || scheme == "" {
		return false
	}
	for i, c := range scheme {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return true
}
