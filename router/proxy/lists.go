package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/auth"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const (
	searchTool = "search_available_tools"
	maxMerged  = 64 // merged lists kept
)

// part is what one server lists.
type part struct {
	server string
	items  []json.RawMessage
}

// gather asks every server that the caller may see for its list. Servers that fail are left out; it fails
// if all do.
func (s *Surface) gather(ctx context.Context, x *edge.Exchange, method string) ([]part, error) {
	servers := s.reach(x)
	parts := make([]part, len(servers))
	err := s.each(ctx, x, servers, func(ctx context.Context, i int) (err error) {
		parts[i].server = servers[i]
		parts[i].items, err = s.p.servers.List(ctx, servers[i], x.Session, method)
		return err
	})
	return parts, err
}

// list answers a list request with all pages of all servers.
func (s *Surface) list(ctx context.Context, x *edge.Exchange) {
	method := x.Message.Method
	if s.only != "" && (method != "tools/list" || x.Caller.Filter() == nil && !s.p.servers.Filters(s.only)) {
		s.forward(ctx, x, s.only, "", x.Message.Params) // with the server's own pages
		return
	}
	if cursor := jsonrpc.Get(x.Message.Params, "cursor"); cursor != nil && string(cursor) != "null" {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: cursor is not one of ours; the list has one page"})
		return
	}
	parts, err := s.gather(ctx, x, method)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	see := x.Caller.Filter()
	if method == "tools/list" && s.searches() {
		if allowed := permitted(parts, see); count(allowed) > s.p.opts.Config.SearchAbove {
			s.narrowed(x, allowed)
			return
		}
	}
	key := mergedKey{surface: s, method: method, modern: x.Modern}
	if see != nil {
		key.caller = x.Caller
	}
	x.Reply(s.p.merged.get(key, parts, func() []byte {
		if method == "tools/list" {
			return s.merge(x, method, permitted(parts, see))
		}
		return s.merge(x, method, parts)
	}))
}

func count(parts []part) (n int) {
	for _, p := range parts {
		n += len(p.items)
	}
	return n
}

// permitted returns the tools that a caller may see.
func permitted(parts []part, see downstream.Visible) []part {
	if see == nil {
		return parts
	}
	out := make([]part, len(parts))
	for i, p := range parts {
		out[i].server = p.server
		for _, item := range p.items {
			if see(p.server, jsonrpc.Text(jsonrpc.Get(item, "name"))) {
				out[i].items = append(out[i].items, item)
			}
		}
	}
	return out
}

// merge makes the raw result of a list.
func (s *Surface) merge(x *edge.Exchange, method string, parts []part) []byte {
	size := 64
	for _, p := range parts {
		for _, item := range p.items {
			size += len(item) + len(p.server) + 8
		}
	}
	out := append(make([]byte, 0, size), '{')
	out = append(append(append(out, '"'), downstream.Member(method)...), `":[`...)
	first := true
	add := func(item []byte) {
		if !first {
			out = append(out, ',')
		}
		out, first = append(out, item...), false
	}
	if s.searches() && method == "tools/list" {
		add(s.p.opts.Search.SearchTool())
	}
	for _, p := range parts {
		for _, item := range p.items {
			add(s.names().rewriteItem(p.server, method, item))
		}
	}
	out = append(out, `]}`...)
	if x.Modern {
		out = cacheable(out)
	}
	return out
}

// cacheable returns a result with what those that clients may keep have to say in the modern era.
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

// narrowed answers with search_available_tools and what the caller's last search found.
func (s *Surface) narrowed(x *edge.Exchange, parts []part) {
	var exposed []string
	if !x.Modern {
		exposed = s.p.opts.Search.Exposed(x)
	}
	x.Reply(s.merge(x, "tools/list", permitted(parts, func(server, tool string) bool {
		return slices.Contains(exposed, downstream.FullName(server, tool))
	})))
}

// mergedLists keeps the bytes of merged lists as long as their parts are the same. The zero value is
// ready.
type mergedLists struct {
	mu   sync.Mutex
	kept []mergedList // the newest last
}

type mergedList struct {
	mergedKey
	parts []part
	raw   []byte
}

type mergedKey struct {
	surface *Surface
	method  string
	modern  bool
	caller  auth.Caller // who sees less than all, with the rights of then
}

func (m *mergedLists) get(key mergedKey, parts []part, merge func() []byte) []byte {
	m.mu.Lock()
	for i := len(m.kept) - 1; i >= 0; i-- {
		if k := &m.kept[i]; k.mergedKey == key && slices.EqualFunc(k.parts, parts, same) {
			defer m.mu.Unlock()
			return k.raw
		}
	}
	m.mu.Unlock()
	raw := merge()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(k mergedList) bool { return k.mergedKey == key })
	if len(m.kept) == maxMerged {
		m.kept = slices.Delete(m.kept, 0, 1)
	}
	m.kept = append(m.kept, mergedList{key, parts, raw})
	return raw
}

// same reports whether two parts are the very same list.
func same(a, b part) bool {
	return a.server == b.server && len(a.items) == len(b.items) && (len(a.items) == 0 || &a.items[0] == &b.items[0])
}
