package router

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// aliased finds the server and tool behind a listed alias. ok is false if name is not an alias or is a tool's own
// name.
func (d *directory) aliased(ctx context.Context, name string, visible downstream.Visible) (server, tool string,
	ok bool) {
	if server, tool, full := catalog.SplitFull(name); full && d.servers.Listed(server, "", tool) {
		return "", "", false
	}
	for _, server := range d.serversFor(visible) {
		if !catalog.MayBeAlias(name, server) {
			continue
		}
		// A server that cannot be listed is skipped; the caller reports it if nothing else has the name.
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
