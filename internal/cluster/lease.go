package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

const (
	// keepFor is the time for which the entry of an incarnation is kept: longer than any session lives. An entry does
	// not expire with its lease, so that the others know where to ask whether the incarnation still acts.
	keepFor = 25 * time.Hour
	// ioTime limits one access to the store or to a replica.
	ioTime = time.Second
)

var (
	errFenced = errors.New("the lease of this replica was ended by another")
	// errForgotten means that the store has lost writes, perhaps also entries of sessions.
	errForgotten = errors.New("the store has forgotten the lease of this replica")
)

// lease is the entry of an incarnation.
type lease struct {
	Name     string    `json:"name"`
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Digest   string    `json:"config,omitempty"`
	Started  time.Time `json:"started"`
	Clock    time.Time `json:"clock,omitzero"` // when the entry was written, by the clock of the replica
	Sessions int       `json:"sessions"`
	Draining bool      `json:"draining,omitempty"`
	First    uint64    `json:"first,omitempty"` // revision of the first entry
	Ended    bool      `json:"ended,omitempty"`
	MAC      string    `json:"mac,omitempty"` // by the cluster's key, so that nobody else draws requests to an address
}

// signed returns what the MAC of a lease covers.
func (l *lease) signed(id uint64) []string { return []string{"lease", number(id), l.Name, l.Address} }

// leases is the prefix of the keys of leases.
const leases = "replica/"

func leaseKey(id uint64) string { return fmt.Sprintf("%s%016x", leases, id) }

// incarnation is one term of a replica: it acts under one number, and never again once it has stopped.
type incarnation struct {
	id       uint64
	first    uint64 // revision of its first entry
	revision uint64 // of its entry; used by the goroutine that keeps the lease alone
	until    atomic.Pointer[time.Time]
	mu       sync.Mutex // guards changes of until
	lapse    sync.Once
	joined   atomic.Bool // it may act; before, it only exists
	renewed  atomic.Bool // its last renewal was stored, so that it may adopt sessions
	known    *placements
}

// keeper keeps the lease of a replica, through all its incarnations.
type keeper struct {
	replica *Replica
	current atomic.Pointer[incarnation] // nil = none
	left    atomic.Bool                 // Leave was called
	wake    chan struct{}               // has room for one; lets keepLease renew now
}

// acts reports whether the incarnation acts.
func (i *incarnation) acts() bool { return mayAct(time.Now(), *i.until.Load()) }

// prolong lets the incarnation act until a time unless it has stopped.
func (i *incarnation) prolong(later time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	until := prolonged(time.Now(), *i.until.Load(), later)
	i.until.Store(&until)
}

// stop lets the incarnation act no more.
func (i *incarnation) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.until.Store(&time.Time{})
}

// acting returns the present incarnation if it acts, otherwise nil.
func (k *keeper) acting() *incarnation {
	if i := k.current.Load(); i != nil && i.joined.Load() && i.acts() {
		return i
	}
	return nil
}

// self returns the present incarnation's number; 0 if it acts no more or there is none.
func (k *keeper) self() uint64 {
	if i := k.current.Load(); i != nil && i.acts() {
		return i.id
	}
	return 0
}

// entry returns the value of an incarnation's entry.
func (k *keeper) entry(id, first uint64) []byte {
	c := &k.replica.config
	l := lease{
		Name: c.Name, Address: c.Address, Version: c.Version, Digest: c.Digest(), Started: k.replica.started,
		Clock: time.Now(), Sessions: c.Count(), Draining: k.replica.Draining(), First: first,
	}
	l.MAC = mac(c.Keys()[0], l.signed(id)...)
	value, _ := json.Marshal(l) // cannot fail
	return value
}

// The entries of an incarnation that has ended, as others and itself write them.
var endedEntry, leftEntry = []byte(`{"ended":true}`), []byte(`{"ended":true,"draining":true}`)

// claim creates an incarnation.
func (k *keeper) claim(ctx context.Context) (*incarnation, error) {
	i := &incarnation{id: rand.Uint64() | 1, known: newPlacements()}
	sent := time.Now()
	revision, err := k.replica.config.Leases.Put(ctx, leaseKey(i.id), k.entry(i.id, 0), 0, keepFor)
	if err != nil {
		return nil, err
	}
	i.first, i.revision = revision, revision
	until := sent.Add(actFor)
	i.until.Store(&until)
	k.current.Store(i)
	if k.left.Load() && k.current.CompareAndSwap(i, nil) { // Leave has not seen it
		return nil, errors.Join(errLeft, k.end(ctx, i))
	}
	return i, nil
}

var errLeft = errors.New("this replica has left the cluster")

// join lets a new incarnation act. Before, it makes itself known to all replicas that it can reach, so that those that
// act on promises ask for its promise, too.
func (k *keeper) join(ctx context.Context, i *incarnation) {
	k.replica.askAll(ctx, i.id)
	i.renewed.Store(true)
	i.joined.Store(true)
}

// renew renews the lease.
func (k *keeper) renew(ctx context.Context, i *incarnation) error {
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	sent := time.Now()
	key, value := leaseKey(i.id), k.entry(i.id, i.first)
	revision, err := k.replica.config.Leases.Put(ctx, key, value, i.revision, keepFor)
	if errors.Is(err, shared.ErrConflict) {
		e, failed := k.replica.config.Leases.Get(ctx, key)
		if failed != nil {
			return failed
		}
		var stored lease
		switch {
		case e.Revision < i.revision:
			return errForgotten
		case json.Unmarshal(e.Value, &stored) != nil || stored.Ended:
			return errFenced
		}
		// A renewal whose answer was lost.
		revision, err = k.replica.config.Leases.Put(ctx, key, value, e.Revision, keepFor)
	}
	if err != nil {
		return err
	}
	i.revision = revision
	i.prolong(sent.Add(actFor))
	return nil
}

// keepLease renews the lease, asks for promises while that fails, and replaces an incarnation that has ended.
func (k *keeper) keepLease(ctx context.Context) {
	for failed := false; ctx.Err() == nil; {
		wait := renewEvery
		if i := k.current.Load(); i != nil {
			err := k.renew(ctx, i)
			i.renewed.Store(err == nil)
			switch {
			case errors.Is(err, errForgotten):
				k.lapsed(i, "the shared state has lost writes")
				pause(ctx, nil, silentFor) // until all others have noticed
				continue
			case errors.Is(err, errFenced):
				k.lapsed(i, "another replica ended it: this one did not answer at its address, or NATS showed no renewal")
				continue
			case err != nil && ctx.Err() == nil:
				k.hold(ctx, i)
				wait = renewEvery / 4
			}
			if failed != (err != nil) && ctx.Err() == nil {
				if failed = err != nil; failed {
					k.replica.config.Log.Warn("cannot renew the lease of this replica; it acts while all others answer it",
						"error", err)
				} else {
					k.replica.config.Log.Info("renewed the lease of this replica again")
				}
			}
		} else if !k.left.Load() {
			err := k.rejoin(ctx)
			if err == nil {
				continue // others hand sessions over only to one that they have seen to renew its lease
			}
			wait = renewEvery / 2
			k.replica.config.Log.Debug("joining the cluster again failed", "error", err)
		}
		pause(ctx, k.wake, wait)
	}
}

func (k *keeper) rejoin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	i, err := k.claim(ctx)
	if err != nil {
		return err
	}
	k.join(ctx, i)
	k.replica.config.Log.Info("joined the cluster again", "incarnation", fmt.Sprintf("%016x", i.id))
	return nil
}

// watchLease ends each incarnation when it acts no more.
func (k *keeper) watchLease(ctx context.Context) {
	for ctx.Err() == nil {
		wait := renewEvery / 8
		if i := k.current.Load(); i != nil {
			if wait = time.Until(*i.until.Load()); !i.acts() {
				k.lapsed(i, "it was not renewed in time")
			}
		}
		pause(ctx, nil, wait)
	}
}

// lapsed ends an incarnation that acts no more: its sessions end here, and others may adopt them.
func (k *keeper) lapsed(i *incarnation, why string) {
	i.lapse.Do(func() {
		i.stop()
		if k.current.Load() != i {
			return // stopped or left
		}
		c := &k.replica.config
		c.Log.Warn("this replica has lost its lease; its sessions move to the others", "cause", why, "address", c.Address)
		c.Ended(i.id)
		k.replica.members.departed(i.id)
		k.current.CompareAndSwap(i, nil)
	})
}

// end writes that an incarnation of this replica has ended.
func (k *keeper) end(ctx context.Context, i *incarnation) error {
	i.stop()
	k.replica.members.departed(i.id)
	_, err := k.replica.settle(ctx, i.id)
	return err
}

// clearName makes sure that no other replica has this one's name, among those that were there before the revision; 0 is
// all. It fences predecessors that are gone.
func (r *Replica) clearName(ctx context.Context, before uint64) error {
	for _, m := range r.members.namesakes(r.config.Name, before) {
		for {
			alive, err := r.ask(ctx, 0, m)
			if alive {
				return fmt.Errorf("another replica of the cluster has the name %q: it runs at %s", r.config.Name, m.address)
			}
			peer, unsure := r.settle(ctx, m.id)
			if unsure == nil && peer == nil {
				break
			}
			pause(ctx, nil, renewEvery/4)
			if ctx.Err() != nil {
				return fmt.Errorf("the replica %q at %s neither answers nor ends: %w", m.name, m.address,
					cmp.Or(err, unsure, ctx.Err()))
			}
		}
	}
	return nil
}
