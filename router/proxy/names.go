package proxy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
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
	if scheme := schemeOf(server); n.scheme && n.schemes[strings.ToLower(scheme)] == server && hasScheme.MatchString(uri) {
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

// hasScheme matches URIs with a scheme (RFC 3986 §3.1).
var hasScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// rewriteURIs returns the raw result of a method with the surface's form of its URIs: resource links and embedded
// resources in content (tools/call) and messages (prompts/get), and contents (resources/read). All other bytes are
// unchanged.
func (n *naming) rewriteURIs(server, method string, result []byte, names jsonrpc.Names) []byte {
	if !n.prefixed || !names.Has(jsonrpc.NameURI) {
		return result
	}
	var edits []jsonrpc.Edit
	uri := func(object []byte) {
		if raw := jsonrpc.Get(object, "uri"); len(raw) > 0 && raw[0] == '"' {
			edits = append(edits, jsonrpc.Edit{
				Span: jsonrpc.At(result, raw), With: []byte(jsonrpc.StringID(n.uri(server, jsonrpc.Text(raw)))),
			})
		}
	}
	// each calls f for the elements of the named member of object, or for its value if that is no array.
	each := func(object []byte, name string, f func(value []byte)) {
		jsonrpc.Members(object, func(n []byte, v jsonrpc.Span) bool {
			if string(n) != name {
				return true
			}
			list := jsonrpc.Elements(v.Of(object))
			if list == nil {
				list = [][]byte{v.Of(object)}
			}
			for _, value := range list {
				f(value)
			}
			return true
		})
	}
	block := func(b []byte) {
		switch jsonrpc.Text(jsonrpc.Get(b, "type")) {
		case "resource_link":
			uri(b)
		case "resource":
			uri(jsonrpc.Get(b, "resource"))
		}
	}
	switch method {
	case "tools/call":
		each(result, "content", block)
	case "prompts/get":
		each(result, "messages", func(message []byte) { each(message, "content", block) })
	case "resources/read":
		each(result, "contents", uri)
	}
	return jsonrpc.Splice(result, edits...)
}

// nameMember returns the member that names an item of a list.
func nameMember(method string) string {
	switch method {
	case "resources/list":
		return "uri"
	case "resources/templates/list":
		return "uriTemplate"
	}
	return "name"
}

// rewriteItem returns a list item with the surface's form of its name or URI.
func (n *naming) rewriteItem(server, method string, item []byte) []byte {
	write := n.uri
	if nameMember(method) == "name" {
		write = n.name
	}
	raw := jsonrpc.Get(item, nameMember(method))
	if !n.prefixed || len(raw) == 0 || raw[0] != '"' {
		return item
	}
	return jsonrpc.Splice(item, jsonrpc.Edit{Span: jsonrpc.At(item, raw),
		With: []byte(jsonrpc.StringID(write(server, jsonrpc.Text(raw))))})
}

// typedCapabilities returns raw capabilities without what has the wrong type, as clients that read types strictly would
// otherwise use no server because of one.
func typedCapabilities(capabilities []byte) []byte {
	return jsonrpc.Map(capabilities, func(kind, capability []byte) []byte {
		if capability[0] != '{' {
			return nil
		}
		return jsonrpc.Map(capability, func(member, value []byte) []byte {
			flag := slices.ContainsFunc(protocol.Announcements, func(a protocol.Announcement) bool {
				return a.Kind == string(kind) && a.Capability == string(member)
			})
			object := string(kind) == "experimental" || string(kind) == "extensions"
			if flag && string(value) != "true" && string(value) != "false" || object && value[0] != '{' {
				return nil
			}
			return value
		})
	})
}

// beginnings are the first bytes of members of tools, prompts, resources and templates.
var beginnings = map[string]byte{
	"name": '"', "title": '"', "description": '"', "uri": '"', "uriTemplate": '"', "mimeType": '"',
	"inputSchema": '{', "outputSchema": '{', "annotations": '{', "execution": '{', "_meta": '{',
	"icons": '[', "arguments": '[',
}

// typedItem returns a raw item of a list without the members that have the wrong type, see typedCapabilities; nil if it
// has no name or URI.
func typedItem(method string, item []byte) []byte {
	item = jsonrpc.Map(item, func(member, value []byte) []byte {
		if first := beginnings[string(member)]; first != 0 && value[0] != first {
			return nil
		}
		return value
	})
	if jsonrpc.Text(jsonrpc.Get(item, nameMember(method))) == "" {
		return nil
	}
	return item
}

// capabilityLevels is how deep the specification nests capabilities: tasks.requests.tools.call.
const capabilityLevels = 4

// union returns the union of raw objects, the newest members first: a flag is true if one is, and objects are merged
// member by member down to these levels. Of other values the first counts. Values that are no objects are left out.
func union(levels int, objects [][]byte) []byte {
	var names []string
	values := map[string][][]byte{}
	for _, object := range objects {
		jsonrpc.Members(object, func(name []byte, v jsonrpc.Span) bool {
			if values[string(name)] == nil {
				names = append(names, string(name))
			}
			values[string(name)] = append(values[string(name)], v.Of(object))
			return true
		})
	}
	out := []byte{'{'}
	for _, name := range slices.Backward(names) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		all := values[name]
		value := all[0]
		switch {
		case string(value) == "false" && slices.ContainsFunc(all, func(v []byte) bool { return string(v) == "true" }):
			value = []byte("true")
		case value[0] == '{' && len(all) > 1 && levels > 1:
			value = union(levels-1, all)
		}
		out = append(append(append(out, jsonrpc.StringID(name)...), ':'), value...)
	}
	return append(out, '}')
}
