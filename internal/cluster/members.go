package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

const (
	// maxReplicas bounds the replicas of a cluster that are listed and asked.
	maxReplicas = 64
	// maxMembers bounds the incarnations that a replica remembers; those that ended first are forgotten first.
	maxMembers = 1024
	// lateFor is how long responses of an incarnation that has ended are awaited: one that leaves sends them before.
	lateFor = time.Second
	// maxApart is how far the clocks of replicas may be apart until the log tells.
	maxApart = 30 * time.Second
)

// Member is a replica in the list.
type Member struct {
	Incarnation            uint64
	Name, Address, Version string
	Sessions               int // of which it is the home
	Started                time.Time
	Draining               bool
	Self                   bool
}

// member is an incarnation that the replica knows.
type member struct {
	id            uint64
	name, address string
	peer          *Peer
	*known
}

// known is the part of a member that changes; members.mu guards it.
type known struct {
	sight
	lease
	revision uint64        // of its entry; 0 = none
	before   time.Time     // when its entry before the present one was seen, which is older; zero if none was
	own      bool          // it is one of this replica
	adopted  int           // sessions of it that this replica has taken over, and the log has not told
	warned   time.Time     // when the log last told that it does not answer
	offset   time.Duration // of its clock from that of the store
	apart    bool          // its clock differs from that of this replica
}

// members are the incarnations that a replica knows, without its own present one.
type members struct {
	replica *Replica
	mu      sync.Mutex
	by      map[uint64]*member
}

func newMembers(r *Replica) *members { return &members{replica: r, by: map[uint64]*member{}} }

// watch follows the leases until ctx ends. It closes synced, which may be closed, when it has seen the present ones.
func (ms *members) watch(ctx context.Context, synced chan struct{}) {
	err := ms.replica.config.Leases.Watch(ctx, leases, func(e shared.Entry) {
		if e.Key != "" {
			ms.apply(e)
			return
		}
		select {
		case <-synced:
		default:
			close(synced)
		}
	})
	if ctx.Err() == nil {
		ms.replica.config.Log.Warn("watching the replicas ended", "error", err)
	}
}

// apply notes the entry of an incarnation.
func (ms *members) apply(e shared.Entry) {
	id, err := strconv.ParseUint(strings.TrimPrefix(e.Key, leases), 16, 64)
	if err != nil || e.Key != leaseKey(id) {
		return
	}
	var l lease
	if e.Value != nil && (json.Unmarshal(e.Value, &l) != nil || !ms.authentic(id, &l)) {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.by[id]
	switch {
	case e.Value == nil: // expired, or the store has lost it
		if m != nil {
			m.revision = 0
		}
		return
	case m != nil && m.revision >= e.Revision:
		return
	}
	changed := m == nil || m.revision == 0 || m.Digest != l.Digest
	if m == nil {
		m = ms.add(id, l.Name, l.Address)
	}
	if m.revision > 0 {
		m.before = m.seen
	}
	m.revision = e.Revision
	if l.Ended {
		ms.finish(m, l.Draining)
		return
	}
	if l.First == 0 {
		l.First = e.Revision
	}
	m.lease, m.seen, m.refuses = l, time.Now(), false
	m.offset = l.Clock.Sub(e.Created)
	ms.compareClocks(m)
	c := &ms.replica.config
	if same := l.Digest == c.Digest(); changed && l.Name != c.Name && (!same || l.Version != c.Version) {
		c.Log.Warn("another replica has another configuration or version", "replica", l.Name, "address", l.Address,
			"version", l.Version, "same configuration", same)
	}
}

// compareClocks logs that the clock of an incarnation and that of this replica begin to differ. ms.mu is held.
func (ms *members) compareClocks(m *member) {
	own := ms.by[ms.replica.self()]
	if own == nil || own.Clock.IsZero() || m.Clock.IsZero() { // one of another version
		return
	}
	ahead, before := m.offset-own.offset, m.apart
	if m.apart = ahead.Abs() > maxApart; m.apart && !before {
		c := &ms.replica.config
		c.Log.Warn("the clocks of two replicas differ; set them", "this", c.Name, "other", m.Name,
			"other is ahead by", ahead.Round(time.Second))
	}
}

// authentic reports whether a replica of this cluster wrote a lease.
func (ms *members) authentic(id uint64, l *lease) bool {
	if l.Ended {
		return true
	}
	_, ok := ms.replica.hops.authentic(l.MAC, l.signed(id)...)
	return ok
}

// add adds an incarnation. ms.mu is held.
func (ms *members) add(id uint64, name, address string) *member {
	if len(ms.by) >= maxMembers {
		ms.forget()
	}
	m := &member{id: id, name: name, address: address, known: &known{}}
	m.seen = time.Now()
	m.peer = newPeer(ms.replica, id, address)
	ms.by[id] = m
	return m
}

// forget drops the incarnation that was seen first, an ended one if there is any. ms.mu is held.
func (ms *members) forget() {
	var oldest *member
	for _, m := range ms.by {
		if oldest == nil || m.ended && !oldest.ended || m.ended == oldest.ended && m.seen.Before(oldest.seen) {
			oldest = m
		}
	}
	oldest.peer.end()
	delete(ms.by, oldest.id)
}

// finish notes that an incarnation never acts again; left means that it has written so itself. ms.mu is held.
func (ms *members) finish(m *member, left bool) {
	m.ended = true
	m.peer.left.Store(left)
	time.AfterFunc(lateFor, m.peer.end)
}

// update changes what is known of an incarnation.
func (ms *members) update(m *member, f func(*sight)) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	f(&m.sight)
}

// departed notes that an incarnation of this replica acts no more.
func (ms *members) departed(id uint64) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.by[id]
	if m == nil {
		m = ms.add(id, ms.replica.config.Name, ms.replica.config.Address)
	}
	m.refuses, m.own = true, true
}

// unreached logs, at most once a minute, that an incarnation does not answer.
func (ms *members) unreached(id uint64, err error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m, now := ms.by[id], time.Now()
	if m == nil || now.Sub(m.warned) < time.Minute {
		return
	}
	m.warned = now
	ms.replica.config.Log.Warn("another replica does not answer; requests for its sessions fail or have to wait",
		"replica", m.name, "address", m.address, "error", err)
}

// introduce notes that an incarnation exists, as it or another told.
func (ms *members) introduce(id uint64, name, address string) *member {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.by[id]; m != nil {
		return m
	}
	if id == 0 || id == ms.replica.self() {
		return nil
	}
	return ms.add(id, name, address)
}

// find returns an incarnation, from the store if it is not known.
func (ms *members) find(ctx context.Context, id uint64) (*member, error) {
	ms.mu.Lock()
	m := ms.by[id]
	ms.mu.Unlock()
	if m != nil {
		return m, nil
	}
	e, err := ms.replica.config.Leases.Get(ctx, leaseKey(id))
	if err != nil {
		return nil, err
	}
	ms.apply(e)
	return ms.introduce(id, "", ""), nil
}

// standing judges an incarnation.
func (ms *members) standing(m *member) standing {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return m.sight.standing(time.Now())
}

// knows reports whether an entry of an incarnation with a revision or a later one was seen.
func (ms *members) knows(id, revision uint64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.by[id]
	return m != nil && m.revision >= revision
}

// livePeer returns the peer of an incarnation that acts; nil if it is not known as such. Without the store a replica
// passes nothing on.
func (ms *members) livePeer(id uint64) *Peer {
	connected, now := ms.replica.config.Leases.Connected(), time.Now()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.by[id]; m != nil && m.sight.standing(now) == live && (connected || now.Sub(m.seen) < silentFor) {
		return m.peer
	}
	return nil
}

// others returns the incarnations that satisfy wanted but for the replica's own, those that were seen last first.
func (ms *members) others(wanted func(*member) bool) []*member {
	self := ms.replica.self()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var found []*member
	for id, m := range ms.by {
		if id != self && wanted(m) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b *member) int { return b.seen.Compare(a.seen) })
	return found
}

// namesakes returns the other incarnations with a name that have not ended, and whose first entry is older than a
// revision; 0 is all.
func (ms *members) namesakes(name string, before uint64) []*member {
	return ms.others(func(m *member) bool {
		return m.name == name && !m.ended && (before == 0 || m.First < before)
	})
}

// list returns the replicas that may be acting, sorted by name, at most maxReplicas. Dead ones leave it within
// silentFor.
func (ms *members) list() []*Member {
	self := ms.replica.self()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var all []*Member
	for id, m := range ms.by {
		if id != self && m.sight.standing(time.Now()) != live || m.name == "" {
			continue
		}
		all = append(all, &Member{id, m.name, m.address, m.Version, m.Sessions, m.Started, m.Draining, id == self})
	}
	slices.SortFunc(all, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return all[:min(len(all), maxReplicas)]
}

// Members returns the replicas of the cluster, sorted by name.
func (r *Replica) Members() []*Member { return r.members.list() }

// adopted notes that a session of an incarnation was taken over.
func (ms *members) adopted(id uint64) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.by[id]; m != nil {
		m.adopted++
	}
}

// tellAdopted logs how many sessions of which incarnations were taken over since it was called last.
func (ms *members) tellAdopted() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.by {
		if m.adopted > 0 {
			ms.replica.config.Log.Info("took over sessions of a replica that has ended", "replica", m.name,
				"address", m.address, "sessions", m.adopted)
			m.adopted = 0
		}
	}
}

// reap ends the leases of replicas that are gone, so that waiting requests end and others need not find out. It logs
// what was taken over from them, at most once a second.
func (r *Replica) reap(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, nil, renewEvery/2)
		r.members.tellAdopted()
		if r.acting() == nil || !r.config.Leases.Connected() {
			continue
		}
		now := time.Now()
		var asked sync.WaitGroup
		for _, m := range r.members.others(func(m *member) bool {
			is := m.sight.standing(now)
			return is == silent || is == departed
		}) {
			asked.Go(func() { _, _ = r.settle(ctx, m.id) })
		}
		asked.Wait()
	}
}

// settle finds out about an incarnation that is not known as live: it returns its peer if it answers, nil if it has
// ended, which it makes sure of, or ErrUnavailable if it may still be acting.
func (r *Replica) settle(ctx context.Context, id uint64) (*Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*ioTime)
	defer cancel()
	m, err := r.members.find(ctx, id)
	switch {
	case err != nil:
		return nil, unavailable(err)
	case m == nil: // this replica itself, or nobody
		return nil, ErrUnavailable
	}
	unanswered := false
	if r.members.standing(m) == silent {
		alive, _ := r.ask(ctx, r.self(), m)
		unanswered = !alive
	}
	for range 3 {
		switch r.members.standing(m) {
		case live:
			return m.peer, nil
		case ended:
			return nil, nil
		}
		if err := r.fence(ctx, m, unanswered); err != nil {
			return nil, err
		}
	}
	return nil, ErrUnavailable
}

// fence writes that an incarnation has ended unless it may be acting. The incarnation's own renewal contends for the
// same entry: one of them fails. Afterwards its standing tells the outcome.
func (r *Replica) fence(ctx context.Context, m *member, unanswered bool) error {
	ms := r.members
	ms.mu.Lock()
	may, revision, own := m.mayFence(time.Now(), unanswered), m.revision, m.own
	ms.mu.Unlock()
	if !may {
		return ErrUnavailable
	}
	value := endedEntry
	if own {
		value = leftEntry
	}
	_, err := r.config.Leases.Put(ctx, leaseKey(m.id), value, revision, keepFor)
	switch {
	case err == nil:
		ms.mu.Lock()
		defer ms.mu.Unlock()
		if ms.finish(m, own); !own {
			r.config.Log.Info("ended the lease of a replica that is gone", "replica", m.name, "address", m.address)
		}
		return nil
	case !errors.Is(err, shared.ErrConflict):
		return unavailable(err)
	}
	e, err := r.config.Leases.Get(ctx, leaseKey(m.id))
	if err != nil {
		return unavailable(err)
	}
	ms.update(m, func(*sight) { m.revision = min(m.revision, e.Revision) }) // lower if the store has lost writes
	ms.apply(e)
	return nil
}
