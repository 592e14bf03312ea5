package proxy

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// nameServers updates the names to the current servers. Disabled servers are left out.
func (p *Proxy) nameServers() {
	n := newNaming(p.opts.Config, p.servers.Enabled())
	p.names.Store(&n)
}

// ServersChanged applies the server changes of a new configuration and notifies the clients whose lists change.
func (p *Proxy) ServersChanged(c downstream.Changes) {
	p.nameServers()
	concerned := slices.Concat(c.Added, c.Removed, c.Changed)
	p.listsChanged(func(m *client) bool { return slices.ContainsFunc(concerned, m.concerns) })
}

// RightsChanged sends list_changed to the clients of these callers (IDs), whose rights have changed.
func (p *Proxy) RightsChanged(callers []string) {
	p.listsChanged(func(m *client) bool { return slices.Contains(callers, m.user().ID) })
}

func (p *Proxy) listsChanged(concerned func(*client) bool) {
	for _, c := range p.all() {
		if !concerned(c) {
			continue
		}
		for _, kind := range []string{"tools", "prompts", "resources"} {
			c.send(jsonrpc.Notification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
