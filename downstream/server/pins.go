package server

import (
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/pins"
)

// Pins compares the tools of a server with their approved definitions.
type Pins struct {
	server *Server
	store  *pins.Store // nil = off
}

// check compares definitions of tools that the server lists; whole means that it lists no others. It returns the
// SHA-256 of those that are not approved, by tool.
func (p Pins) check(items []json.RawMessage, whole bool) map[string]string {
	if p.store == nil {
		return nil
	}
	tools := make([]pins.Tool, len(items))
	for i, item := range items {
		tools[i] = pins.Tool{Name: jsonrpc.Text(jsonrpc.Get(item, "name")), Raw: item}
	}
	changed, fresh := p.store.Check(p.server.Config.Name, tools, whole)
	if fresh && p.Enforce() {
		p.server.opts.OnQuarantine(p.server.Config.Name)
	}
	return changed
}

// Refusal returns why a tool may not be called on a connection; empty if it may.
func (p Pins) Refusal(tool string, on *Connection) string {
	listed := ""
	if l := on.Lists.Last("tools/list"); l != nil {
		if l.UntilLogin() && tool == LoginTool { // it is the router's own
			return ""
		}
		listed = l.changed[tool]
	}
	return p.store.Refusal(p.server.Config.Name, tool, listed)
}

// Enforce reports whether changed tools are quarantined.
func (p Pins) Enforce() bool { return p.store.Enforces() }

// Passed compares the tools in a list that is passed on to a client as it is. Of the first list of a server, a page
// does not suffice, so it is read again as a whole.
func (p Pins) Passed(params, result []byte) {
	list := jsonrpc.Get(result, Member("tools/list"))
	if list == nil || p.store == nil {
		return
	}
	var items []json.RawMessage
	for _, item := range jsonrpc.Elements(list) {
		items = append(items, item)
	}
	whole := jsonrpc.Text(jsonrpc.Get(params, "cursor")) == "" && jsonrpc.Text(jsonrpc.Get(result, "nextCursor")) == ""
	p.check(items, whole)
	if !p.store.Known(p.server.Config.Name) {
		_, _ = p.server.Own.Lists.request("tools/list", ForRouter) // reports its failures itself
	}
}

// Relist makes the next requests of lists of tools read them again, as after the server has announced a change.
func (s *Server) Relist() {
	const changed = "notifications/tools/list_changed"
	s.lists.mu.Lock()
	last := s.lists.byMethod["tools/list"]
	last.digest = [len(last.digest)]byte{} // equal lists are compared with the pins again
	s.lists.byMethod["tools/list"] = last
	s.lists.mu.Unlock()
	s.mu.Lock()
	connections := []*Connection{s.Own}
	for _, c := range s.clients {
		connections = append(connections, c)
	}
	s.mu.Unlock()
	for _, c := range connections {
		c.Lists.changed(changed)
	}
}
