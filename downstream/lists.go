package downstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxPages = 1000             // pages of one list
	maxItems = 100_000          // items of one list
	maxBytes = 256 << 20        // of all pages of one list
	maxKept  = 1000             // quarantined tools of one list that are remembered,
	maxName  = 1024             // if their names have no more bytes than this
	ownFresh = 30 * time.Second // how long the router's own view of a list holds where changes are not announced
)

// listing is one list of one session, complete and never changed once done is closed.
type listing struct {
	done  chan struct{}
	at    time.Time
	turn  int64 // when it was asked for: later lists of the server have greater ones
	slow  bool  // it took all the time there was; guarded by slot.mu
	watch int64 // the watch on changes when it was asked for; 0 = none
	err   error
	lists
}

// lists is what was listed. Equal lists of a server's sessions are one in memory.
type lists struct {
	items  []json.RawMessage // nil where the server does not know the method; of tools those of use and not filtered out
	tools  []Tool            // of tools/list
	byName map[string]*Tool

	quarantined map[string]string // the reason, by name: definitions that are of no use
}

// list returns what the session lists, asking the server unless it would have said that something
// changed. own is for the router's own purposes, which a slightly older list serves, too. Callers that
// come while a list is under way wait for it. A list that a server which was replaced has not been asked for
// yet fails with errRetired.
func (sl *slot) list(ctx context.Context, method string, own bool) (*listing, error) {
	if sl.s.config.Disabled {
		return &sl.nothing, nil // the same each time, so that the catalog is
	}
	sl.mu.Lock()
	l := sl.lists[method]
	if l != nil && !sl.holds(l, method, own) {
		l = nil
	}
	if l == nil && (sl.closed || sl.s.ctx.Err() != nil) {
		sl.mu.Unlock()
		return nil, sl.unused()
	}
	if l == nil && !sl.s.gate.pin() {
		sl.mu.Unlock()
		return nil, errRetired
	}
	if l == nil {
		l = &listing{done: make(chan struct{}), at: time.Now(), turn: sl.s.asked.Add(1)}
		sl.lists[method] = l
		sl.s.wg.Go(func() { sl.fill(l, method) })
	}
	sl.mu.Unlock()
	select {
	case <-l.done:
		return l, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// holds reports whether a list can still be used. sl.mu is held.
func (sl *slot) holds(l *listing, method string, own bool) bool {
	select {
	case <-l.done:
	default:
		return true // it is under way
	}
	if own && l.slow && time.Since(l.at) < ownFresh {
		return true // whoever asks next need not wait as long
	}
	if l.err != nil || sl.session == nil || sl.session.Err() != nil {
		return false
	}
	return l.watch != 0 && l.watch == announces(sl.session, method) || own && time.Since(l.at) < ownFresh
}

// fresh reports whether the router's own purposes need no newer list.
func (sl *slot) fresh(l *listing) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.lists["tools/list"] == l && sl.holds(l, "tools/list", true)
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
	if l := sl.latest("tools/list"); l != nil && l.byName[name] != nil {
		return l.byName[name]
	}
	sl.s.mu.Lock()
	defer sl.s.mu.Unlock()
	return sl.s.listed["tools/list"].lists.byName[name]
}

func (sl *slot) fill(l *listing, method string) {
	s := sl.s
	defer s.gate.unpin() // a server that is replaced finishes its lists, too
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.deadline, errors.New(method+" took longer than "+s.deadline.String()))
	defer cancel()
	err := sl.read(ctx, l, method)
	if isLost(err) {
		err = sl.read(ctx, l, method)
	}
	l.err = err
	sl.mu.Lock()
	l.slow = err != nil && ctx.Err() != nil
	if last := sl.last[method]; err == nil && (last == nil || last.turn < l.turn) { // a later one may have overtaken it
		sl.last[method] = l
	}
	sl.mu.Unlock()
	close(l.done)
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, errRetired) {
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
	if err == nil {
		l.lists = sl.s.intern(method, items, l.turn)
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
	l.byName = make(map[string]*Tool, len(items))
	for _, def := range items {
		t, err := readTool(config.Name, def)
		if !config.TrustsAnnotations() {
			t.Annotations.ReadOnlyHint, t.Annotations.IdempotentHint = nil, nil // warnings are believed, promises are not
		}
		if err == nil && l.byName[t.Tool.Tool] != nil {
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
			l.byName[t.Tool.Tool] = &l.tools[len(l.tools)-1]
		}
	}
}

// quarantine remembers why a definition is of no use, for those who call the tool all the same.
func (l *lists) quarantine(name string, why error) {
	if l.quarantined == nil {
		l.quarantined = map[string]string{}
	}
	if len(name) <= maxName && len(l.quarantined) < maxKept && l.byName[name] == nil {
		l.quarantined[name] = why.Error()
	}
}
