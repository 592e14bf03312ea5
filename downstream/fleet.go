package downstream

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
)

// fleet is the servers of one configuration. It never changes: a new configuration makes another, which
// takes over the servers that are the same in both.
type fleet struct {
	order  []*server
	byName map[string]*server
}

func newFleet(order []*server) *fleet {
	f := &fleet{order: order, byName: make(map[string]*server, len(order))}
	for _, s := range order {
		f.byName[s.config.Name] = s
	}
	return f
}

// server returns the server of that name, nil if there is none.
func (m *Manager) server(name string) *server { return m.fleet.Load().byName[name] }

// use has f use the server of a name, which stays for as long as that takes. Where f comes too late because
// another has taken its place, f uses that one. The error is that of f, or an *UnknownError.
func (m *Manager) use(name string, f func(s *server) error) error {
	for {
		s := m.server(name)
		if s == nil || s.config.Disabled {
			return &UnknownError{"server", name}
		}
		if !s.queue.Pin() {
			continue // the successor is there already
		}
		err := f(s)
		s.queue.Unpin()
		if !errors.Is(err, admission.ErrRetired) {
			return err
		}
	}
}

// Changes are the names of the servers that a new configuration concerns.
type Changes struct{ Added, Removed, Changed []string }

// None reports whether no server is concerned.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Apply replaces the configuration of the servers. Those that are the same keep their sessions. One that is
// new or changed is connected; calls go to it from here on. One that is gone or changed finishes the calls
// that it has and is closed then; what clients asked of it for all time is asked of the next one of its name. Names
// must be unique. After Stop, Apply does nothing.
func (m *Manager) Apply(configs []ServerConfig) Changes {
	m.applying.Lock()
	defer m.applying.Unlock()
	var changes Changes
	if m.stopped {
		return changes
	}
	former := m.fleet.Load()
	var order, fresh []*server
	for _, c := range configs {
		s := former.byName[c.Name]
		switch {
		case s != nil && reflect.DeepEqual(s.config, c):
		case s != nil:
			changes.Changed = append(changes.Changed, c.Name)
			s = m.newServer(c)
			fresh = append(fresh, s)
		default:
			changes.Added = append(changes.Added, c.Name)
			s = m.newServer(c)
			fresh = append(fresh, s)
		}
		order = append(order, s)
	}
	next := newFleet(order)
	m.fleet.Store(next)
	for _, s := range former.order {
		if now := next.byName[s.config.Name]; now != s {
			m.retire(s)
			if now == nil {
				changes.Removed = append(changes.Removed, s.config.Name)
			}
		}
	}
	for _, s := range fresh {
		m.resume(s)
		if m.started {
			m.watch(s)
		}
	}
	return changes
}

// retire closes a server once the calls that it has are done. Those that wait go to its successor.
func (m *Manager) retire(s *server) {
	m.mu.Lock()
	m.retired = append(m.retired, s)
	m.mu.Unlock()
	s.queue.Retire()
	m.wg.Go(func() {
		defer s.rescue("closing it", nil)
		s.queue.Drain(m.ctx.Done())
		s.stop(stopTime)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.retired = slices.DeleteFunc(m.retired, func(other *server) bool { return other == s })
	})
}

// everyServer returns the servers in the order of the configuration, after those that are being replaced.
func (m *Manager) everyServer() []*server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(slices.Clone(m.retired), m.fleet.Load().order...)
}

// stopTime is how long a server may take to end politely.
const stopTime = 2 * time.Second

// Stop is StopWithin with as much time as every server may need.
func (m *Manager) Stop() { m.StopWithin(time.Duration(len(m.everyServer())) * stopTime) }

// StopWithin closes the servers in reverse order of the configuration, each before the next, and waits. A
// server that takes longer than its share of what is left of the limit is cut off.
func (m *Manager) StopWithin(limit time.Duration) {
	end := time.Now().Add(limit)
	m.applying.Lock()
	m.stopped = true
	m.applying.Unlock()
	m.cancel()
	servers := m.everyServer()
	for i, s := range slices.Backward(servers) {
		s.stop(min(stopTime, time.Until(end)/time.Duration(i+1)))
	}
	m.wg.Wait()
	m.transport.CloseIdleConnections()
}
