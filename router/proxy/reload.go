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
	var sessions []string
	p.mu.Lock()
	for session, m := range p.members {
		if slices.ContainsFunc(concerned, func(server string) bool {
			return (m.surface.only == "" || m.surface.only == server) && maySee(m.caller, server)
		}) {
			sessions = append(sessions, session)
		}
	}
	clients := p.edge
	p.mu.Unlock()
	for _, session := range sessions {
		for _, kind := range []string{"tools", "prompts", "resources"} {
			clients.Send(session, jsonrpc.Notification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
