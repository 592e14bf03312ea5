package proxy

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// nameServers takes over which servers there are; disabled ones are not asked for anything.
func (p *Proxy) nameServers() {
	n := newNaming(p.opts.Config, p.servers.Enabled())
	p.names.Store(&n)
}

// ServersChanged takes over what a new configuration has made of the servers and tells the clients whose
// lists it concerns.
func (p *Proxy) ServersChanged(c downstream.Changes) {
	p.nameServers()
	concerned := slices.Concat(c.Added, c.Removed, c.Changed)
	p.listsChanged(func(m *client) bool { return slices.ContainsFunc(concerned, m.concerns) })
}

// RightsChanged tells the clients with one of the keys, by the IDs of their callers, to list anew what they may use.
func (p *Proxy) RightsChanged(callers []string) {
	p.listsChanged(func(m *client) bool { return slices.Contains(callers, m.user().ID) })
}

func (p *Proxy) listsChanged(concerned func(*client) bool) {
	clients := p.attached()
	for _, c := range p.all() {
		if !concerned(c) {
			continue
		}
		for _, kind := range []string{"tools", "prompts", "resources"} {
			clients.Send(c.session, jsonrpc.Notification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
