package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

const (
	// maxPlaced bounds the entries of sessions that a replica remembers.
	maxPlaced = 64 << 10
	// clocksApart is how far the clocks of replicas may be apart. Without the entry of a session that has moved, a replica
	// whose clock is behind would adopt the session.
	clocksApart = time.Hour
	// findTime limits Find.
	findTime = 4 * time.Second
)

// Session is what the id of a session says.
type Session struct {
	Home uint64    // the incarnation that issued the id; 0 = none
	Tag  string    // unlike that of other sessions; characters of a key of the shared state
	Ends time.Time // when the id becomes invalid
}

func (s Session) key() string { return "session/" + s.Tag }

// life returns how long the store keeps the entry of the session: until its id is invalid by the clock of each replica.
func (s Session) life() time.Duration {
	return max(time.Until(s.Ends).Round(time.Second), 0) + clocksApart
}

// Place is where a session is served. The zero Place is this replica.
type Place struct {
	peer *Peer
	at   *placements
	tag  string
}

// Here reports whether the place is this replica.
func (p Place) Here() bool { return p.peer == nil }

// Forward passes a request to the place, which is not here, and its response to w. Request and response stay as they
// are, and streams are passed on as they come. A nil error means that the response was passed on. Before anything is
// written, the error is ErrRefused, ErrMoved, ErrUnavailable or ErrLost; afterwards it is ErrCut. If the client is
// gone, it is that of the request's context.
func (p Place) Forward(w http.ResponseWriter, r *http.Request) error {
	err := p.peer.forward(w, r)
	if p.at != nil && errors.Is(err, ErrMoved) {
		p.at.saw(p.tag, 0)
	}
	return err
}

// placements are the entries of sessions that an incarnation remembers.
type placements struct {
	by     *lru.Cache[string, placed] // the zero value means that the entry must be read
	mu     sync.Mutex                 // guards moving, and changes of by
	moving map[string]chan struct{}   // sessions that are handed over now; closed afterwards
}

func newPlacements() *placements {
	return &placements{by: lru.New[string, placed](maxPlaced, maxPlaced), moving: map[string]chan struct{}{}}
}

// put notes what this replica has made of an entry.
func (p *placements) put(tag string, e placed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.State = nil
	p.by.Put(tag, e, 1)
}

// saw notes the home in an entry as it was read, 0 if it must be read again, unless this replica has changed the entry
// meanwhile.
func (p *placements) saw(tag string, home uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, _ := p.by.Get(tag); !e.taken && !e.Ended {
		p.by.Put(tag, placed{Home: home}, 1)
	}
}

// handing returns a channel that is closed when a session is no longer being handed over; nil if it is not.
func (p *placements) handing(tag string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moving[tag]
}

// Directory knows the homes of sessions.
type Directory struct {
	replica *Replica // nil = this process is alone

	mu      sync.Mutex
	unsaved map[string]unsaved // by tag
	waiting int                // bytes of unsaved
	wake    chan struct{}      // has room for one
	saving  chan struct{}      // has room for one: who saves
}

// Alone returns the Directory of a process without a cluster: all sessions are here, and nothing is saved.
func Alone() *Directory { return &Directory{} }

func newDirectory(r *Replica) *Directory {
	return &Directory{replica: r, unsaved: map[string]unsaved{}, wake: make(chan struct{}, 1),
		saving: make(chan struct{}, 1)}
}

// Self returns the number that ids of new sessions name as their home; 0 without a cluster, or if this replica must
// not act now.
func (d *Directory) Self() uint64 {
	if d.replica == nil {
		return 0
	}
	if i := d.replica.acting(); i != nil {
		return i.id
	}
	return 0
}

// Draining reports whether the replica hands its sessions over.
func (d *Directory) Draining() bool { return d.replica != nil && d.replica.Draining() }

// Acts returns nil, or ErrUnavailable if this replica must serve nobody now.
func (d *Directory) Acts() error {
	if d.replica != nil && d.replica.acting() == nil {
		return ErrUnavailable
	}
	return nil
}

// Elsewhere returns another replica for a new session or for a session to hand over; ok is false if there is none.
func (d *Directory) Elsewhere() (_ Place, ok bool) {
	others := Others(d)
	if len(others) == 0 {
		return Place{}, false
	}
	return others[0], true
}

// Others returns the other replicas that can take sessions, in random order: they do not drain, and have renewed their
// leases just now, because without the store they could take none. A renewal is known to be new if the one before was
// seen not long before it: what a replica sees when it has the store back may be from any time since it lost it.
func Others(d *Directory) []Place {
	if d.replica == nil {
		return nil
	}
	now := time.Now()
	found := d.replica.members.others(func(m *member) bool {
		return !m.Draining && m.sight.standing(now) == live &&
			now.Sub(m.seen) < renewEvery+ioTime && now.Sub(m.before) < 2*renewEvery+ioTime
	})
	places := make([]Place, len(found))
	for from, to := range rand.Perm(len(found)) {
		places[to] = Place{peer: found[from].peer}
	}
	return places
}

// Find returns where a session is served now. If its home is gone, it is adopted: its place is here afterwards, and
// Load has what its home has saved. The error is ErrUnavailable or ErrEnded.
//
// A caller that gets Here must register the request with the session before it serves it, so that HandOver sees it. If
// there is no such session, it creates one and calls Find again, since the session may have been handed over meanwhile.
func (d *Directory) Find(ctx context.Context, s Session) (Place, error) {
	if d.replica == nil {
		return Place{}, nil
	}
	i := d.replica.acting()
	if i == nil {
		return Place{}, ErrUnavailable
	}
	if s.Home == i.id && !d.replica.Draining() {
		return Place{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if done := i.known.handing(s.Tag); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return Place{}, unavailable(ctx.Err())
		}
	}
	return d.find(ctx, i, s)
}

func (d *Directory) find(ctx context.Context, i *incarnation, s Session) (Place, error) {
	r := d.replica
	var peer *Peer // of the last incarnation that was found to live
	lives := func(id uint64) bool {
		peer = r.members.livePeer(id)
		return peer != nil
	}
	for range 8 {
		v := view{self: i.id, born: s.Home, draining: r.Draining(), forwarded: Forwarded(ctx)}
		cached, known := i.known.by.Get(s.Tag)
		v.known, v.entry = known && cached.Home != 0, cached
		e := entry{}
		do := v.next(lives)
		if do == look || known && !v.known {
			var err error
			if e, err = d.read(ctx, s); err != nil {
				return Place{}, err
			}
			v.read, v.known, v.entry = true, true, e.placed
			do = v.next(lives)
		}
		switch do {
		case refuse:
			return Place{}, ErrEnded
		case serve:
			if !i.acts() {
				return Place{}, ErrUnavailable
			}
			return Place{}, nil
		case pass:
			if v.read {
				i.known.saw(s.Tag, v.home())
			}
			if v.forwarded { // another takes this one for the home, which may have left just now
				if m, err := r.members.find(ctx, v.home()); err == nil && m != nil {
					_, _ = r.ask(ctx, i.id, m)
				}
				if !lives(v.home()) {
					continue
				}
			}
			return Place{peer, i.known, s.Tag}, nil
		case succeed:
			if peer, err := r.settle(ctx, v.home()); err != nil || peer != nil {
				return Place{peer, i.known, s.Tag}, err
			}
		}
		switch err := d.take(ctx, i, s, e); {
		case err == nil && do == succeed:
			r.members.adopted(v.home())
		case err != nil && !errors.Is(err, shared.ErrConflict):
			return Place{}, unavailable(err)
		}
	}
	return Place{}, ErrUnavailable
}

// entry is a session's entry as it was read.
type entry struct {
	placed
	revision uint64
}

// read reads the entry of a session.
func (d *Directory) read(ctx context.Context, s Session) (entry, error) {
	stored, err := d.replica.config.Sessions.Get(ctx, s.key())
	if err != nil {
		return entry{}, unavailable(err)
	}
	e := entry{revision: stored.Revision}
	if stored.Value != nil {
		err = json.Unmarshal(stored.Value, &e.placed)
	}
	if err != nil {
		return entry{}, unavailable(err)
	}
	return e, nil
}

// take makes an incarnation the home of a session whose entry was read.
func (d *Directory) take(ctx context.Context, i *incarnation, s Session, e entry) error {
	if !i.renewed.Load() { // the store may have forgotten that another is the home
		return shared.ErrUnreachable
	}
	i.known.by.Remove(s.Tag)
	e.Home = i.id
	err := d.write(ctx, s, e)
	if err == nil {
		d.replica.counts.adopted.Add(1)
		e.taken = true
		i.known.put(s.Tag, e.placed)
		if !i.acts() {
			return errFenced
		}
	}
	return err
}

// write stores the entry of a session if it still has its revision.
func (d *Directory) write(ctx context.Context, s Session, e entry) error {
	value, err := json.Marshal(e.placed)
	if err == nil {
		_, err = d.replica.config.Sessions.Put(ctx, s.key(), value, e.revision, s.life())
	}
	return err
}

// At returns the replica of an incarnation, for what ends with it. The error is ErrEnded if the incarnation is gone, or
// ErrUnavailable.
func (d *Directory) At(incarnation uint64) (Place, error) {
	if d.replica == nil {
		return Place{}, ErrEnded
	}
	if peer := d.replica.members.livePeer(incarnation); peer != nil {
		return Place{peer: peer}, nil
	}
	ms := d.replica.members
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.by[incarnation]
	if m == nil || m.sight.standing(time.Now()) >= departed {
		return Place{}, ErrEnded
	}
	return Place{}, unavailable(errors.New("it is silent"))
}
