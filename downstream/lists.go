package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

const (
	ownFresh    = 30 * time.Second       // lifetime of a list without announced changes, for the router itself
	ownPatience = 100 * time.Millisecond // the router's own wait for a list after a slow one
	relistBurst = 20                     // burst of lists requested for a missing item
	relistRate  = 2                      // and their rate per second
)

// lister reads the lists of a slot's sessions and caches them until the server announces a change or the session is
// lost. The fields are guarded by slot.mu.
type lister struct {
	slot     *slot
	byMethod map[string]*listing // of the current session, or being read
	last     map[string]*listing // the last complete lists of any session
	relists  *rate.Limiter       // limits requests for missing items
	nothing  listing             // list of a disabled server

	current atomic.Pointer[held] // byMethod["tools/list"] once it is complete; nil after a change or a loss
}

// held is a complete list of tools and the session that it is valid in.
type held struct {
	*listing
	session *link.Session
}

// newSlot returns the slot of a client, or the router's own if client is empty. open opens a session.
func newSlot(e *endpoint, client string, open func(ctx context.Context, sl *slot) (*link.Session, error)) *slot {
	sl := &slot{s: e, client: client, open: open}
	sl.ctx, sl.cancel = context.WithCancel(e.ctx)
	sl.lists = &lister{
		slot: sl, byMethod: map[string]*listing{}, last: map[string]*listing{},
		relists: rate.NewLimiter(relistRate, relistBurst),
	}
	if e.config.Disabled {
		sl.lists.current.Store(&held{listing: &sl.lists.nothing})
	}
	return sl
}

// list returns a list of the session. It asks the server unless the cached list is known to be current. own is set
// for the router itself, which accepts a slightly older list. Concurrent callers share one request. After a slow
// list, the router itself waits for the next one only until ownPatience after its request, and then gets the failure
// of the slow one. If the server was replaced before the request, the error is admission.ErrRetired.
func (ls *lister) list(ctx context.Context, method string, own bool) (*listing, error) {
	sl := ls.slot
	if sl.s.config.Disabled {
		return &ls.nothing, nil // always the same, so that the catalog does not change
	}
	sl.mu.Lock()
	l := ls.byMethod[method]
	var prior error
	if l != nil && !ls.holds(l, method, own) {
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
		l = &listing{done: make(chan struct{}), at: time.Now(), turn: sl.s.known.next(), prior: prior}
		ls.byMethod[method] = l
		sl.s.wg.Go(func() { ls.fill(l, method) })
	}
	sl.mu.Unlock()
	var enough <-chan time.Time
	if own && l.prior != nil {
		enough = time.After(time.Until(l.at.Add(ownPatience)))
	}
	select {
	case <-l.done:
	case <-enough:
		if !l.complete() {
			return nil, l.prior
		}
	case <-ctx.Done():
		return nil, sl.gaveUp(ctx)
	}
	return l, l.err
}

// holds reports whether a list can still be used. The caller holds slot.mu.
func (ls *lister) holds(l *listing, method string, own bool) bool {
	if !l.complete() {
		return true
	}
	session := ls.slot.session
	if l.err != nil || session == nil || session.Err() != nil {
		return false
	}
	return l.watch != 0 && l.watch == announces(session, method) || own && time.Since(l.at) < ownFresh
}

// look returns a list that satisfies found, or one requested at since or later, which proves that the item does not
// exist. Requests for missing items are limited to relistBurst and relistRate, so that unknown names cannot flood a
// server. Concurrent callers share each request.
func (ls *lister) look(
	ctx context.Context, method string, since time.Time, found func(*listing) bool,
) (*listing, error) {
	for {
		l, err := ls.list(ctx, method, true)
		if err != nil || found(l) || !l.at.Before(since) {
			return l, err
		}
		if wait := ls.relist(method, l); wait > 0 && !sleep(ctx, wait, ls.slot.s.ctx.Done()) && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// relist drops a list that lacks an item, unless another caller has done so. It returns the wait before the next
// attempt if the limit is reached.
func (ls *lister) relist(method string, l *listing) (wait time.Duration) {
	ls.slot.mu.Lock()
	defer ls.slot.mu.Unlock()
	if ls.byMethod[method] != l {
		return 0
	}
	if r := ls.relists.Reserve(); r.Delay() > 0 {
		wait = r.Delay()
		r.Cancel()
		return wait
	}
	ls.drop(method)
	return 0
}

// held returns the items of a complete list that is valid for a client.
func (ls *lister) held(method string) (items []json.RawMessage, ok bool) {
	ls.slot.mu.Lock()
	defer ls.slot.mu.Unlock()
	l := ls.byMethod[method]
	if l == nil || !l.complete() {
		return nil, false
	}
	return l.items, ls.holds(l, method, false)
}

// fresh reports whether a list of tools is new enough for the router itself. It does not lock the slot.
func (ls *lister) fresh(l *listing, now time.Time) bool {
	h := ls.current.Load()
	switch {
	case l == nil || h == nil || h.listing != l:
		return false
	case l == &ls.nothing:
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

// holding returns the complete list of tools; nil if there is none or it is invalid.
func (ls *lister) holding() *listing {
	if h := ls.current.Load(); h != nil {
		return h.listing
	}
	return nil
}

// latest returns the last complete list; nil if there is none. It survives its session and later failures.
func (ls *lister) latest(method string) *listing {
	ls.slot.mu.Lock()
	defer ls.slot.mu.Unlock()
	return ls.last[method]
}

// tool returns a tool's last definition in the slot or, without one, in any session with the server, so that a client
// need not list before its first call. It is nil if the tool was never listed.
func (ls *lister) tool(name string) *Tool {
	if l := ls.latest("tools/list"); l != nil {
		if t := l.tool(name); t != nil {
			return t
		}
	}
	known := ls.slot.s.known.last("tools/list")
	return known.tool(name)
}

// fill reads a list and completes it.
func (ls *lister) fill(l *listing, method string) {
	sl, s := ls.slot, ls.slot.s
	defer s.queue.Unpin() // a replaced server also finishes its lists
	late := s.failure(reason.Timeout, method+" took longer than "+s.deadline.String())
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.deadline, late)
	defer cancel()
	err := ls.readTwice(ctx, l, method)
	l.err = err
	sl.mu.Lock()
	l.slow = err != nil && ctx.Err() != nil
	if last := ls.last[method]; err == nil && (last == nil || last.turn < l.turn) { // a later one may have overtaken it
		ls.last[method] = l
	}
	if method == "tools/list" && err == nil && ls.byMethod[method] == l {
		ls.current.Store(&held{l, sl.session})
	}
	sl.mu.Unlock()
	close(l.done)
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, admission.ErrRetired) {
		s.health.failed(err)
	}
}

// readTwice reads a list, and reads it again if the server no longer knows the session.
func (ls *lister) readTwice(ctx context.Context, l *listing, method string) (err error) {
	defer ls.slot.s.rescue("reading "+method, func(f *link.Failure) { err = f })
	if err = ls.read(ctx, l, method); isLost(err) {
		err = ls.read(ctx, l, method)
	}
	return err
}

// read reads a list in the current session.
func (ls *lister) read(ctx context.Context, l *listing, method string) error {
	sl := ls.slot
	session, err := sl.reach(ctx)
	if err != nil {
		return err
	}
	sl.mu.Lock()
	l.watch, l.instructions = announces(session, method), instructions(session)
	sl.mu.Unlock()
	items, err := readPages(ctx, session, method)
	switch {
	case err == nil:
		l.contents = sl.s.known.intern(sl.s.identity, method, items, l.turn)
	case ctx.Err() == nil:
		sl.s.health.unreached(err)
	}
	return err
}

// forget drops the complete lists. A list being read continues in the new session. The caller holds slot.mu.
func (ls *lister) forget() {
	for method, l := range ls.byMethod {
		if l.complete() {
			ls.drop(method)
		}
	}
}

// changed drops the lists that a notification invalidates, also those being read.
func (ls *lister) changed(notification string) {
	ls.slot.mu.Lock()
	defer ls.slot.mu.Unlock()
	for method := range ls.byMethod {
		if changes[method] == notification {
			ls.drop(method)
		}
	}
}

// drop removes a list. The caller holds slot.mu.
func (ls *lister) drop(method string) {
	delete(ls.byMethod, method)
	if method == "tools/list" {
		ls.current.Store(nil)
	}
}
