package proxy

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const searchTool = "search_available_tools"

// part is one server's part of a list.
type part struct {
	server string
	items  []json.RawMessage
}

// lister serves the lists of a surface.
type lister struct{ s *Surface }

// gather returns the list of every server that the caller may see. Valid held lists are used; the other servers are
// asked in parallel. Failed servers are left out. It fails if all fail.
func (l lister) gather(ctx context.Context, x *edge.Exchange, method string) ([]part, error) {
	servers := l.s.reach(x)
	parts := make([]part, len(servers))
	var places []int // indexes of the servers that are asked
	var asked []string
	for i, server := range servers {
		parts[i].server = server
		var ok bool
		if parts[i].items, ok = l.s.p.servers.Sessions().Held(server, x.Session, method); !ok {
			places, asked = append(places, i), append(asked, server)
		}
	}
	if len(asked) == 0 {
		return parts, nil
	}
	err := l.s.p.each(ctx, x, asked, func(ctx context.Context, i int) (err error) {
		parts[places[i]].items, err = l.s.p.servers.Sessions().List(ctx, asked[i], x.Session, method)
		return err
	})
	if len(asked) < len(servers) && ctx.Err() == nil {
		err = nil // the held lists suffice
	}
	return parts, err
}

// serve answers a list request with all pages of all servers as one page.
func (l lister) serve(ctx context.Context, x *edge.Exchange) {
	method := x.Message.Method
	if l.s.only != "" && (method != "tools/list" || x.Visible == nil && !l.s.p.servers.Sessions().Filters(l.s.only)) {
		l.s.forward(ctx, x, l.s.only, "", x.Message.Params) // the server's pages pass through
		return
	}
	if err := edge.OnePage(x.Message.Params); err != nil {
		x.Fail(err)
		return
	}
	parts, err := l.gather(ctx, x, method)
	if err != nil {
		l.s.p.opts.Fail(x, err)
		return
	}
	if method == "tools/list" && l.s.searches() {
		if allowed := permitted(parts, x.Visible); count(allowed) > l.s.p.opts.Config.SearchAbove {
			l.narrowed(x, allowed)
			return
		}
	}
	x.Reply(l.s.p.merged.get(l.key(x, method), parts))
}

func count(parts []part) (n int) {
	for _, p := range parts {
		n += len(p.items)
	}
	return n
}

// permitted returns the tools that a caller may see.
func permitted(parts []part, visible downstream.Visible) []part {
	if visible == nil {
		return parts
	}
	out := make([]part, len(parts))
	for i, p := range parts {
		out[i].server = p.server
		for _, item := range p.items {
			if visible(p.server, jsonrpc.Text(jsonrpc.Get(item, "name"))) {
				out[i].items = append(out[i].items, item)
			}
		}
	}
	return out
}

// cacheable adds the members that the modern era requires in cacheable results.
func cacheable(result []byte) []byte {
	for _, member := range [...][2]string{{"cacheScope", `"private"`}, {"ttlMs", "0"}, {"resultType", `"complete"`}} {
		if jsonrpc.Get(result, member[0]) == nil {
			result = jsonrpc.Set(result, member[0], []byte(member[1]))
		}
	}
	return result
}

// searches reports whether search_available_tools is on the surface.
func (s *Surface) searches() bool {
	return s.only == "" && s.p.opts.Search != nil && s.p.opts.Config.SearchAbove > 0
}

// narrowed answers with search_available_tools and the tools that the caller's last search found.
func (l lister) narrowed(x *edge.Exchange, parts []part) {
	var exposed []string
	if !x.Version.AtLeast(protocol.V20260728) {
		exposed = l.s.p.opts.Search.Exposed(x)
	}
	key := l.key(x, "tools/list")
	key.partly = false // parts are filtered already
	x.Reply(key.merge(permitted(parts, func(server, tool string) bool {
		return slices.Contains(exposed, catalog.FullName(server, tool))
	}), nil).raw)
}

// key returns the inputs that determine the bytes of a caller's list.
func (l lister) key(x *edge.Exchange, method string) mergedKey {
	key := mergedKey{surface: l.s, names: l.s.names(), method: method, modern: x.Version.AtLeast(protocol.V20260728)}
	if x.Visible != nil {
		key.partly, key.caller = true, x.Caller
	}
	return key
}
