package proxy

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
)

// naming converts the names of tools, prompts and resources between servers and a surface. The zero value leaves
// names unchanged, as a surface of one server does.
type naming struct {
	prefixed bool
	limit    int  // longest listed name; 0 = any
	scheme   bool // URIs as server+uri instead of server__uri
	servers  []string
	schemes  map[string]string // lower-case scheme to server; empty if ambiguous
}

// ownNames leaves all names unchanged.
var ownNames naming

// newNaming returns the naming for several servers.
func newNaming(c Config, servers []string) naming {
	n := naming{prefixed: true, limit: c.NameLimit, scheme: c.ResourceNames == ResourceScheme, servers: servers,
		schemes: map[string]string{}}
	for _, server := range servers {
		scheme := strings.ToLower(schemeOf(server)) // schemes are case-insensitive, and some clients lower-case them
		if _, taken := n.schemes[scheme]; taken {
			server = ""
		}
		n.schemes[scheme] = server
	}
	return n
}

// name returns the listed name of a tool or prompt: server__name, or an alias if clients would reject that.
func (n *naming) name(server, name string) string {
	if !n.prefixed {
		return name
	}
	return catalog.Alias(server, name, n.limit)
}

// uri returns the listed URI of a resource or resource template.
func (n *naming) uri(server, uri string) string {
	if !n.prefixed {
		return uri
	}
	if scheme := schemeOf(server); n.scheme && n.schemes[strings.ToLower(scheme)] == server && hasScheme(uri) {
		return scheme + "+" + uri
	}
	return catalog.FullName(server, uri)
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

// schemeOf turns a server's name into the prefix of a URI scheme (RFC 3986 §3.1), which has no underscore and begins
// with a letter.
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
