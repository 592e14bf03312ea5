package downstream

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/server"
)

// set is the immutable set of servers of one configuration. A new configuration makes a new set, which takes over
// unchanged servers.
type set struct {
	order  []*server.Server
	byName map[string]*server.Server
	shared bool // no server has callers that log in themselves
}

func newSet(order []*server.Server) *set {
	f := &set{order: order, byName: make(map[string]*server.Server, len(order)), shared: true}
	for _, s := range order {
		f.byName[s.Config.Name] = s
		f.shared = f.shared && (!s.Anyones() || s.Config.Disabled)
	}
	return f
}

// servers owns all servers: those of the current configuration and those being replaced.
type servers struct {
	set     atomic.Pointer[set]
	opts    *server.Options
	clients *server.Clients

	mu      sync.Mutex
	retired []*server.Server // replaced, with calls still in flight
	callers map[string]*personal
	uses    int64 // of callers so far

	applying sync.Mutex // serializes configurations; guards the next two
	started  bool
	stopped  bool

	ctx    context.Context // ends with stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newServers(configs []ServerConfig, opts *server.Options) *servers {
	ss := &servers{opts: opts, clients: opts.Clients, callers: map[string]*personal{}}
	ss.ctx, ss.cancel = context.WithCancel(context.Background())
	var order []*server.Server
	for _, c := range configs {
		order = append(order, server.New(c, opts))
	}
	ss.set.Store(newSet(order))
	return ss
}

// all returns the current set.
func (ss *servers) all() *set { return ss.set.Load() }

// named returns the server with a name; nil if there is none.
func (ss *servers) named(name string) *server.Server { return ss.all().byName[name] }

// start starts to connect to all servers in parallel.
func (ss *servers) start() {
	ss.applying.Lock()
	defer ss.applying.Unlock()
	ss.started = true
	for _, s := range ss.all().order {
		ss.wg.Go(func() { s.Supervise(ss.ctx) })
	}
}

// Changes are the names of the servers that a new configuration adds, removes or changes.
type Changes struct{ Added, Removed, Changed []string }

// None reports whether there are no changes.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// apply replaces the configuration, see Manager.Apply. The servers named in again are replaced even if they have not
// changed.
func (ss *servers) apply(configs []ServerConfig, again ...string) Changes {
	ss.applying.Lock()
	defer ss.applying.Unlock()
	var changes Changes
	if ss.stopped {
		return changes
	}
	former := ss.all()
	var order, fresh []*server.Server
	for _, c := range configs {
		s := former.byName[c.Name]
		if s == nil || !reflect.DeepEqual(s.Config, c) || slices.Contains(again, c.Name) {
			next := server.New(c, ss.opts)
			if s == nil {
				changes.Added = append(changes.Added, c.Name)
			} else {
				changes.Changed = append(changes.Changed, c.Name)
			}
			if s != nil && slices.Contains(again, c.Name) {
				server.Follow(next, s)
			}
			s = next
			fresh = append(fresh, s)
		}
		order = append(order, s)
	}
	next := newSet(order)
	ss.set.Store(next)
	for _, s := range former.order {
		if now := next.byName[s.Config.Name]; now != s {
			ss.retire(s)
			ss.dismiss(s.Config.Name)
			if now == nil {
				changes.Removed = append(changes.Removed, s.Config.Name)
			}
		}
	}
	for _, s := range fresh {
		for _, client := range ss.clients.Interested(s.Config.Name) { // none if callers log in themselves
			s.Connection(client).Keep() // the predecessor's log levels and subscriptions
		}
		if ss.started {
			ss.wg.Go(func() { s.Supervise(ss.ctx) })
		}
	}
	return changes
}

// retire closes a server once its calls in flight have ended. Queued calls move to its successor.
func (ss *servers) retire(s *server.Server) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.retireLocked(s)
}

func (ss *servers) retireLocked(s *server.Server) {
	ss.retired = append(ss.retired, s)
	s.Queue.Retire()
	ss.wg.Go(func() {
		defer s.RecoverPanic("closing it", nil)
		s.Queue.Drain(ss.ctx.Done())
		s.Stop(server.StopTime)
		ss.mu.Lock()
		defer ss.mu.Unlock()
		ss.retired = slices.DeleteFunc(ss.retired, func(other *server.Server) bool { return other == s })
	})
}

// close closes the replaced servers of a name, see CloseReplaced.
func (ss *servers) close(ctx context.Context, name string) {
	for _, s := range ss.every() {
		if s.Config.Name == name && s != ss.named(name) {
			s.Queue.Drain(ctx.Done())
			limit := server.StopTime
			if ctx.Err() != nil {
				limit = 0
			}
			s.Stop(limit)
		}
	}
}

// every returns all servers: those being replaced, those in configuration order, and those of callers.
func (ss *servers) every() []*server.Server {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	all := append(slices.Clone(ss.retired), ss.all().order...)
	for _, p := range ss.callers {
		all = slices.AppendSeq(all, maps.Values(p.servers))
	}
	return all
}

// stop closes the servers, see Manager.StopWithin.
func (ss *servers) stop(limit time.Duration) {
	end := time.Now().Add(limit)
	ss.applying.Lock()
	ss.stopped = true
	ss.applying.Unlock()
	ss.cancel()
	servers := ss.every()
	for i, s := range slices.Backward(servers) {
		s.Stop(min(server.StopTime, time.Until(end)/time.Duration(i+1)))
	}
	ss.wg.Wait()
}
