package downstream

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

const (
	routerWait = 100 * time.Millisecond // the router's own wait for a list after a slow one
	rereadMost = 20                     // burst of requests for lists that lack an item
	rereadRate = 2                      // and their rate per second
)

// listCache reads the lists of a slot's sessions and caches them. slot.mu guards the fields.
type listCache struct {
	slot     *slot
	requests map[string]*listing // by method: the last request, unless its list is outdated; it may be in progress
	results  map[string]*listing // by method: the last list that was read, in any session; it may be outdated
	rereads  *rate.Limiter       // limits requests for lists that lack an item
	none     listing             // list of a disabled server; always the same, so that the catalog does not change
}

func newListCache(sl *slot) *listCache {
	return &listCache{
		slot: sl, requests: map[string]*listing{}, results: map[string]*listing{},
		rereads: rate.NewLimiter(rereadRate, rereadMost), none: listing{contents: contents{tools: new(catalog.List)}},
	}
}

// get returns a cached list if it is fresh, and reads it otherwise. Concurrent callers share one request. After a slow
// list, the router itself waits only until routerWait after the next request, and then gets the failure of the slow
// one. If the server was replaced before the request, the error is admission.ErrRetired.
func (c *listCache) get(ctx context.Context, method string, by reader) (*listing, error) {
	if c.slot.s.config.Disabled {
		return &c.none, nil
	}
	l, err := c.request(method, by)
	if err != nil {
		return nil, err
	}
	var enough <-chan time.Time
	if by == forRouter && l.slowBefore != nil {
		enough = time.After(time.Until(l.requested.Add(routerWait)))
	}
	select {
	case <-l.done:
	case <-enough:
		if !l.ended() {
			return nil, l.slowBefore
		}
	case <-ctx.Done():
		return nil, c.slot.gaveUp(ctx)
	}
	return l, l.err
}

// request returns the last request of a list if it is in progress or its list is fresh, and starts one otherwise.
func (c *listCache) request(method string, by reader) (*listing, error) {
	sl, s := c.slot, c.slot.s
	sl.mu.Lock()
	defer sl.mu.Unlock()
	former := c.requests[method]
	switch {
	case former != nil && (!former.ended() || former.fresh(by, time.Now())):
		return former, nil
	case sl.closed || s.ctx.Err() != nil:
		return nil, sl.unused()
	case !s.queue.Pin():
		return nil, admission.ErrRetired
	}
	l := &listing{done: make(chan struct{}), requested: time.Now(), turn: s.known.next()}
	if former != nil && former.slow && time.Since(former.requested) < routerAge {
		l.slowBefore = former.err
	}
	c.requests[method] = l
	s.wg.Go(func() { c.fill(l, method) })
	return l, nil
}

// getWith returns a list that satisfies has, or one requested at since or later, which proves that the item does not
// exist. Requests for missing items are limited to rereadMost and rereadRate, so that unknown names cannot flood a
// server. Concurrent callers share each request.
func (c *listCache) getWith(
	ctx context.Context, method string, since time.Time, has func(*listing) bool,
) (*listing, error) {
	for {
		l, err := c.get(ctx, method, forRouter)
		if err != nil || has(l) || !l.requested.Before(since) {
			return l, err
		}
		if wait := c.expire(method, l); wait > 0 && !sleep(ctx, wait, c.slot.s.ctx.Done()) && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// expire discards a list that lacks an item, unless another caller has done so. It returns the wait before the next
// attempt if the limit is reached.
func (c *listCache) expire(method string, l *listing) (wait time.Duration) {
	c.slot.mu.Lock()
	defer c.slot.mu.Unlock()
	if c.requests[method] != l {
		return 0
	}
	if r := c.rereads.Reserve(); r.Delay() > 0 {
		wait = r.Delay()
		r.Cancel()
		return wait
	}
	c.discard(method)
	return 0
}

// cached returns a list that is fresh; ok is false if there is none.
func (c *listCache) cached(method string, by reader) (l *listing, ok bool) {
	l = c.last(method)
	return l, l != nil && l.fresh(by, time.Now())
}

// last returns the last list that was read, in any session of the slot; nil if there is none. It may be outdated.
func (c *listCache) last(method string) *listing {
	c.slot.mu.Lock()
	defer c.slot.mu.Unlock()
	return c.results[method]
}

// tool returns a tool's last definition in the slot or, without one, in any session with the server, so that a client
// need not list before its first call. It is nil if the tool was never listed.
func (c *listCache) tool(name string) *catalog.Tool {
	if l := c.last("tools/list"); l != nil {
		if t := l.tools.Tool(name); t != nil {
			return t
		}
	}
	return c.slot.s.known.last("tools/list").tools.Tool(name)
}

// fill completes a request.
func (c *listCache) fill(l *listing, method string) {
	s := c.slot.s
	defer s.queue.Unpin() // a replaced server also finishes its lists
	late := s.failure(reason.Timeout, method+" took longer than "+s.deadline.String())
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.deadline, late)
	defer cancel()
	l.err = c.readTwice(ctx, l, method)
	l.slow = l.err != nil && ctx.Err() != nil
	if l.err == nil {
		c.store(l, method)
	}
	close(l.done)
	if l.err != nil && s.ctx.Err() == nil && !errors.Is(l.err, admission.ErrRetired) {
		s.health.failed(l.err)
	}
}

// store makes a list the last one, unless a later request has been faster.
func (c *listCache) store(l *listing, method string) {
	c.slot.mu.Lock()
	defer c.slot.mu.Unlock()
	former := c.results[method]
	if former != nil && former.turn > l.turn {
		return
	}
	c.results[method] = l
	if former != nil {
		former.outdated.Store(true)
	}
}

// readTwice reads a list, and reads it again if the server no longer knows the session.
func (c *listCache) readTwice(ctx context.Context, l *listing, method string) (err error) {
	defer c.slot.s.rescue("reading "+method, func(f *link.Failure) { err = f })
	if err = c.read(ctx, l, method); isLost(err) {
		err = c.read(ctx, l, method)
	}
	return err
}

// read reads a list in the current session.
func (c *listCache) read(ctx context.Context, l *listing, method string) error {
	s := c.slot.s
	session, err := c.slot.connectUnlessDown(ctx)
	if err != nil {
		return err
	}
	l.session, l.instructions = session, instructions(session)
	l.subscription, l.capability = subscription(session, method), listMethods[method].capability
	items, err := readPages(ctx, session, method)
	switch {
	case err == nil:
		l.contents = s.known.intern(s.identity, method, items, l.turn)
	case ctx.Err() == nil:
		s.health.unreached(err)
	}
	return err
}

// sessionReplaced discards the lists of the session before. A list being read continues in the new session. The caller
// holds slot.mu.
func (c *listCache) sessionReplaced() {
	for method, l := range c.requests {
		if l.ended() {
			c.discard(method)
		}
	}
}

// changed discards the lists that a notification invalidates, also those being read.
func (c *listCache) changed(notification string) {
	c.slot.mu.Lock()
	defer c.slot.mu.Unlock()
	for method := range c.requests {
		if listMethods[method].changed == notification {
			c.discard(method)
		}
	}
}

// discard makes the next get read a list again. The caller holds slot.mu.
func (c *listCache) discard(method string) {
	for _, l := range [...]*listing{c.requests[method], c.results[method]} {
		if l != nil {
			l.outdated.Store(true)
		}
	}
	delete(c.requests, method)
}
