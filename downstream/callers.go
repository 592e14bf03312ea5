package downstream

import (
	"errors"
	"slices"

	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/downstream/server"
)

// maxCallers is the number of callers with servers of their own. Those of the caller that has used them least recently
// are closed for another one; its tokens stay stored.
const maxCallers = 1000

// personal are the servers of one caller, of those where callers log in themselves.
type personal struct {
	servers map[string]*server.Server // by name, opened when they are needed
	set     *set                      // with the servers of all callers
	base    *set                      // of which it was made
	catalog *catalogCache
	used    int64
}

// view is the servers as one caller has them; without a caller, as the router itself has them.
type view struct {
	*servers
	caller string
}

// named returns the server with a name; nil if there is none.
func (v view) named(name string) *server.Server {
	for {
		s := v.servers.named(name)
		if v.caller == "" || s == nil || !s.Anyones() || s.Config.Disabled {
			return s
		}
		if own, current := v.servers.personal(s, v.caller); current {
			return own
		}
	}
}

// enabled returns the server with a name; nil if there is none or it is disabled.
func (v view) enabled(name string) *server.Server {
	if s := v.named(name); s != nil && !s.Config.Disabled {
		return s
	}
	return nil
}

// use calls f with the server of a name, which stays open until f returns. If the server was replaced too early for
// f, use calls f again with the successor. The error is that of f, or an *UnknownError.
func (v view) use(name string, f func(s *server.Server) error) error {
	for {
		s := v.enabled(name)
		if s == nil {
			return &UnknownError{"server", name}
		}
		if !s.Queue.Pin() {
			continue // it was replaced; the successor is in the current set
		}
		err := f(s)
		s.Queue.Unpin()
		if !errors.Is(err, admission.ErrRetired) {
			return err
		}
	}
}

// all returns the current set.
func (v view) all() *set {
	base := v.servers.all()
	if v.caller == "" || base.shared {
		return base
	}
	order := slices.Clone(base.order)
	for i, s := range order {
		if own := v.named(s.Config.Name); own != nil {
			order[i] = own
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.servers.caller(v.caller)
	if p.set == nil || p.base != base || !slices.Equal(p.set.order, order) {
		p.set, p.base = newSet(order), base
	}
	return p.set
}

// personal returns the server of a caller for one where callers log in themselves. current is false if that has been
// replaced.
func (ss *servers) personal(s *server.Server, caller string) (own *server.Server, current bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	name := s.Config.Name
	switch {
	case ss.named(name) != s:
		return nil, false
	case ss.ctx.Err() != nil:
		return s, true // which has no sessions
	}
	p := ss.caller(caller)
	if p.servers[name] == nil {
		p.servers[name] = server.For(s, caller)
	}
	return p.servers[name], true
}

// caller returns the servers of a caller, making room for them. The caller holds ss.mu.
func (ss *servers) caller(caller string) *personal {
	p := ss.callers[caller]
	ss.uses++
	if p != nil {
		p.used = ss.uses
		return p
	}
	if len(ss.callers) >= maxCallers {
		least := ""
		for id, other := range ss.callers {
			if least == "" || other.used < ss.callers[least].used {
				least = id
			}
		}
		for _, s := range ss.callers[least].servers {
			ss.retireLocked(s)
		}
		delete(ss.callers, least)
	}
	p = &personal{servers: map[string]*server.Server{}, used: ss.uses}
	ss.callers[caller] = p
	return p
}

// dismiss closes the servers of a name of these callers, of all if there are none, as soon as their calls have ended.
func (ss *servers) dismiss(name string, callers ...string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.ctx.Err() != nil {
		return // stop closes all
	}
	for caller, p := range ss.callers {
		if s := p.servers[name]; s != nil && (len(callers) == 0 || slices.Contains(callers, caller)) {
			delete(p.servers, name)
			ss.retireLocked(s)
		}
	}
}

// DismissCallers closes the sessions of all callers with servers where they log in themselves, as soon as their calls
// have ended. Later calls open others.
func DismissCallers(m *Manager) {
	for _, name := range m.Servers() {
		m.servers.dismiss(name)
	}
}

// As returns the Manager as a caller has it: with the caller's own sessions and lists at servers where callers log in
// themselves. caller is auth.Caller.Login; without one these servers have neither. Requests name their caller
// in any case, see Request.Login.
func As(m *Manager, caller string) *Manager {
	if caller == "" || m.servers.servers.all().shared {
		return m
	}
	own := *m
	own.servers.caller = caller
	own.sessions = &Sessions{own.servers, m.sessions.clients, m.calls, m.opts.Logger}
	own.catalogCache = m.catalogCache.as(own.servers)
	return &own
}

// Owned returns the names of the servers that As has made for a caller.
func Owned(m *Manager) (names []string) {
	for _, s := range m.servers.all().order {
		if s.Caller() != "" {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// Personal returns the names of the servers about whose results one caller must learn nothing from those of another:
// private ones, and those where callers log in themselves.
func Personal(m *Manager) []string {
	names := m.Private()
	for _, s := range m.servers.servers.all().order {
		if s.Config.PerCaller() {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// as returns the catalog of a caller.
func (c *catalogCache) as(v view) *catalogCache {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.servers.caller(v.caller)
	if p.catalog == nil {
		p.catalog = &catalogCache{
			servers: v, options: c.options, logger: c.logger, validator: c.validator,
			refreshes: rate.NewLimiter(1, refreshBurst),
		}
		p.catalog.snapshot.Store(c.snapshot.Load()) // what it shares with others is built once
	}
	return p.catalog
}

// LoginAt returns a server where callers log in themselves, as a caller logs in to it, with the scopes that it has
// asked the caller for. ok is false for other servers.
func LoginAt(m *Manager, name, caller string) (s oauth.Server, ok bool) {
	own := view{m.servers.servers, caller}.enabled(name)
	if own == nil || own.Caller() == "" {
		return oauth.Server{}, false
	}
	s, ok = own.Config.OAuth()
	s.Caller, s.Scopes = caller, slices.Concat(s.Scopes, own.Lacks())
	return s, ok
}

// LoginEnded tells that a caller has logged in to a server, or why not. The caller's calls that wait for that go on,
// and sessions that it had with the server end.
func LoginEnded(m *Manager, name, caller string, why error) {
	if why == nil {
		m.servers.dismiss(name, caller)
	} else if s := (view{m.servers.servers, caller}).enabled(name); s != nil && s.Caller() != "" {
		s.LoginFailed(why)
	}
}
