package proxy

import (
	"crypto/sha256"
	"encoding/hex"
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
	n := naming{prefixed: true, limit: c.NameLimit, scheme: c.ResourceNames == ResourceScheme, servers: servers, schemes: map[string]string{}}
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
	full := downstream.FullName(server, name)
	if (n.limit == 0 || len(full) <= n.limit) && plain(full) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	suffix := "_" + hex.EncodeToString(sum[:3])
	kept := strings.Map(func(r rune) rune {
		if plainRune(r) {
			return r
		}
		return '_'
	}, full)
	if n.limit > 0 {
		kept = kept[:min(len(kept), n.limit-len(suffix))]
	}
	return kept + suffix
}

func plain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !plainRune(r) }) < 0
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// mayBeAlias reports whether a name could be an alias of something of the server.
func mayBeAlias(name, server string) bool {
	cut := len(name) - 7
	if cut < 0 || name[cut] != '_' {
		return false
	}
	for _, c := range name[cut+1:] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	prefix := downstream.FullName(server, "")
	return strings.HasPrefix(name[:cut], prefix) || strings.HasPrefix(prefix, name[:cut])
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
