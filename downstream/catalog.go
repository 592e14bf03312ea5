package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	refreshBurst  = 5               // burst of Refresh calls
	reconnectTime = 2 * time.Second // wait of a query for lost servers; attempts continue in the background
)

// catalogCache holds the tools of all servers.
type catalogCache struct {
	servers   view
	options   catalog.Options
	logger    *slog.Logger
	validator *plan.Validator
	refreshes *rate.Limiter

	snapshot atomic.Pointer[snapshot] // contains the last catalog
	building sync.Mutex               // serializes builds; guards writes of snapshot
}

func newCatalogCache(o *Options, servers view) *catalogCache {
	c := &catalogCache{
		servers: servers, options: catalog.Options{Policy: o.NameConflicts, NameLimit: o.NameLimit},
		logger: o.Logger, validator: o.Validator,
		refreshes: rate.NewLimiter(1, refreshBurst),
	}
	if c.validator == nil {
		c.validator = plan.NewValidator()
	}
	return c
}

// Catalog returns the tools of all servers. It asks, in parallel, the servers whose tools may have changed since they
// were listed. Servers that do not answer within the list deadline are in Missing.
func (c *catalogCache) Catalog(ctx context.Context) (*Catalog, error) {
	for {
		f := c.servers.all()
		if s := c.snapshot.Load(); s.fresh(f) {
			return s.catalog, nil
		}
		lists, failed := f.list(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if c.servers.all() == f {
			return c.build(f, lists, f.missing(lists, failed)), nil
		}
		// The configuration was replaced, which may be why a server did not answer.
	}
}

// list returns each server's list of tools, or the error if there is none in time.
func (f *set) list(ctx context.Context) (lists []*server.List, failed []error) {
	lists, failed = make([]*server.List, len(f.order)), make([]error, len(f.order))
	var wg sync.WaitGroup
	for i, s := range f.order {
		if l, ok := s.Own.Lists.Cached("tools/list", server.ForRouter); ok {
			lists[i] = l
			continue
		}
		wg.Go(func() {
			defer s.RecoverPanic("listing its tools", func(f *link.Failure) { failed[i] = f })
			switch l, err := s.Own.Lists.Get(ctx, "tools/list", server.ForRouter); {
			case err == nil:
				lists[i] = l
			case ctx.Err() == nil && !errors.Is(err, admission.ErrRetired):
				failed[i] = err
				s.LeftOut("tools/list", err)
			}
		})
	}
	wg.Wait()
	return lists, failed
}

// missing returns the servers without a list, with reasons.
func (f *set) missing(lists []*server.List, failed []error) (missing []Missing) {
	for i, l := range lists {
		if l != nil {
			continue
		}
		lost := Missing{
			Server: f.order[i].Config.Name, Reason: reason.Unavailable, Message: "its tools cannot be listed",
		}
		if last := f.order[i].Own.Lists.Last("tools/list"); last != nil {
			lost.Last = last.Tools
		}
		failure := f.order[i].Own.Starting() // includes the time elapsed
		if failure != nil || errors.As(failed[i], &failure) {
			lost.Reason, lost.Message = failure.Reason, failure.Message
		} else if failed[i] != nil {
			lost.Message = failed[i].Error()
		}
		missing = append(missing, lost)
	}
	return missing
}

// Reconnect retries, in parallel, the missing servers that were listed before and failed without a delay. It reports
// whether any is back. It waits at most reconnectTime.
func (c *catalogCache) Reconnect(ctx context.Context, missing []Missing) (back bool) {
	var reached atomic.Bool
	var wg sync.WaitGroup
	for _, m := range missing {
		quick := m.Reason == reason.Unavailable || m.Reason == reason.Disconnected
		if s := c.servers.enabled(m.Server); s != nil && quick && m.Last != nil {
			wg.Go(func() {
				defer s.RecoverPanic("connecting", nil)
				ctx, cancel := context.WithTimeout(ctx, reconnectTime)
				defer cancel()
				if _, err := s.Own.Connect(ctx); err == nil {
					reached.Store(true)
				}
			})
		}
	}
	wg.Wait()
	return reached.Load()
}

// AnyStarting reports whether one of these servers makes its first attempt to connect.
func (c *catalogCache) AnyStarting(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		s := c.servers.enabled(name)
		return s != nil && s.Own.Starting() != nil
	})
}

// AwaitStart waits until one of these servers that make their first attempt to connect has connected. It reports
// whether there were any; the error is that of the last one if none has connected.
func (c *catalogCache) AwaitStart(ctx context.Context, names ...string) (waited bool, err error) {
	if !c.AnyStarting(names...) { // nearly always
		return false, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	connected := false
	var wg sync.WaitGroup
	for _, name := range names {
		s := c.servers.enabled(name)
		if s == nil || s.Own.Starting() == nil {
			continue
		}
		waited = true
		wg.Go(func() {
			defer s.RecoverPanic("waiting for its start", nil)
			failed := c.servers.use(name, func(s *server.Server) error { // or its successor, if it is replaced
				_, err := s.Own.Connect(ctx)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch removed := errors.As(failed, new(*UnknownError)); {
			case failed == nil:
				connected = true
				cancel()
			case !removed && (ctx.Err() == nil || err == nil):
				err = failed
			}
		})
	}
	wg.Wait()
	if connected {
		err = nil
	}
	return waited, err
}

// snapshot is a catalog and the lists it was built from.
type snapshot struct {
	catalog *Catalog
	set     *set
	lists   []*server.List
}

// fresh reports whether all lists are current, as far as their servers announce changes.
func (s *snapshot) fresh(f *set) bool {
	if s == nil || s.set != f {
		return false
	}
	now := time.Now()
	for _, l := range s.lists {
		if l == nil || !l.Fresh(server.ForRouter, now) {
			return false
		}
	}
	return true
}

// build returns the catalog of the lists, or a later one built by another caller.
func (c *catalogCache) build(f *set, lists []*server.List, missing []Missing) *Catalog {
	c.building.Lock()
	defer c.building.Unlock()
	var former *Catalog
	var conflicts []catalog.Conflict
	if s := c.snapshot.Load(); s != nil {
		former, conflicts = s.catalog, s.catalog.Conflicts
		for i, l := range lists {
			if s.set != f {
				break
			}
			if last := s.lists[i]; l != nil && last != nil && last.Number > l.Number {
				lists[i] = last
			}
		}
	}
	sources := make([]catalog.Source, len(lists))
	for i, l := range lists {
		sources[i].Server = f.order[i].Config.Name
		if l != nil {
			sources[i].List, sources[i].Instructions = l.Tools, l.Instructions
		}
	}
	built := catalog.Build(former, c.options, sources, missing)
	c.snapshot.Store(&snapshot{built, f, lists})
	for _, conflict := range built.Conflicts {
		same := func(old catalog.Conflict) bool {
			return old.Tool == conflict.Tool && slices.Equal(old.Servers, conflict.Servers)
		}
		if !slices.ContainsFunc(conflicts, same) {
			c.logger.Warn("tool quarantined", "tool", conflict.Tool,
				"server", conflict.Servers[len(conflict.Servers)-1], "error", conflict.Error())
		}
	}
	return built
}

// conflicts returns the conflicts in the last catalog.
func (c *catalogCache) conflicts() []catalog.Conflict {
	if last := c.snapshot.Load(); last != nil {
		return last.catalog.Conflicts
	}
	return nil
}

// Displaced returns why a tool is quarantined under ConflictError: a server earlier in the configuration has a tool of
// its name. It is nil for other tools.
func (c *catalogCache) Displaced(name, tool string) *link.Failure {
	for _, conflict := range c.conflicts() {
		if conflict.Tool == texts.VisibleName(tool) && slices.Contains(conflict.Servers[1:], name) {
			return catalog.Quarantine(name, tool, "its name is also used by another server")
		}
	}
	return nil
}

// Listed reports whether a server's last list had a tool.
func (c *catalogCache) Listed(name, client, tool string) bool {
	s := c.servers.enabled(name)
	return s != nil && s.Connection(client).Lists.Tool(tool) != nil
}

// Has reports whether a server has a tool that the caller may use; client selects the client's session. A tool
// missing from the last list is looked up at its server; in the router's own session, whose lists make the catalog,
// also if another session has it. If the server cannot be listed, or not before a login, Has returns true and the call
// itself reports the failure. The error is the cause of ctx or, for a quarantined tool, a *Failure.
func (c *catalogCache) Has(ctx context.Context, name, client, tool string, visible Visible) (bool, error) {
	s := c.servers.enabled(name)
	if s == nil || !s.Config.Tools.Allows(tool) || visible != nil && !visible(name, tool) {
		return false, nil
	}
	if s.Anyones() {
		return true, nil
	}
	on := s.Connection(client)
	if last := on.Lists.Last("tools/list"); last != nil && last.Tools.Tool(tool) != nil ||
		on != s.Own && on.Lists.Tool(tool) != nil {
		return true, nil
	}
	l, err := on.Lists.GetWith(ctx, "tools/list", time.Now(), func(l *server.List) bool {
		_, useless := l.Tools.Quarantined[tool]
		return useless || l.Tools.Tool(tool) != nil || l.UntilLogin()
	})
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil || l.Tools.Tool(tool) != nil || l.UntilLogin():
		return true, nil
	}
	if why, ok := l.Tools.Quarantined[tool]; ok {
		return false, catalog.Quarantine(name, tool, why)
	}
	return false, nil
}

// Validate checks arguments against the tool's inputSchema. It returns nil if they are valid or the schema is
// unknown.
func (c *catalogCache) Validate(ctx context.Context, name, tool string, arguments []byte) (*plan.Error, error) {
	if known, err := c.Has(ctx, name, "", tool, nil); err != nil || !known {
		return nil, err
	}
	s := c.servers.named(name)
	if s == nil {
		return nil, nil
	}
	l := s.Own.Lists.Last("tools/list")
	if l == nil {
		return nil, nil
	}
	t := l.Tools.Tool(tool)
	if t == nil {
		return nil, nil
	}
	return c.validator.Validate(t.InputSchema, arguments), nil
}

// Find looks for an item in a server's list in the client's session. If it is missing, Find lists the server again
// unless the list is newer than since, the time when the search began. If the server cannot be listed, Find looks in
// its last list, so that a call reconnects.
func (c *catalogCache) Find(
	ctx context.Context, name, client, method string, since time.Time, match func(item json.RawMessage) bool,
) (item json.RawMessage, ok bool, err error) {
	err = c.servers.use(name, func(s *server.Server) error {
		lists := s.Connection(client).Lists
		has := func(l *server.List) bool {
			i := slices.IndexFunc(l.Items, match)
			if ok = i >= 0; ok {
				item = l.Items[i]
			}
			return ok
		}
		_, err := lists.GetWith(ctx, method, since, has)
		if last := lists.Last(method); err != nil && last != nil && has(last) {
			return nil
		}
		return err
	})
	if errors.As(err, new(*UnknownError)) {
		err = nil
	}
	return item, ok, err
}

// Refresh lists the tools of every server again whose list is older than since. Failed servers keep their lists.
// Beyond refreshBurst calls, and then one per second, it does nothing.
func (c *catalogCache) Refresh(ctx context.Context, since time.Time) {
	if !c.refreshes.Allow() {
		return
	}
	var wg sync.WaitGroup
	for _, s := range c.servers.all().order {
		if !s.Config.Disabled {
			wg.Go(func() {
				defer s.RecoverPanic("listing its tools", nil)
				_, _ = s.Own.Lists.GetWith(ctx, "tools/list", since, func(*server.List) bool { return false }) // Catalog reports the error
			})
		}
	}
	wg.Wait()
}
