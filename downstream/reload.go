package downstream

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
)

// set is the immutable set of servers of one configuration. A new configuration makes a new set, which takes over
// unchanged servers.
type set struct {
	order  []*server
	byName map[string]*server
}

func newSet(order []*server) *set {
	f := &set{order: order, byName: make(map[string]*server, len(order))}
	for _, s := range order {
		f.byName[s.config.Name] = s
	}
	return f
}

// configs returns the configurations of the servers, in order.
func (f *set) configs() []ServerConfig {
	configs := make([]ServerConfig, len(f.order))
	for i, s := range f.order {
		configs[i] = s.config
	}
	return configs
}

// servers owns all servers: those of the current configuration and those being replaced.
type servers struct {
	set     atomic.Pointer[set]
	create  func(ServerConfig) *server
	clients *clients

	mu      sync.Mutex
	retired []*server // replaced, with calls still in flight

	applying sync.Mutex // serializes configurations; guards the next two
	started  bool
	stopped  bool

	ctx    context.Context // ends with stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newServers(configs []ServerConfig, clients *clients, create func(ServerConfig) *server) *servers {
	ss := &servers{create: create, clients: clients}
	ss.ctx, ss.cancel = context.WithCancel(context.Background())
	var order []*server
	for _, c := range configs {
		order = append(order, create(c))
	}
	ss.set.Store(newSet(order))
	return ss
}

// all returns the current set.
func (ss *servers) all() *set { return ss.set.Load() }

// server returns the server with a name; nil if there is none.
func (ss *servers) server(name string) *server { return ss.all().byName[name] }

// enabled returns the server with a name; nil if there is none or it is disabled.
func (ss *servers) enabled(name string) *server {
	if s := ss.server(name); s != nil && !s.config.Disabled {
		return s
	}
	return nil
}

// use calls f with the server of a name, which stays open until f returns. If the server was replaced too early for
// f, use calls f again with the successor. The error is that of f, or an *UnknownError.
func (ss *servers) use(name string, f func(s *server) error) error {
	for {
		s := ss.enabled(name)
		if s == nil {
			return &UnknownError{"server", name}
		}
		if !s.queue.Pin() {
			continue // it was replaced; the successor is in the current set
		}
		err := f(s)
		s.queue.Unpin()
		if !errors.Is(err, admission.ErrRetired) {
			return err
		}
	}
}

// start starts to connect to all servers in parallel.
func (ss *servers) start() {
	ss.applying.Lock()
	defer ss.applying.Unlock()
	ss.started = true
	for _, s := range ss.all().order {
		ss.watch(s)
	}
}

// watch keeps the router's own session with a server alive.
func (ss *servers) watch(s *server) {
	if !s.config.Disabled {
		ss.wg.Go(func() {
			defer s.rescue("supervising it", nil)
			s.own.supervise(ss.ctx, s.endpoint.watch, s.rest)
		})
	}
}

// Changes are the names of the servers that a new configuration adds, removes or changes.
type Changes struct{ Added, Removed, Changed []string }

// None reports whether there are no changes.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// apply replaces the configuration, see Manager.Apply.
func (ss *servers) apply(configs []ServerConfig) Changes {
	ss.applying.Lock()
	defer ss.applying.Unlock()
	var changes Changes
	if ss.stopped {
		return changes
	}
	former := ss.all()
	var order, fresh []*server
	for _, c := range configs {
		s := former.byName[c.Name]
		switch {
		case s != nil && reflect.DeepEqual(s.config, c):
		case s != nil:
			changes.Changed = append(changes.Changed, c.Name)
			s = ss.create(c)
			fresh = append(fresh, s)
		default:
			changes.Added = append(changes.Added, c.Name)
			s = ss.create(c)
			fresh = append(fresh, s)
		}
		order = append(order, s)
	}
	next := newSet(order)
	ss.set.Store(next)
	for _, s := range former.order {
		if now := next.byName[s.config.Name]; now != s {
			ss.retire(s)
			if now == nil {
				changes.Removed = append(changes.Removed, s.config.Name)
			}
		}
	}
	for _, s := range fresh {
		ss.resume(s)
		if ss.started {
			ss.watch(s)
		}
	}
	return changes
}

// retire closes a server once its calls in flight have ended. Queued calls move to its successor.
func (ss *servers) retire(s *server) {
	ss.mu.Lock()
	ss.retired = append(ss.retired, s)
	ss.mu.Unlock()
	s.queue.Retire()
	ss.wg.Go(func() {
		defer s.rescue("closing it", nil)
		s.queue.Drain(ss.ctx.Done())
		s.stop(stopTime)
		ss.mu.Lock()
		defer ss.mu.Unlock()
		ss.retired = slices.DeleteFunc(ss.retired, func(other *server) bool { return other == s })
	})
}

// every returns all servers in configuration order, after those being replaced.
func (ss *servers) every() []*server {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return append(slices.Clone(ss.retired), ss.all().order...)
}

// resume opens sessions with a new server for the clients with log levels or subscriptions at its predecessor. The
// router's own session opens anyway.
func (ss *servers) resume(s *server) {
	for _, client := range ss.clients.interested(s.config.Name) {
		s.slot(client).keep()
	}
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
		s.stop(min(stopTime, time.Until(end)/time.Duration(i+1)))
	}
	ss.wg.Wait()
}
