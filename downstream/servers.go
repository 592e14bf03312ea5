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
	"github.com/agenticnexus/agenticnexus/downstream/server"
)

// set is the immutable set of servers of one configuration. A new configuration makes a new set, which takes over
// unchanged servers.
type set struct {
	order  []*server.Server
	byName map[string]*server.Server
}

func newSet(order []*server.Server) *set {
	f := &set{order: order, byName: make(map[string]*server.Server, len(order))}
	for _, s := range order {
		f.byName[s.Config.Name] = s
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

	applying sync.Mutex // serializes configurations; guards the next two
	started  bool
	stopped  bool

	ctx    context.Context // ends with stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newServers(configs []ServerConfig, opts *server.Options) *servers {
	ss := &servers{opts: opts, clients: opts.Clients}
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

// enabled returns the server with a name; nil if there is none or it is disabled.
func (ss *servers) enabled(name string) *server.Server {
	if s := ss.named(name); s != nil && !s.Config.Disabled {
		return s
	}
	return nil
}

// use calls f with the server of a name, which stays open until f returns. If the server was replaced too early for
// f, use calls f again with the successor. The error is that of f, or an *UnknownError.
func (ss *servers) use(name string, f func(s *server.Server) error) error {
	for {
		s := ss.enabled(name)
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
			if now == nil {
				changes.Removed = append(changes.Removed, s.Config.Name)
			}
		}
	}
	for _, s := range fresh {
		for _, client := range ss.clients.Interested(s.Config.Name) {
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
	ss.retired = append(ss.retired, s)
	ss.mu.Unlock()
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

// every returns all servers in configuration order, after those being replaced.
func (ss *servers) every() []*server.Server {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return append(slices.Clone(ss.retired), ss.all().order...)
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
