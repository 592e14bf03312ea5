package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
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

// Limits of the cache of merged lists.
const (
	maxMerged      = 64
	maxMergedBytes = 128 << 20
)

// mergedLists caches the bytes of merged lists while their parts are unchanged. Concurrent requests for one list
// build it once. Calls of tools never take its lock. The zero value is ready.
type mergedLists struct {
	mu    sync.Mutex
	kept  []*mergedList // most recently used last
	bytes int           // size of the complete lists
}

// mergedList is a merged list, complete once done is closed.
type mergedList struct {
	key   mergedKey
	parts []part
	done  chan struct{}

	// Set before done is closed; raw is nil if making it failed.
	raw  []byte
	ends []int // where each part ends in raw
}

// mergedKey identifies a merged list, apart from its parts.
type mergedKey struct {
	surface *Surface
	names   *naming
	method  string
	modern  bool
	partly  bool        // caller sees only a part of the list
	caller  auth.Caller // with its current rights if partly, else zero
}

// get returns the bytes of a merged list. Unchanged parts are copied from the previous version.
func (m *mergedLists) get(key mergedKey, parts []part) []byte {
	m.mu.Lock()
	at := slices.IndexFunc(m.kept, func(l *mergedList) bool { return l.key == key })
	var former *mergedList
	if at >= 0 {
		former = m.kept[at]
		m.kept = slices.Delete(m.kept, at, at+1)
		if slices.EqualFunc(former.parts, parts, same) {
			m.kept = append(m.kept, former)
			m.mu.Unlock()
			if <-former.done; former.raw != nil {
				return former.raw
			}
			return key.merge(parts, nil).raw
		}
		m.bytes -= former.complete()
	}
	l := &mergedList{key: key, parts: parts, done: make(chan struct{})}
	m.kept = append(m.kept, l)
	m.mu.Unlock()
	defer m.keep(l)
	if former != nil {
		select {
		case <-former.done:
		default:
			former = nil // do not wait for it
		}
	}
	made := key.merge(parts, former)
	l.raw, l.ends = made.raw, made.ends
	return l.raw
}

// keep marks l as complete and evicts the least recently used lists beyond the limits.
func (m *mergedLists) keep(l *mergedList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(l.done)
	switch at := slices.Index(m.kept, l); {
	case at >= 0 && l.raw == nil:
		m.kept = slices.Delete(m.kept, at, at+1)
	case at >= 0:
		m.bytes += len(l.raw)
	}
	for len(m.kept) > maxMerged || m.bytes > maxMergedBytes {
		m.bytes -= m.kept[0].complete()
		m.kept = slices.Delete(m.kept, 0, 1)
	}
}

// complete returns the size of a complete list; 0 while it is being built.
func (l *mergedList) complete() int {
	select {
	case <-l.done:
		return len(l.raw)
	default:
		return 0
	}
}

// merge builds the raw result of a list. former is the previous list with the same key, or nil.
func (k mergedKey) merge(parts []part, former *mergedList) *mergedList {
	out := []byte("{}")
	if k.modern {
		out = cacheable(out)
	}
	out = out[:len(out)-1]
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(append(append(out, '"'), downstream.Member(k.method)...), `":[`...)
	size := len(out) + 1024
	for _, p := range parts {
		for _, item := range p.items {
			size += len(item) + len(p.server) + 8
		}
	}
	out = slices.Grow(out, size)
	if k.surface.searches() && k.method == "tools/list" {
		out = append(append(out, k.surface.p.opts.Search.SearchTool()...), ',')
	}
	begin := len(out)
	visible := downstream.Visible(nil)
	if k.partly && k.method == "tools/list" {
		visible = k.caller.Visible()
	}
	ends := make([]int, len(parts))
	for i, p := range parts {
		if from, ok := former.part(i, p, begin); ok {
			out = append(out, from...)
		} else {
			for _, item := range p.items {
				if visible == nil || visible(p.server, jsonrpc.Text(jsonrpc.Get(item, "name"))) {
					out = append(append(out, k.names.rewriteItem(p.server, k.method, item)...), ',')
				}
			}
		}
		ends[i] = len(out)
	}
	if out[len(out)-1] == ',' {
		out[len(out)-1] = ']' // replaces the comma, so the last part keeps its length
	} else {
		out = append(out, ']')
	}
	return &mergedList{raw: append(out, '}'), ends: ends}
}

// part returns the bytes of part i if it equals p, with a comma behind each item. begin is the offset of the first
// part.
func (l *mergedList) part(i int, p part, begin int) ([]byte, bool) {
	if l == nil || l.raw == nil || i >= len(l.parts) || !same(l.parts[i], p) {
		return nil, false
	}
	if i > 0 {
		begin = l.ends[i-1]
	}
	end := l.ends[i]
	if end > begin && l.raw[end-1] != ',' { // the last item has no comma
		return append(slices.Clip(l.raw[begin:end-1]), ','), true
	}
	return l.raw[begin:end], true
}

// same reports whether two parts share the same list in memory.
func same(a, b part) bool {
	return a.server == b.server && len(a.items) == len(b.items) && (len(a.items) == 0 || &a.items[0] == &b.items[0])
}

// each calls within with the list deadline.
func (p *Proxy) each(ctx context.Context, x *edge.Exchange, servers []string,
	f func(ctx context.Context, i int) error) error {
	return p.within(ctx, p.opts.Config.ListDeadline, x, servers, f)
}

// within runs f for all servers in parallel, within a limit and after the client's earlier notifications. It logs
// failures and returns the first error, in server order, if all fail. A timeout is a *downstream.Failure with the
// reason timeout.
func (p *Proxy) within(ctx context.Context, limit time.Duration, x *edge.Exchange, servers []string,
	f func(ctx context.Context, i int) error) error {
	slow := &downstream.Failure{Reason: reason.Timeout,
		Message: x.Message.Method + " took longer than " + limit.String()}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, slow)
	defer cancel()
	failed := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() {
			defer safe.Recover(p.log, "asking server "+server, func(err error) {
				failed[i] = &downstream.Failure{Server: server, Reason: reason.Unavailable, Message: err.Error()}
			})
			p.inOrder(bounded, x.Session, x.Order, server)
			failed[i] = failureOf(server, f(bounded, i))
		})
	}
	wg.Wait()
	var first error
	fine := 0
	for i, err := range failed {
		switch {
		case err == nil:
			fine++
		case ctx.Err() == nil:
			p.servers.Sessions().LeftOut(servers[i], x.Message.Method, err)
			first = cmp.Or(first, err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fine > 0 {
		return nil
	}
	return first
}

// failureOf adds the server to a failure without one, such as the timeout of the whole request.
func failureOf(server string, err error) error {
	var f *downstream.Failure
	if !errors.As(err, &f) || f.Server != "" {
		return err
	}
	own := *f
	own.Server = server
	return &own
}
