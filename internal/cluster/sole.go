package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// soleServers is the prefix of the keys of servers that one replica runs. The entry of a server names the incarnation
// that runs it, 0 if that has released it. It is in force as long as that incarnation may act.
const soleServers = "server/"

const (
	lookEvery   = 250 * time.Millisecond
	releaseTime = time.Second // to write an entry
)

// Holder is the replica that runs a server. The zero Holder means that none does.
type Holder struct {
	Here          bool
	Name, Address string // of the replica
	Peer          *Peer  // nil = here, or none
}

// Sole decides which replica runs each of some servers. At most one does at a time: a replica that loses its lease
// closes them before another can take them over.
type Sole struct {
	Names func() []string // of the servers that one replica is to run
	// Place applies who runs the servers, and does not wait for calls in flight. Servers that are missing run nowhere.
	Place func(map[string]Holder)
	// Close waits until what Place has replaced of a server is closed. When ctx ends, it is closed at once.
	Close func(ctx context.Context, server string)

	replica  *Replica
	wake     chan struct{} // has room for one
	stop     context.CancelFunc
	running  sync.WaitGroup
	releases sync.WaitGroup

	mu       sync.Mutex // held while holders are applied
	stopping bool
	synced   bool               // entries are complete
	entries  map[string]holding // as seen by the watch
	mine     map[string]holding // with the incarnations of this replica
	holders  map[string]Holder
}

// holding is the entry of a server.
type holding struct {
	Home     uint64 `json:"home"`
	revision uint64
	leaving  bool // it is being released
}

// NewSole returns a Sole of a replica. Its functions are to be set before Start.
func NewSole(r *Replica) *Sole {
	return &Sole{replica: r, wake: make(chan struct{}, 1), entries: map[string]holding{}, mine: map[string]holding{},
		holders: map[string]Holder{}}
}

// Start begins to decide. The replica has joined the cluster.
func (s *Sole) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	s.run(ctx, "watching who runs the servers", func(ctx context.Context) {
		_ = s.replica.config.Sessions.Watch(ctx, soleServers, s.note) // until ctx ends, or again
	})
	s.run(ctx, "deciding who runs the servers", func(ctx context.Context) {
		for ctx.Err() == nil {
			s.look(ctx)
			pause(ctx, s.wake, lookEvery)
		}
	})
}

func (s *Sole) run(ctx context.Context, doing string, f func(context.Context)) {
	s.running.Go(func() { s.replica.keep(ctx, doing, f) })
}

// Release closes the servers that run here after their calls in flight, and lets others run them. If ctx ends before,
// Stop closes what is left.
func (s *Sole) Release(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	for s.held() && ctx.Err() == nil {
		poke(s.wake)
		pause(ctx, nil, 10*time.Millisecond)
	}
}

// Stop ends what Start has begun, and closes the servers that still run here at once.
func (s *Sole) Stop() {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	s.running.Wait()
	s.Lapsed()
	s.releases.Wait()
}

func (s *Sole) held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mine) > 0
}

// Lapsed closes all servers that run here at once, with their calls in flight, because the replica must not act.
func (s *Sole) Lapsed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mine) == 0 {
		return
	}
	next := maps.Clone(s.holders)
	for name := range s.mine {
		delete(next, name)
	}
	s.apply(next)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	var closing sync.WaitGroup
	for name := range s.mine {
		closing.Go(func() { s.Close(now, name) })
	}
	closing.Wait()
	clear(s.mine)
}

// note notes the entry of a server.
func (s *Sole) note(e shared.Entry) {
	defer poke(s.wake)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := holding{revision: e.Revision}
	name := strings.TrimPrefix(e.Key, soleServers)
	switch {
	case e.Key == "":
		s.synced = true
	case e.Value == nil: // the store has lost it; who ran the server may still do so
		s.entries[name] = holding{Home: s.entries[name].Home}
	case json.Unmarshal(e.Value, &h) == nil:
		s.entries[name] = h
	}
}

// apply applies who runs the servers. s.mu is held.
func (s *Sole) apply(next map[string]Holder) {
	if !maps.Equal(next, s.holders) {
		s.holders = next
		s.Place(maps.Clone(next))
	}
}

// look decides about all servers.
func (s *Sole) look(ctx context.Context) {
	i := s.replica.acting()
	if i == nil {
		return
	}
	_, others := s.replica.dir.Elsewhere()
	s.mu.Lock()
	names, leave := s.Names(), s.stopping || others && s.replica.Draining()
	entries, mine, synced := maps.Clone(s.entries), maps.Clone(s.mine), s.synced
	s.mu.Unlock()
	next := map[string]Holder{}
	var release []string
	for name, own := range mine {
		switch {
		case own.leaving:
		case leave || !slices.Contains(names, name):
			release = append(release, name)
		default:
			next[name] = s.here()
		}
	}
	for _, name := range names {
		if _, held := mine[name]; held {
			continue
		}
		at, free := s.at(ctx, i, entries[name])
		switch {
		case !free:
			next[name] = at
		case synced && (!leave || entries[name].Home == i.id) && s.claim(ctx, i, name, entries[name].revision):
			next[name] = s.here()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, h := range next {
		if own, held := s.mine[name]; h.Here && (!held || own.Home != i.id || !i.acts()) {
			delete(next, name)
		}
	}
	s.apply(next)
	for _, name := range release {
		if own, held := s.mine[name]; held {
			own.leaving = true
			s.mine[name] = own
			s.releases.Go(func() { s.release(ctx, name, own) })
		}
	}
}

func (s *Sole) here() Holder {
	return Holder{Here: true, Name: s.replica.config.Name, Address: s.replica.config.Address}
}

// at returns who runs a server according to its entry. free means that nobody does: its home, if it has one, has ended.
func (s *Sole) at(ctx context.Context, i *incarnation, e holding) (at Holder, free bool) {
	if e.Home == 0 || e.Home == i.id {
		return Holder{}, true
	}
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	m, err := s.replica.members.find(ctx, e.Home)
	if err != nil || m == nil {
		return Holder{}, false
	}
	switch s.replica.members.standing(m) {
	case ended:
		return Holder{}, true
	case departed: // another runs it soon
		return Holder{}, false
	}
	return Holder{Name: m.name, Address: m.address, Peer: m.peer}, false
}

// claim makes an incarnation the one that runs a server.
func (s *Sole) claim(ctx context.Context, i *incarnation, name string, revision uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	value, err := json.Marshal(holding{Home: i.id})
	if err == nil {
		revision, err = s.replica.config.Sessions.Put(ctx, soleServers+name, value, revision, 0)
	}
	if err != nil {
		return false // another has, or the watch will tell
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !i.acts() {
		return false
	}
	s.mine[name] = holding{Home: i.id, revision: revision}
	s.replica.config.Log.Info("this replica runs a server for the cluster", "server", name)
	return true
}

// release closes a server that runs nowhere any more, and lets others run it.
func (s *Sole) release(ctx context.Context, name string, own holding) {
	s.Close(ctx, name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, err := s.replica.config.Sessions.Put(ctx, soleServers+name, []byte(`{"home":0}`), own.revision, 0)
	if err != nil && !errors.Is(err, shared.ErrConflict) {
		s.replica.config.Log.Warn("cannot release a server", "server", name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine[name] == own {
		delete(s.mine, name)
	}
}
