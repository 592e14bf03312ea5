package config

import (
	"reflect"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
)

// clientServers finds the servers in the JSON file of a desktop client: in "mcpServers", "servers" or "mcp.servers". It
// returns nil if the file has none.
func clientServers(root *node) (at string, servers *node) {
	for _, key := range []string{"mcpServers", "servers"} {
		if n := root.get(key); n != nil && (n.kind == mapping || n.kind == null) {
			return key, n
		}
	}
	if n := root.get("mcp").get("servers"); n != nil && n.kind == mapping {
		return "mcp.servers", n
	}
	return "", nil
}

// adapt returns a desktop client's entry with our keys: it renames keys that clients spell differently, and leaves
// out, with a warning, keys that only the client uses.
func (d *decoder) adapt(path string, entry *node) *node {
	own := *entry
	own.members = nil
	for _, m := range entry.members {
		switch m.key {
		case "serverUrl", "httpUrl":
			m.key = "url"
		case "transport", "transportType":
			m.key = "type"
		case "timeout":
			if m.value.kind == number && m.value.text != "0" {
				d.warn(m.at, "%s.timeout: a number without a unit is left out: clients use different units", path)
				continue
			}
		case "disabledTools", "excludeTools", "includeTools":
			d.warn(m.at, "%s.%s is left out; write tools: {allow: [], deny: []}", path, m.key)
			continue
		case "auth":
			if !hasOnly(m.value, keys(reflect.TypeFor[oauth.Config]())) {
				d.warn(m.at, "%s.auth is for desktop clients and left out", path)
				continue
			}
		case "alwaysAllow", "authProviderType", "autoApprove", "description", "dev", "envFile", "gallery", "icon",
			"name", "note", "oauth", "trust", "version", "watchPaths":
			d.warn(m.at, "%s.%s is for desktop clients and left out", path, m.key)
			continue
		}
		own.members = append(own.members, m)
	}
	return &own
}

// hasOnly reports whether n is a mapping without keys other than these.
func hasOnly(n *node, keys []string) bool {
	other := func(m member) bool { return !slices.Contains(keys, m.key) }
	return n.kind == mapping && !slices.ContainsFunc(n.members, other)
}
