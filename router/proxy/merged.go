package proxy

import (
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

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
