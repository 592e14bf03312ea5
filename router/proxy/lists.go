package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/lru"
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
type lister struct{ *Surface }

// startTime is how long a list without any server waits for the first one that is starting. Common clients give up
// after 60 seconds.
const startTime = 50 * time.Second

// gather returns the list of every server of which the caller may see an item. Valid held lists are used, and those of
// an earlier process while a server starts; the other servers are asked in parallel. Failed servers are left out. If
// all fail, they are asked again while some are starting: when one of these has connected, and after each list
// deadline, because another may have needed longer. Else gather fails.
func (s lister) gather(ctx context.Context, x *edge.Exchange, method string) ([]part, error) {
	servers, sessions := s.reach(x), serversOf(s.Surface, x).Sessions()
	if x.Visible != nil {
		kind, _, _ := strings.Cut(method, "/")
		servers = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return !x.Caller.MaySeeAny(kind, name) })
	}
	parts := make([]part, len(servers))
	var asked []string
	var indexes []int // of the servers that are asked
	for i, server := range servers {
		parts[i].server = server
		var held bool
		if parts[i].items, held = sessions.Held(server, x.Session, method); !held {
			parts[i].items, held = sessions.Remembered(server, method)
		}
		if !held {
			asked, indexes = append(asked, server), append(indexes, i)
		}
	}
	if len(asked) == 0 {
		return parts, nil
	}
	ask := func() error {
		return s.p.within(ctx, s.p.opts.Config.ListDeadline, x, asked, func(ctx context.Context, i int) (err error) {
			parts[indexes[i]].items, err = sessions.List(ctx, asked[i], x.Session, method)
			return err
		})
	}
	begun := serversOf(s.Surface, x).AnyStarting(asked...)
	err := ask()
	if err == nil || ctx.Err() == nil && len(asked) < len(servers) { // the held lists suffice
		return parts, nil
	}
	x.ReleaseWaiting() // later notifications need not wait for it
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for err != nil && starting.Err() == nil {
		turn, end := context.WithTimeout(starting, s.p.opts.Config.ListDeadline)
		waited, _ := serversOf(s.Surface, x).AwaitStart(turn, asked...)
		end()
		if !waited && !begun {
			break
		}
		begun = waited // one that has connected while it was asked is asked once more
		err = ask()
	}
	return parts, err
}

// serve answers a list request with all pages of all servers as one page.
func (s lister) serve(ctx context.Context, x *edge.Exchange) {
	method := x.Message.Method
	if s.only != "" && mayAll(x, s.only) && !s.p.servers.Sessions().PerCaller(s.only) && (method != "tools/list" || s.wholeTools()) {
		s.forward(ctx, x, s.only, "", x.Message.Params) // the server's pages pass through
		return
	}
	if err := edge.OnePage(x.Message.Params); err != nil {
		x.Fail(err)
		return
	}
	parts, err := s.gather(ctx, x, method)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	of := mergedKey{surface: s.Surface, names: s.names(), method: method, modern: x.Version.AtLeast(protocol.V20260728)}
	of.headers = of.modern && x.Header != nil
	whole := x.Visible == nil
	if !whole {
		parts = permitted(parts, method, permits(x, method))
	}
	if method == "tools/list" && s.searches() && count(parts) > s.p.opts.Config.SearchAbove {
		parts, whole = s.narrowed(x, parts), false
	}
	if whole {
		x.Reply(s.p.merged.get(of, parts))
	} else {
		x.Reply(of.merge(parts))
	}
}

// wholeTools reports whether all tools of the surface's one server are listed.
func (s lister) wholeTools() bool {
	sessions := s.p.servers.Sessions()
	return !sessions.Filters(s.only) && !sessions.Quarantines(s.only)
}

func count(parts []part) (n int) {
	for _, p := range parts {
		n += len(p.items)
	}
	return n
}

// permits returns a function that reports whether the caller may see an item of a list by its own name or URI.
func permits(x *edge.Exchange, method string) func(server, name string) bool {
	switch {
	case x.Visible == nil:
		return func(string, string) bool { return true }
	case method == "tools/list":
		return x.Caller.MayUse
	case method == "prompts/list":
		return x.Caller.MayPrompt
	}
	return x.Caller.MayRead
}

// permitted returns the items of a list that a caller may see.
func permitted(parts []part, method string, may func(server, name string) bool) []part {
	out := make([]part, len(parts))
	for i, p := range parts {
		out[i].server = p.server
		for _, item := range p.items {
			if may(p.server, jsonrpc.Text(jsonrpc.Get(item, nameMember(method)))) {
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
	return s.only == "" && s.p.parts.Search != nil && s.p.opts.Config.SearchAbove > 0
}

// narrowed returns the tools that the caller's last search found.
func (s lister) narrowed(x *edge.Exchange, parts []part) []part {
	var exposed []string
	if !x.Version.AtLeast(protocol.V20260728) {
		exposed = s.p.parts.Search.Exposed(x)
	}
	return permitted(parts, "tools/list", func(server, tool string) bool {
		return slices.Contains(exposed, catalog.FullName(server, tool))
	})
}

// Limits of the cache of merged lists.
const (
	maxMerged      = 64
	maxMergedBytes = 128 << 20
)

// mergedLists caches the bytes of merged lists for callers that may see all, while their parts are unchanged.
// Concurrent requests build a list once.
type mergedLists struct {
	mu    sync.Mutex // held while a list is looked up or built
	lists *lru.Cache[mergedKey, mergedList]
}

// mergedList is a merged list and what it was built from.
type mergedList struct {
	parts []part
	raw   []byte
}

// mergedKey identifies a merged list, apart from its parts.
type mergedKey struct {
	surface *Surface
	names   *naming
	method  string
	modern  bool
	headers bool // without tools whose schemas name an invalid header
}

// get returns the bytes of a merged list.
func (m *mergedLists) get(key mergedKey, parts []part) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.lists.Get(key)
	if !ok || !slices.EqualFunc(l.parts, parts, same) {
		l = mergedList{parts, key.merge(parts)}
		m.lists.Put(key, l, len(l.raw))
	}
	return l.raw
}

// merge builds the raw result of a list.
func (k mergedKey) merge(parts []part) []byte {
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
		out = append(append(out, k.surface.p.parts.Search.SearchTool()...), ',')
	}
	for _, p := range parts {
		for _, item := range p.items {
			if k.headers && !catalog.HasValidHeaders(item) {
				continue
			}
			if k.names.prefixed {
				if item = typedItem(k.method, item); item == nil {
					k.surface.p.log.Debug("left out an item of a list without a name", "server", p.server, "method", k.method)
					continue
				}
			}
			out = append(append(out, k.names.rewriteItem(p.server, k.method, item)...), ',')
		}
	}
	return append(bytes.TrimSuffix(out, []byte{','}), "]}"...)
}

// same reports whether two parts share the same list in memory.
func same(a, b part) bool {
	return a.server == b.server && len(a.items) == len(b.items) && (len(a.items) == 0 || &a.items[0] == &b.items[0])
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
