package router

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// aliased finds the tool that is listed under an alias, at the servers that it could be of. ok is false where there is
// none, or where the name is a tool's own.
func (d *directory) aliased(ctx context.Context, name string, visible downstream.Visible) (server, tool string,
	ok bool) {
	if server, tool, full := downstream.SplitFull(name); full && d.servers.Listed(server, "", tool) {
		return "", "", false
	}
	for _, server := range d.serversFor(visible) {
		if !downstream.MayBeAlias(name, server) {
			continue
		}
		// A server that cannot be listed has no alias; the caller says so if the name means nothing else.
		item, found, _ := d.servers.Find(ctx, server, "", "tools/list", time.Time{}, func(item json.RawMessage) bool {
			return d.servers.ListedName(server, jsonrpc.Text(jsonrpc.Get(item, "name"))) == name
		})
		own := jsonrpc.Text(jsonrpc.Get(item, "name"))
		if found && (visible == nil || visible(server, own)) {
			return server, own, true
		}
	}
	return "", "", false
}
