// Package cluster decides which replica of the router acts for a session, and passes requests to it.
//
// A [Replica] is this process in the cluster: it keeps a lease in the shared state, knows the other replicas, and
// proves to them who it is. Its [Directory] finds the home of a session ([Directory.Find]), which is a [Place]: here,
// or at another replica, to which [Place.Forward] passes the request. [Replica.Receive] accepts such requests.
// [Alone] is the Directory of a process without a cluster.
//
// At no time do two replicas act for one session: decide.go has the decisions, docs/decisions.md the protocol
// ("Ownership of sessions"), and the tests explore it. All types are safe for concurrent use. What a Replica keeps of
// others is bounded; a Replica owns its goroutines and waits for them in Stop.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// Config is what a Replica needs.
type Config struct {
	Leases   shared.State // readable by all who reach the store
	Sessions shared.State // with sealed values; may be the same
	Name     string       // of this replica, unlike those of the others
	Address  string       // URL at which the others reach it: scheme, host and port
	Version  string
	Digest   func() string   // of the present configuration; replicas with different ones are logged
	Keys     func() [][]byte // that authenticate requests between replicas, newest first
	Count    func() int      // the sessions here
	// Ended is called when this replica has lost its sessions to others, with the replica's incarnation at that time.
	// It must end them, without tombstones, before it returns.
	Ended func(incarnation uint64)
	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil = a TCP connection
	Log   *slog.Logger
}

// Replica is this process in a cluster. Create it with New.
type Replica struct {
	keeper
	config   Config
	started  time.Time
	members  *members
	hops     *hops
	dir      *Directory
	draining atomic.Bool
	counts   counts
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// New returns a Replica that does nothing until Start.
func New(c Config) *Replica {
	r := &Replica{config: c, started: time.Now()}
	r.keeper = keeper{replica: r, wake: make(chan struct{}, 1)}
	r.members = newMembers(r)
	r.hops = newHops(r)
	r.dir = newDirectory(r)
	return r
}

// counts are totals since New.
type counts struct{ forwarded, adopted atomic.Int64 }

// Counts returns how many requests the replica has passed on, and how many sessions it has taken over.
func Counts(r *Replica) (forwarded, adopted int64) {
	return r.counts.forwarded.Load(), r.counts.adopted.Load()
}

// Directory returns the directory of sessions.
func (r *Replica) Directory() *Directory { return r.dir }

// Start joins the cluster within ctx, and keeps the lease until Stop. Requests for Receive may arrive before. The error
// is one line: the store cannot be reached, or another replica has this name or answers at this address.
func (r *Replica) Start(ctx context.Context) error {
	background, stop := context.WithCancel(context.Background())
	r.stop = stop
	synced := make(chan struct{})
	r.run(background, "watching the replicas", func(ctx context.Context) { r.members.watch(ctx, synced) })
	i, err := r.start(ctx, synced)
	if err != nil {
		r.Stop()
		return err
	}
	r.run(background, "keeping the lease", r.keepLease)
	r.run(background, "watching the lease", r.watchLease)
	r.run(background, "ending leases of others", r.reap)
	r.run(background, "saving sessions", r.dir.keepSaving)
	r.awaitEntry(ctx, i.first+1) // others hand sessions over only to a replica that they have seen to renew its lease
	return nil
}

// start joins the cluster under the incarnation that it returns.
func (r *Replica) start(ctx context.Context, synced <-chan struct{}) (*incarnation, error) {
	select {
	case <-synced:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", shared.ErrUnreachable, ctx.Err())
	}
	if err := r.clearName(ctx, 0); err != nil {
		return nil, err
	}
	i, err := r.claim(ctx)
	if err != nil {
		return nil, err
	}
	r.awaitEntry(ctx, i.first) // and so all entries before it
	if err = r.clearName(ctx, i.first); err == nil {
		err = r.checkAddress(ctx, i)
	}
	if err != nil {
		r.current.Store(nil)
		_ = r.end(ctx, i)
		return nil, err
	}
	r.join(ctx, i)
	return i, nil
}

// awaitEntry waits until this replica has seen an entry of its own lease with a revision or a later one.
func (r *Replica) awaitEntry(ctx context.Context, revision uint64) {
	for ctx.Err() == nil {
		if i := r.current.Load(); i != nil && r.members.knows(i.id, revision) {
			return
		}
		pause(ctx, nil, 10*time.Millisecond)
	}
}

// checkAddress returns an error if another replica answers at the address of this one.
func (r *Replica) checkAddress(ctx context.Context, i *incarnation) error {
	self := &member{id: i.id, address: r.config.Address}
	for range 3 { // each over a new connection, because a balancer answers in turn
		bounded, cancel := context.WithTimeout(ctx, ioTime)
		id, _, err := r.hops.call(bounded, self, 0, holdPath)
		cancel()
		switch {
		case err != nil:
			r.config.Log.Warn("this replica does not reach itself at the address that it advertises; if the others do not, "+
				"either, they take its sessions over: check cluster.advertise", "address", r.config.Address, "error", err)
			return nil
		case id != i.id:
			return fmt.Errorf("another replica answers at %s, the address that this one advertises: set cluster.advertise "+
				"or NEXUS_ADVERTISE to a URL that reaches this one alone, not to that of a balancer", r.config.Address)
		}
	}
	return nil
}

// Stop ends the loops of the replica and waits for them. Its sessions are adopted after its lease unless Leave was
// called before. It may be called again.
func (r *Replica) Stop() {
	if r.stop == nil {
		return
	}
	r.stop()
	if i := r.current.Swap(nil); i != nil {
		i.stop()
	}
	r.running.Wait()
	r.hops.close()
}

// run runs f in a goroutine that Stop waits for. After a panic it runs f again.
func (r *Replica) run(ctx context.Context, doing string, f func(context.Context)) {
	r.running.Go(func() { r.keep(ctx, doing, f) })
}

// keep runs f until ctx ends.
func (r *Replica) keep(ctx context.Context, doing string, f func(context.Context)) {
	for ctx.Err() == nil {
		func() {
			defer safe.Recover(r.config.Log, doing, nil)
			f(ctx)
		}()
		pause(ctx, nil, time.Second)
	}
}

// pause waits for a time, until wake, or until ctx ends.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// poke ends a pause, the next one if there is none. wake has room for one.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Drain makes the replica hand its sessions over ([Directory.HandOver]) and tells the others.
func (r *Replica) Drain() {
	r.draining.Store(true)
	poke(r.wake)
}

// Draining reports whether Drain was called.
func (r *Replica) Draining() bool { return r.draining.Load() }

// Leave ends the lease so that others adopt the remaining sessions at once. The caller has ended all its work for them,
// and closes its listener only afterwards.
func (r *Replica) Leave(ctx context.Context) error {
	saved := r.dir.flush(ctx)
	r.left.Store(true)
	i := r.current.Swap(nil)
	if i == nil {
		return nil
	}
	err := errors.Join(saved, r.end(ctx, i))
	if err == nil {
		r.config.Log.Info("left the cluster")
	}
	return err
}
