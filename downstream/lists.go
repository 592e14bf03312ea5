package downstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxPages    = 1000                   // pages of one list
	maxItems    = 100_000                // items of one list
	maxBytes    = 256 << 20              // of all pages of one list
	maxKept     = 1000                   // quarantined tools of one list that are remembered,
	maxName     = 1024                   // if their names have no more bytes than this
	ownFresh    = 30 * time.Second       // how long the router's own view of a list holds where changes are not announced
	ownPatience = 100 * time.Millisecond // the router's own wait for a list after a slow one
	relistBurst = 20                     // lists asked for only because something is missing, at once,
	relistRate  = 2                      // and each second

	refreshBurst = 5 // times that all servers are listed only because something is missing, at once
)

// listing is one list of one session, complete and never changed once done is closed.
type listing struct {
	done  chan struct{}
	at    time.Time
	turn  int64 // when it was asked for: later lists of the server have greater ones
	slow  bool  // it took all the time there was; guarded by slot.mu
	prior error // the failure of the list before, if that was slow
	watch int64 // the watch on changes when it was asked for; 0 = none
	err   error
	lists
}

// lists is what was listed. Equal lists of a server's sessions are one in memory.
type lists struct {
	items  []json.RawMessage // nil where the server does not know the method; of tools those of use and not filtered out
	tools  []Tool            // of tools/list
	byName map[string]int    // of tools, by their own names

	quarantined map[string]string // the reason, by name: definitions that are of no use
}

// tool returns a tool by its own name, nil if it was not listed.
func (l *lists) tool(name string) *Tool {
	if i, ok := l.byName[name]; ok {
		return &l.tools[i]
	}
	return nil
}

// list returns what the session lists, asking the server unless it would have said that something
// changed. own is for the router's own purposes, which a slightly older list serves, too. Callers that
// come while a list is under way wait for it. After a list that was slow, the router's own purposes wait for the next
// one only until it has taken ownPatience, and then get the failure of the slow one. A list that a server which was
// replaced has not been asked for yet fails with admission.ErrRetired.
func (sl *slot) list(ctx context.Context, method string, own bool) (*listing, error) {
	if sl.s.config.Disabled {
		return &sl.nothing, nil // the same each time, so that the catalog is
	}
	sl.mu.Lock()
	l := sl.lists[method]
	var prior error
	if l != nil && !sl.holds(l, method, own) {
		if l.slow && time.Since(l.at) < ownFresh {
			prior = l.err
		}
		l = nil
	}
	if l == nil && (sl.closed || sl.s.ctx.Err() != nil) {
		sl.mu.Unlock()
		return nil, sl.unused()
	}
	if l == nil && !sl.s.queue.Pin() {
		sl.mu.Unlock()
		return nil, admission.ErrRetired
	}
	if l == nil {
		l = &listing{done: make(chan struct{}), at: time.Now(), turn: sl.s.asked.Add(1), prior: prior}
		sl.lists[method] = l
		sl.s.wg.Go(func() { sl.fill(l, method) })
	}
	sl.mu.Unlock()
	var enough <-chan time.Time
	if own && l.prior != nil {
		enough = time.After(time.Until(l.at.Add(ownPatience)))
	}
	select {
	case <-l.done:
	case <-enough:
		select {
		case <-l.done:
		default:
			return nil, l.prior
		}
	case <-ctx.Done():
		return nil, sl.gaveUp(ctx)
	}
	return l, l.err
}

// holds reports whether a list can still be used. sl.mu is held.
func (sl *slot) holds(l *listing, method string, own bool) bool {
	select {
	case <-l.done:
	default:
		return true // it is under way
	}
	if l.err != nil || sl.session == nil || sl.session.Err() != nil {
		return false
	}
	return l.watch != 0 && l.watch == announces(sl.session, method) || own && time.Since(l.at) < ownFresh
}

// look returns a list in which found finds what is looked for, or one that was asked for at since or later: what
// is missing from that is not there. Lists that are asked for only because something is missing are limited to
// relistBurst at once and relistRate a second, so that unknown names cannot be used to flood a server; callers share each
// of them.
func (sl *slot) look(ctx context.Context, method string, since time.Time, found func(*listing) bool) (*listing, error) {
	for {
		l, err := sl.list(ctx, method, true)
		if err != nil || found(l) || !l.at.Before(since) {
			return l, err
		}
		if wait := sl.relist(method, l); wait > 0 && !sleep(ctx, wait, sl.s.ctx.Done()) && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// relist drops a list in which something is missing, unless another caller has done so. It returns how long to wait
// before the next attempt where there have been too many.
func (sl *slot) relist(method string, l *listing) (wait time.Duration) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.lists[method] != l {
		return 0
	}
	if r := sl.relists.Reserve(); r.Delay() > 0 {
		wait = r.Delay()
		r.Cancel()
		return wait
	}
	sl.drop(method)
	return 0
}

// Find looks for an item in a list of a server in the client's session, and lists the server again before it
// reports that there is none: not ok. since is when the search began.
func (m *Manager) Find(ctx context.Context, name, client, method string, since time.Time, match func(item json.RawMessage) bool) (item json.RawMessage, ok bool, err error) {
	err = m.use(name, func(s *server) error {
		_, err := s.slot(client).look(ctx, method, since, func(l *listing) bool {
			i := slices.IndexFunc(l.items, match)
			if ok = i >= 0; ok {
				item = l.items[i]
			}
			return ok
		})
		return err
	})
	if errors.As(err, new(*UnknownError)) {
		err = nil
	}
	return item, ok, err
}

// Refresh lists again the tools of every server that were last listed before since. Servers that fail are left
// as they are. It does nothing when it is called more than refreshBurst times at once, then once a second.
func (m *Manager) Refresh(ctx context.Context, since time.Time) {
	if !m.refreshes.Allow() {
		return
	}
	var wg sync.WaitGroup
	for _, s := range m.fleet.Load().order {
		if !s.config.Disabled {
			wg.Go(func() {
				defer s.rescue("listing its tools", nil)
				_, _ = s.own.look(ctx, "tools/list", since, func(*listing) bool { return false }) // Catalog tells what failed
			})
		}
	}
	wg.Wait()
}

// held returns a list that is complete and valid for a client.
func (sl *slot) held(method string) (items []json.RawMessage, ok bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	l := sl.lists[method]
	if l == nil {
		return nil, false
	}
	select {
	case <-l.done:
		return l.items, sl.holds(l, method, false)
	default:
		return nil, false
	}
}

// fresh reports whether the router's own purposes need no newer list of tools. It takes no lock of the slot.
func (sl *slot) fresh(l *listing, now time.Time) bool {
	h := sl.current.Load()
	switch {
	case l == nil || h == nil || h.listing != l:
		return false
	case l == &sl.nothing:
		return true
	case h.session == nil:
		return false
	}
	select {
	case <-h.session.Done():
		return false
	default:
	}
	return now.Sub(l.at) < ownFresh || l.watch != 0 && l.watch == h.session.Watching()
}

// held is a complete list of tools and the session in whose time it is valid.
type held struct {
	*listing
	session *link.Session
}

// holding returns the list of tools that is complete and not void, nil if there is none.
func (sl *slot) holding() *listing {
	if h := sl.current.Load(); h != nil {
		return h.listing
	}
	return nil
}

// latest returns the last complete list, nil if there is none. A session that is lost, or a list that
// failed, does not make it forgotten.
func (sl *slot) latest(method string) *listing {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.last[method]
}

// tool returns the definition of a tool as it was last listed in the session, or else in any other with the
// server: where each client has its own, not each has to list before its first call. It is nil if the tool was
// never listed.
func (sl *slot) tool(name string) *Tool {
	if l := sl.latest("tools/list"); l != nil {
		if t := l.tool(name); t != nil {
			return t
		}
	}
	sl.s.mu.Lock()
	known := sl.s.listed["tools/list"].lists
	sl.s.mu.Unlock()
	return known.tool(name)
}

func (sl *slot) fill(l *listing, method string) {
	s := sl.s
	defer s.queue.Unpin() // a server that is replaced finishes its lists, too
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.deadline, &link.Failure{
		Server: s.config.Name, Reason: link.ReasonTimeout, Message: method + " took longer than " + s.deadline.String(),
	})
	defer cancel()
	err := sl.readTwice(ctx, l, method)
	l.err = err
	sl.mu.Lock()
	l.slow = err != nil && ctx.Err() != nil
	if last := sl.last[method]; err == nil && (last == nil || last.turn < l.turn) { // a later one may have overtaken it
		sl.last[method] = l
	}
	if method == "tools/list" && err == nil && sl.lists[method] == l {
		sl.current.Store(&held{l, sl.session})
	}
	sl.mu.Unlock()
	close(l.done)
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, admission.ErrRetired) {
		s.failed(err)
	}
}

// intern reads the items of a list, or finds that an earlier list was the same. turn says when it was asked for.
func (s *server) intern(method string, items []json.RawMessage, turn int64) lists {
	sum := sha256.New()
	for _, item := range items {
		sum.Write(item)
		sum.Write([]byte{'\n'})
	}
	digest := [sha256.Size]byte(sum.Sum(nil))
	s.mu.Lock()
	last := s.listed[method]
	s.mu.Unlock()
	l := last.lists
	if last.turn == 0 || last.digest != digest {
		l = lists{items: items}
		if method == "tools/list" {
			l.readTools(s.config, s.logger)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed[method].turn < turn {
		s.listed[method] = known{digest, l, turn}
	}
	return l
}

// known is the last list of a method, whichever session it came from.
type known struct {
	digest [sha256.Size]byte
	lists  lists
	turn   int64
}

// readTwice reads a list, once more if the server does not know the session any longer.
func (sl *slot) readTwice(ctx context.Context, l *listing, method string) (err error) {
	defer sl.s.rescue("reading "+method, func(f *link.Failure) { err = f })
	if err = sl.read(ctx, l, method); isLost(err) {
		err = sl.read(ctx, l, method)
	}
	return err
}

// read reads a list in the session that is there now.
func (sl *slot) read(ctx context.Context, l *listing, method string) error {
	session, err := sl.reach(ctx)
	if err != nil {
		return err
	}
	sl.mu.Lock()
	l.watch = announces(session, method)
	sl.mu.Unlock()
	items, err := readPages(ctx, session, method)
	switch {
	case err == nil:
		l.lists = sl.s.intern(method, items, l.turn)
	case ctx.Err() == nil:
		sl.s.unreached(err)
	}
	return err
}

// readPages asks for all pages of a list.
func readPages(ctx context.Context, s *link.Session, method string) (items []json.RawMessage, err error) {
	var cursor []byte
	seen := map[string]bool{}
	size := 0
	for page := range maxPages {
		var params []byte
		if cursor != nil {
			params = jsonrpc.Set(nil, "cursor", cursor)
		}
		reply, err := s.Call(ctx, &link.Call{Method: method, Params: params})
		if err != nil {
			return nil, err
		}
		if reply.Err != nil {
			if page == 0 && string(jsonrpc.Get(reply.Err, "code")) == "-32601" {
				return nil, nil
			}
			return nil, fmt.Errorf("%s was refused: %s", method, jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
		}
		if page == 0 {
			items = []json.RawMessage{}
		}
		for _, item := range jsonrpc.Elements(jsonrpc.Get(reply.Result, members[method])) {
			items = append(items, item)
		}
		cursor = jsonrpc.Get(reply.Result, "nextCursor")
		size += len(reply.Result)
		switch {
		case jsonrpc.Text(cursor) == "":
			return items, nil
		case len(items) > maxItems:
			return nil, fmt.Errorf("%s has more than %d items", method, maxItems)
		case size > maxBytes:
			return nil, fmt.Errorf("%s has more than %d bytes", method, maxBytes)
		case seen[string(cursor)]:
			return nil, fmt.Errorf("%s repeats a cursor", method)
		}
		seen[string(cursor)] = true
	}
	return nil, fmt.Errorf("%s has more than %d pages", method, maxPages)
}

// readTools takes over the definitions that are of use and says which are not.
func (l *lists) readTools(config ServerConfig, logger *slog.Logger) {
	items := l.items
	l.items = nil
	l.tools = make([]Tool, 0, len(items))
	l.byName = make(map[string]int, len(items))
	for _, def := range items {
		t, err := readTool(config.Name, def)
		if !config.TrustsAnnotations() {
			t.Annotations.ReadOnlyHint, t.Annotations.IdempotentHint = nil, nil // warnings are believed, promises are not
		}
		if err == nil && l.tool(t.Tool.Tool) != nil {
			err = errors.New("its name stands twice")
		}
		if err != nil {
			name := jsonrpc.Text(jsonrpc.Get(def, "name"))
			logger.Warn("tool quarantined", "server", config.Name, "tool", name, "error", err)
			l.quarantine(name, err)
			continue
		}
		if config.Tools.allows(t.Tool.Tool) {
			l.items = append(l.items, def)
			l.tools = append(l.tools, t)
			l.byName[t.Tool.Tool] = len(l.tools) - 1
		}
	}
}

// quarantine remembers why a definition is of no use, for those who call the tool all the same.
func (l *lists) quarantine(name string, why error) {
	if l.quarantined == nil {
		l.quarantined = map[string]string{}
	}
	if len(name) <= maxName && len(l.quarantined) < maxKept && l.tool(name) == nil {
		l.quarantined[name] = why.Error()
	}
}
