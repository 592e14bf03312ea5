package proxy

import (
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// rewriteURIs returns the raw result of a method with the surface's form of its URIs: resource links and embedded
// resources in content (tools/call) and messages (prompts/get), and contents (resources/read). All other bytes are
// unchanged.
func (n *naming) rewriteURIs(server, method string, result []byte, names jsonrpc.Names) []byte {
	if !n.prefixed || !names.Has(jsonrpc.NameURI) {
		return result
	}
	r := rewriting{n: n, server: server, result: result}
	member := func(object []byte, name string, f func(value []byte)) {
		jsonrpc.Members(object, func(n []byte, v jsonrpc.Span) bool {
			if string(n) == name {
				f(v.Of(object))
			}
			return true
		})
	}
	switch method {
	case "tools/call":
		member(result, "content", r.blocks)
	case "prompts/get":
		member(result, "messages", func(messages []byte) {
			for _, m := range jsonrpc.Elements(messages) {
				member(m, "content", r.blocks)
			}
		})
	case "resources/read":
		member(result, "contents", func(contents []byte) {
			for _, c := range jsonrpc.Elements(contents) {
				r.uri(c)
			}
		})
	}
	return jsonrpc.Splice(result, r.edits...)
}

// rewriting collects the edits of a result, in order.
type rewriting struct {
	n      *naming
	server string
	result []byte
	edits  []jsonrpc.Edit
}

// uri renames the URI of an object.
func (r *rewriting) uri(object []byte) {
	if raw := jsonrpc.Get(object, "uri"); len(raw) > 0 && raw[0] == '"' {
		r.edits = append(r.edits, jsonrpc.Edit{
			Span: jsonrpc.At(r.result, raw),
			With: []byte(jsonrpc.StringID(r.n.uri(r.server, jsonrpc.Text(raw)))),
		})
	}
}

// blocks renames the URIs of one or more content blocks.
func (r *rewriting) blocks(raw []byte) {
	if list := jsonrpc.Elements(raw); list != nil {
		for _, b := range list {
			r.block(b)
		}
		return
	}
	r.block(raw)
}

func (r *rewriting) block(b []byte) {
	switch jsonrpc.Text(jsonrpc.Get(b, "type")) {
	case "resource_link":
		r.uri(b)
	case "resource":
		r.uri(jsonrpc.Get(b, "resource"))
	}
}

// rewriteItem returns a list item with the surface's form of its name or URI.
func (n *naming) rewriteItem(server, method string, item []byte) []byte {
	key, write := "name", n.name
	switch method {
	case "resources/list":
		key, write = "uri", n.uri
	case "resources/templates/list":
		key, write = "uriTemplate", n.uri
	}
	raw := jsonrpc.Get(item, key)
	if !n.prefixed || len(raw) == 0 || raw[0] != '"' {
		return item
	}
	return jsonrpc.Splice(item, jsonrpc.Edit{Span: jsonrpc.At(item, raw),
		With: []byte(jsonrpc.StringID(write(server, jsonrpc.Text(raw))))})
}

// mergeCapabilities returns the union of two raw capability objects. A flag is true if either is; objects are merged
// member by member.
func mergeCapabilities(a, b []byte) []byte {
	if len(a) == 0 || a[0] != '{' {
		return b
	}
	jsonrpc.Members(b, func(name []byte, v jsonrpc.Span) bool {
		theirs := v.Of(b)
		switch ours := jsonrpc.Get(a, string(name)); {
		case ours == nil, string(ours) == "false" && string(theirs) == "true":
			a = jsonrpc.Set(a, string(name), theirs)
		case ours[0] == '{' && theirs[0] == '{':
			a = jsonrpc.Set(a, string(name), mergeCapabilities(ours, theirs))
		}
		return true
	})
	return a
}
