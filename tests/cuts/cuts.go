// Package cuts connects the replicas of a cluster in one process, by a network and ways to a store that can be cut. It
// works inside of synctest. All functions may be called concurrently.
package cuts

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// Network connects hosts by pipes. Create it with New.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener // by host:port
	cut       map[[2]string]bool   // from, to
}

// New returns a Network in which nothing is cut.
func New() *Network {
	return &Network{listeners: map[string]*Listener{}, cut: map[[2]string]bool{}}
}

// Cut cuts a host off from another, or heals that. Connections between them break.
func (n *Network) Cut(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{from, to}] = cut
	if l := n.listeners[to]; cut && l != nil {
		l.breakFrom(from)
	}
}

// Isolate cuts a host off from all others, or heals that.
func (n *Network) Isolate(host string, cut bool) {
	n.mu.Lock()
	hosts := slices.Collect(maps.Keys(n.listeners))
	n.mu.Unlock()
	for _, other := range hosts {
		if other != host {
			n.Cut(host, other, cut)
			n.Cut(other, host, cut)
		}
	}
}

// From returns how a host connects to others. Connecting to one that it is cut off from takes until ctx ends.
func (n *Network) From(from string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		l, cut := n.listeners[address], n.cut[[2]string{from, address}]
		n.mu.Unlock()
		if cut {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if l == nil {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		client, server := net.Pipe()
		if !l.add(from, client, server) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return client, nil
	}
}

// Listen lets a host, with its port, accept connections until the listener is closed, which breaks them.
func (n *Network) Listen(address string) *Listener {
	l := &Listener{net: n, address: address, accept: make(chan net.Conn, 100), closed: make(chan struct{}),
		by: map[string][]net.Conn{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

// Listener accepts the connections of a host.
type Listener struct {
	net     *Network
	address string
	accept  chan net.Conn
	closed  chan struct{}
	once    sync.Once
	mu      sync.Mutex
	by      map[string][]net.Conn
}

func (l *Listener) add(from string, client, server net.Conn) bool {
	l.mu.Lock()
	select {
	case <-l.closed:
		l.mu.Unlock()
		return false
	default:
	}
	l.by[from] = append(l.by[from], client, server)
	l.mu.Unlock()
	select {
	case l.accept <- server:
		return true
	case <-l.closed:
		return false
	}
}

func (l *Listener) breakFrom(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.by[from] {
		_ = c.Close()
	}
	delete(l.by, from)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Refuse refuses further connections. Those that there are stay until Close.
func (l *Listener) Refuse() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.net.listeners[l.address] == l {
		delete(l.net.listeners, l.address)
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.Refuse()
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.closed)
		for _, conns := range l.by {
			for _, c := range conns {
				_ = c.Close()
			}
		}
	})
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{} }

// State is one replica's way to a store. It can be cut, and can lose answers. Create it with NewState.
type State struct {
	shared.State
	mu      sync.Mutex
	cut     bool
	blind   bool // watches stand still
	changed chan struct{}
	Lose    atomic.Int32 // answers of the next so many Puts that store are lost
}

// NewState returns a way to a store.
func NewState(s shared.State) *State { return &State{State: s, changed: make(chan struct{})} }

// SetCut cuts the store off, or heals that.
func (a *State) SetCut(cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = cut
	close(a.changed)
	a.changed = make(chan struct{})
}

// Replace replaces the store while it is cut off.
func (a *State) Replace(s shared.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.State = s
}

// SetBlind lets watches stand still, or go on.
func (a *State) SetBlind(blind bool) {
	a.mu.Lock()
	a.blind = blind
	cut := a.cut
	a.mu.Unlock()
	a.SetCut(cut)
}

// sees returns the store, nil if watches stand still, and a channel that is closed when that may have changed.
func (a *State) sees() (shared.State, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut || a.blind {
		return nil, a.changed
	}
	return a.State, a.changed
}

func (a *State) store() (shared.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut {
		return nil, shared.ErrUnreachable
	}
	return a.State, nil
}

// Get implements shared.State.
func (a *State) Get(ctx context.Context, key string) (shared.Entry, error) {
	store, err := a.store()
	if err != nil {
		return shared.Entry{}, err
	}
	return store.Get(ctx, key)
}

// Put implements shared.State.
func (a *State) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	store, err := a.store()
	if err != nil {
		return 0, err
	}
	revision, err = store.Put(ctx, key, value, revision, ttl)
	if err == nil && a.Lose.Load() > 0 && a.Lose.Add(-1) >= 0 {
		return 0, shared.ErrUnreachable
	}
	return revision, err
}

// Connected implements shared.State.
func (a *State) Connected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.cut
}

// Watch implements shared.State.
func (a *State) Watch(ctx context.Context, prefix string, f func(shared.Entry)) error {
	for ctx.Err() == nil {
		store, changed := a.sees()
		inner, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if store != nil {
				_ = store.Watch(inner, prefix, f)
			}
		}()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		cancel()
		<-done
	}
	return ctx.Err()
}
