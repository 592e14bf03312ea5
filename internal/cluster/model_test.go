//go:build !race

package cluster

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"
)

// The model explores the protocol with the product's decisions (decide.go): three replicas, one session, time in
// seconds, and every order of events within a bound of faults. An event is one access to the store, one request
// between replicas, a fault, its end, or the passing of a second, in which all replicas that can renew their leases do.
//
// The race detector would find nothing here, and takes minutes.
//
// Left out, and so for docs/decisions.md to state: a store that forgets writes, and a replica that joins while another
// acts on promises and cannot be reached.

const (
	mReplicas     = 3
	mIncarnations = 4 // three, and one of a replica that has lost its lease or was restarted
	nobody        = int8(-1)
	untaken       = int8(-2) // nothing is remembered of the session
)

// rules are the decisions, so that a test can break one.
type rules struct {
	actFor    time.Duration
	prolonged func(now, until, later time.Time) time.Time
	mayFence  func(s sight, now time.Time, unanswered bool) bool
	heldUntil func(now time.Time, others []sight) time.Time
	next      func(v view, lives func(uint64) bool) step
	compares  bool // fencing is by compare-and-set
	ends      bool // fencing is done at all
}

func productRules() rules {
	return rules{
		actFor: actFor, prolonged: prolonged, mayFence: sight.mayFence,
		heldUntil: heldUntil, next: view.next, compares: true, ends: true,
	}
}

// mSight is a sight with ages in seconds instead of times.
type mSight struct {
	seen, promised, held            int8
	known, refuses, ended, revision bool // revision: it knows the present one
}

const aged = int8(7) // and older: beyond all periods

var mNow = time.Unix(1_000_000, 0)

func ago(age int8) time.Time { return mNow.Add(-time.Duration(age) * time.Second) }

func (s mSight) real() sight {
	return sight{
		seen: ago(s.seen), promised: ago(s.promised), held: ago(s.held),
		refuses: s.refuses, ended: s.ended,
	}
}

// mReplica is a process.
type mReplica struct {
	down, paused, blind, isolated, draining bool // blind: its watch stands still
	cut, apart                              bool // it does not reach the store; it alone
	self                                    int8 // its incarnation
	until                                   int8 // seconds from now
	cache                                   int8 // what it remembers: untaken, its own incarnation if taken, or another
	read, handing                           bool // it has read the entry: to take it, or to hand the session over
	readHome                                int8 //
	readRevision                            bool // that is still the entry
	late                                    int8 // a home that a write under way still names
	lateRevision                            bool // that write names the present revision
	fencing                                 int8 // the incarnation for which a write is under way
	fenceRevision                           bool // that write names the present revision
	sights                                  [mIncarnations]mSight
}

// mState is the state of all.
type mState struct {
	replicas [mReplicas]mReplica
	owner    [mIncarnations]int8 // replica of an incarnation; nobody = not used yet
	ended    [mIncarnations]bool // lease entries
	home     int8                // session entry; nobody = none
	before   int8                // what a reader that is behind may still see
	lost     bool                // nobody reaches the store
	faults   int8                // left
}

const born = int8(0) // the incarnation in the session's id

func mStart(faults int8) mState {
	s := mState{home: nobody, before: nobody, faults: faults}
	for x := range s.owner {
		s.owner[x] = nobody
	}
	for r := range s.replicas {
		s.owner[r] = int8(r)
		m := mReplica{self: int8(r), until: 5, cache: untaken, fencing: nobody, late: nobody}
		for x := range m.sights {
			m.sights[x] = mSight{seen: aged, promised: aged, held: aged}
			if x < mReplicas && x != r {
				m.sights[x] = mSight{promised: aged, held: aged, known: true, revision: true}
			}
		}
		s.replicas[r] = m
	}
	return s
}

type model struct {
	rules
	seed     maphash.Seed
	visited  map[uint64]struct{}
	limit    int
	path     []mEvent
	faulty   []mEvent // the path to a violation
	unserved []mEvent // the path to a state in which the session stays unserved
	live     bool     // check that, too
	incs     int
	only     []string
}

// running reports whether the process takes steps.
func (r *mReplica) running() bool { return !r.down && !r.paused }

// acts reports whether the process acts as an incarnation.
func (r *mReplica) acts() bool {
	return r.running() && r.self != nobody && mayAct(mNow, ago(-r.until))
}

func (m *model) view(r *mReplica, forwarded bool) view {
	v := view{self: uint64(r.self) + 1, born: uint64(born) + 1, draining: r.draining, forwarded: forwarded}
	if r.cache != untaken {
		v.known, v.entry = true, placed{Home: uint64(r.cache) + 1, taken: r.cache == r.self}
	}
	if r.read && !r.handing {
		v.read, v.known, v.entry = true, true, placed{Home: uint64(r.readHome + 1)}
	}
	return v
}

func (r *mReplica) lives(home uint64) bool {
	x := r.sights[home-1]
	return x.known && x.real().standing(mNow) == live
}

// serves reports whether the replica acts for the session if a request arrives now.
func (m *model) serves(r *mReplica) bool {
	if !r.acts() || r.handing {
		return false
	}
	return m.next(m.view(r, false), r.lives) == serve
}

func (s *mState) reach(a, b int8) bool { return !s.replicas[a].isolated && !s.replicas[b].isolated }

// lapse ends the incarnation of a process.
func (s *mState) lapse(r *mReplica) {
	if r.self == nobody {
		return
	}
	r.sights[r.self] = mSight{seen: aged, promised: aged, held: aged, known: true, refuses: true, revision: false}
	r.self, r.until, r.cache, r.read, r.handing, r.fencing = nobody, 0, untaken, false, false, nobody
}

// sees lets a replica see the entry of an incarnation.
func (s *mState) sees(r *mReplica, x int8) {
	k := &r.sights[x]
	switch {
	case s.owner[x] == nobody || r.self == x:
	case s.ended[x]:
		*k = mSight{seen: aged, promised: aged, held: aged, known: true, ended: true, revision: true}
	case !k.revision:
		k.known, k.revision, k.refuses, k.seen = true, true, false, 0
	}
}

// written tells the replicas that the entry of an incarnation has a new revision.
func (s *mState) written(x int8) {
	for i := range s.replicas {
		r := &s.replicas[i]
		r.sights[x].revision = false
		if r.fencing == x {
			r.fenceRevision = false
		}
		if !r.down && !r.paused && !r.cut && !r.blind {
			s.sees(r, x)
		}
	}
}

// tick lets a second pass.
func (m *model) tick(s *mState) {
	older := func(age int8, period time.Duration) int8 { // ages beyond the period are alike
		if time.Duration(age+1)*time.Second >= period {
			return aged
		}
		return age + 1
	}
	for i := range s.replicas {
		r := &s.replicas[i]
		r.until = max(r.until-1, 0)
		for x := range r.sights {
			k := &r.sights[x]
			k.seen, k.promised, k.held = older(k.seen, silentFor), older(k.promised, promiseFor), older(k.held, heldFor)
			if !r.cut {
				k.held = aged
			}
		}
	}
	for i := range s.replicas {
		r := &s.replicas[i]
		if !r.running() || r.self == nobody {
			continue
		}
		if !r.acts() || !r.cut && s.ended[r.self] {
			s.lapse(r)
			continue
		}
		switch {
		case !r.cut:
			s.written(r.self)
			m.prolong(r, mNow.Add(m.actFor))
		case s.lost: // at any time in such a second would give too many states
			m.round(s, int8(i))
		}
	}
}

func (m *model) prolong(r *mReplica, later time.Time) {
	r.until = int8(m.prolonged(mNow, ago(-r.until), later).Sub(mNow) / time.Second)
}

// hold lets a replica without the store act on promises.
func (m *model) hold(r *mReplica) {
	var others []sight
	for x, k := range r.sights {
		if k.known && int8(x) != r.self {
			others = append(others, k.real())
		}
	}
	m.prolong(r, m.heldUntil(mNow, others))
}

// ask lets a replica ask an incarnation for its promise.
func (m *model) ask(s *mState, i, x int8) {
	r, to := &s.replicas[i], &s.replicas[s.owner[x]]
	switch {
	case !s.reach(i, s.owner[x]) || to.paused:
		return
	case to.down || to.self != x:
		r.sights[x].refuses = true
	}
	if to.down {
		return
	}
	if to.self != x { // it names itself alone
		if to.self != nobody && !r.sights[to.self].known {
			r.sights[to.self] = mSight{promised: aged, held: aged, known: true}
		}
		return
	}
	for y, k := range to.sights { // it names those that it knows
		if k.known && !k.ended && int8(y) != r.self && !r.sights[y].known {
			r.sights[y] = mSight{promised: aged, held: aged, known: true}
		}
	}
	k := &to.sights[r.self]
	if !k.known {
		*k = mSight{promised: aged, held: aged, known: true}
	}
	if !k.ended {
		k.promised, k.refuses = 0, false
		r.sights[x].held = 0
	}
}

// round lets a replica ask all others at once. If it asked one after the other it would act as long, and the later
// promises would be longer.
func (m *model) round(s *mState, i int8) {
	r := &s.replicas[i]
	for x := range int8(mIncarnations) {
		if k := r.sights[x]; k.known && x != r.self && !k.ended && s.owner[x] != i {
			m.ask(s, i, x)
		}
	}
	m.hold(r)
}

// settle lets a replica ask an incarnation whether it still acts, and begin to fence it if not.
func (m *model) settle(s *mState, i, x int8) {
	r := &s.replicas[i]
	k := &r.sights[x]
	unanswered := false
	if k.real().standing(mNow) == silent {
		to := &s.replicas[s.owner[x]]
		unanswered = true
		if s.reach(i, s.owner[x]) && !to.paused {
			unanswered = to.down
			k.refuses = to.down || to.self != x
			if to.self != x && !to.down {
				unanswered = true
			}
		}
	}
	if m.mayFence(k.real(), mNow, unanswered) {
		r.fencing, r.fenceRevision = x, k.revision
	}
}

// fence lets a replica's write that ends an incarnation arrive.
func (m *model) fence(s *mState, i int8) {
	r := &s.replicas[i]
	x := r.fencing
	r.fencing = nobody
	switch {
	case r.cut:
	case !m.ends:
		r.sights[x].ended = true
	case r.fenceRevision && !s.ended[x] || !m.compares:
		s.ended[x] = true
		s.written(x)
		s.sees(r, x)
	default:
		r.sights[x].revision = false
		s.sees(r, x)
	}
}

// join gives a replica a new incarnation, which makes itself known.
func (m *model) join(s *mState, i, x int8) {
	r := &s.replicas[i]
	if r.down { // a new process
		*r = mReplica{isolated: r.isolated, late: r.late, lateRevision: r.lateRevision}
		for y := range r.sights {
			r.sights[y] = mSight{seen: aged, promised: aged, held: aged}
			s.sees(r, int8(y))
		}
	}
	r.self, r.until, r.cache, r.fencing = x, 5, untaken, nobody
	r.sights[x] = mSight{seen: aged, promised: aged, held: aged}
	s.owner[x] = i
	s.written(x)
	for y := range s.owner {
		if s.owner[y] != nobody && s.owner[y] != i && r.sights[y].known && !r.sights[y].ended {
			m.ask(s, i, int8(y))
		}
	}
}

type mEvent struct {
	format string
	a, b   int8
	do     func(*mState)
}

func (e mEvent) String() string {
	return fmt.Sprintf(e.format, []any{e.a, e.b}[:strings.Count(e.format, "%d")]...)
}

// events returns the events that may come next.
func (m *model) events(s *mState) []mEvent {
	events := make([]mEvent, 1, 32)
	events[0] = mEvent{format: "a second", do: m.tick}
	add := func(f func(*mState), format string, args ...int8) {
		e := mEvent{format: format, do: f}
		if len(args) > 0 {
			e.a = args[0]
		}
		if len(args) > 1 {
			e.b = args[1]
		}
		events = append(events, e)
	}
	fault := func(i int8, f func(*mReplica), name string) {
		if m.allowed(s, name) {
			add(func(s *mState) { s.faults--; f(&s.replicas[i]) }, name, i)
		}
	}
	if s.lost {
		add((*mState).storeReturns, "the store returns")
	} else if m.allowed(s, "the store is lost") {
		add((*mState).storeLost, "the store is lost")
	}
	unused := int8(slices.Index(s.owner[:m.incs], nobody))
	unsure := slices.ContainsFunc(s.replicas[:], func(r mReplica) bool {
		return !r.down && r.self != nobody && (r.isolated || r.paused)
	})
	for i := range int8(mReplicas) {
		r := &s.replicas[i]
		if r.late != nobody {
			add(func(s *mState) { s.arrive(i) }, "the write of %d arrives", i)
		}
		if r.down {
			if unused != nobody && !unsure && !r.isolated {
				add(func(s *mState) { m.join(s, i, unused) }, "%d restarts as %d", i, unused)
			}
			continue
		}
		if r.paused {
			add(func(s *mState) { s.resume(i) }, "%d resumes", i)
			continue
		}
		fault(i, func(r *mReplica) {
			*r = mReplica{down: true, isolated: r.isolated, self: nobody, fencing: nobody, late: nobody}
		}, "%d crashes")
		fault(i, func(r *mReplica) { r.paused = true }, "%d pauses")
		m.faults(s, i, fault, add)
		if r.self == nobody {
			if unused != nobody && !unsure && !r.cut && !r.isolated {
				add(func(s *mState) { m.join(s, i, unused) }, "%d rejoins as %d", i, unused)
			}
			continue
		}
		if r.acts() {
			m.work(s, i, add)
		}
	}
	return events
}

// allowed reports whether a fault may happen.
func (m *model) allowed(s *mState, name string) bool {
	return s.faults > 0 && (m.only == nil || slices.ContainsFunc(m.only, func(o string) bool { return strings.Contains(name, o) }))
}

func (s *mState) storeLost() {
	s.faults--
	s.lost = true
	for i := range s.replicas {
		s.replicas[i].cut = true
	}
}

func (s *mState) storeReturns() {
	s.lost = false
	for i := range s.replicas {
		r := &s.replicas[i]
		if r.cut = r.apart; !r.cut && r.running() && !r.blind {
			s.catchUp(int8(i))
		}
	}
}

func (s *mState) resume(i int8) {
	r := &s.replicas[i]
	r.paused = false
	if !r.acts() {
		s.lapse(r)
	}
	if !r.cut && !r.blind {
		s.catchUp(i)
	}
}

func (s *mState) catchUp(i int8) {
	for x := range s.owner {
		s.sees(&s.replicas[i], int8(x))
	}
}

// faults adds the faults of the store and the network, and their ends.
func (m *model) faults(s *mState, i int8, fault func(int8, func(*mReplica), string), add func(func(*mState), string, ...int8)) {
	r := &s.replicas[i]
	switch {
	case s.lost:
	case r.apart:
		add(func(s *mState) {
			r := &s.replicas[i]
			if r.apart, r.cut = false, false; !r.blind {
				s.catchUp(i)
			}
		}, "%d reaches the store", i)
	default:
		fault(i, func(r *mReplica) { r.apart, r.cut = true, true }, "%d loses the store")
	}
	if r.isolated {
		add(func(s *mState) { s.replicas[i].isolated = false }, "%d reaches the others", i)
	} else {
		fault(i, func(r *mReplica) { r.isolated = true }, "%d loses the others")
	}
	if r.blind {
		add(func(s *mState) { s.replicas[i].blind = false; s.catchUp(i) }, "%d sees again", i)
	} else if !r.cut {
		fault(i, func(r *mReplica) { r.blind = true }, "%d sees no changes")
	}
	if !r.draining && r.self == born {
		fault(i, func(r *mReplica) { r.draining = true }, "%d drains")
	}
	if r.cache != untaken {
		fault(i, func(r *mReplica) { r.cache = untaken }, "%d forgets the session")
	}
}

// work adds the steps of the protocol that a replica which acts can take.
func (m *model) work(s *mState, i int8, add func(func(*mState), string, ...int8)) {
	r := &s.replicas[i]
	if r.cut {
		if r.until < int8(heldFor/time.Second) && !s.lost {
			add(func(s *mState) { m.round(s, i) }, "%d asks for promises", i)
		}
	} else if r.fencing == nobody {
		for x := range int8(mIncarnations) {
			k := r.sights[x]
			if k.known && x != r.self && !k.ended {
				add(func(s *mState) { m.settle(s, i, x) }, "%d looks after %d", i, x)
			}
		}
	}
	if x := r.fencing; x != nobody {
		add(func(s *mState) { m.fence(s, i) }, "%d fences %d", i, x)
		if !r.cut && m.allowed(s, "not learn") {
			add(func(s *mState) { // its answer is lost
				s.faults--
				k := s.replicas[i].sights[x]
				m.fence(s, i)
				if s.replicas[i].blind {
					s.replicas[i].sights[x] = k
				}
			}, "%d fences %d and does not learn it", i, x)
		}
	}
	m.serving(s, i, add)
}

// serving adds the steps of a request at a replica.
func (m *model) serving(s *mState, i int8, add func(func(*mState), string, ...int8)) {
	r := &s.replicas[i]
	if r.handing {
		add(func(s *mState) { m.handOver(s, i, true) }, "%d hands the session over", i)
		if m.allowed(s, "not learn") {
			add(func(s *mState) { s.faults--; m.handOver(s, i, false) }, "%d hands the session over and does not learn it", i)
		}
		return
	}
	if r.draining && !r.read && m.serves(r) && !r.cut {
		add(func(s *mState) {
			r := &s.replicas[i]
			r.handing, r.cache, r.readHome, r.readRevision = true, untaken, s.home, true
		}, "%d begins to hand the session over", i)
	}
	v := m.view(r, false)
	switch do := m.next(v, r.lives); {
	case do == serve && r.read: // only if a rule is broken
		add(func(s *mState) { s.replicas[i].read, s.replicas[i].cache = false, s.replicas[i].self }, "%d acts on what it has read", i)
	case do == pass:
		x := int8(v.home() - 1)
		to := &s.replicas[s.owner[x]]
		switch reached := s.reach(i, s.owner[x]) && !to.paused; {
		case reached && (to.down || to.self != x):
			add(func(s *mState) { s.replicas[i].sights[x].refuses = true; s.replicas[i].read = false }, "%d is refused by %d", i, x)
		case reached && to.acts() && !m.serves(to) && !r.read && !r.cut:
			add(func(s *mState) { s.look(i) }, "%d is told that the session moved, and reads", i)
		case r.read:
			add(func(s *mState) { s.replicas[i].read, s.replicas[i].cache = false, x }, "%d remembers %d", i, x)
		}
		if to := &s.replicas[s.owner[x]]; reachedForward(s, i, x) && to.acts() && !to.read && !to.cut && !m.serves(to) &&
			m.next(m.view(to, true), to.lives) == look {
			at := s.owner[x]
			add(func(s *mState) { s.look(at) }, "%d reads for %d", at, i)
		}
	case do == look && !r.cut:
		add(func(s *mState) { s.look(i) }, "%d reads", i)
		if s.before != s.home && m.allowed(s, "was there") {
			add(func(s *mState) {
				s.faults--
				s.look(i)
				s.replicas[i].readHome, s.replicas[i].readRevision = s.before, false
			}, "%d reads what was there before", i)
		}
	case do == take, do == succeed && r.sights[v.home()-1].ended:
		take := func(s *mState, remembers bool) {
			r := &s.replicas[i]
			r.read = false
			if r.cut || !r.readRevision {
				return
			}
			s.write(r.self)
			if remembers {
				r.cache = r.self
			}
		}
		add(func(s *mState) { take(s, true) }, "%d takes the session", i)
		if !r.cut && m.allowed(s, "not learn") {
			add(func(s *mState) { s.faults--; take(s, false) }, "%d takes the session and does not learn it", i)
		}
	}
}

func reachedForward(s *mState, i, x int8) bool {
	return s.reach(i, s.owner[x]) && s.replicas[s.owner[x]].self == x
}

// write changes the session's entry.
func (s *mState) write(home int8) {
	if s.home != home {
		s.home, s.before = home, s.home
	}
	for i := range s.replicas {
		s.replicas[i].readRevision, s.replicas[i].lateRevision = false, false
	}
}

func (s *mState) look(i int8) {
	r := &s.replicas[i]
	r.read, r.readHome, r.readRevision, r.cache = true, s.home, true, untaken
}

// handOver lets the write that hands a session over begin; arrives tells that it is stored at once.
func (m *model) handOver(s *mState, i int8, arrives bool) {
	r := &s.replicas[i]
	r.handing = false
	for x := range int8(mIncarnations) {
		if k := r.sights[x]; x != r.self && k.known && k.real().standing(mNow) == live {
			r.late, r.lateRevision = x, r.readRevision && !r.cut
			if arrives && s.arrive(i) {
				r.cache = x
			}
			return
		}
	}
}

// arrive lets the write that hands a session over arrive.
func (s *mState) arrive(i int8) bool {
	r := &s.replicas[i]
	x, stored := r.late, r.lateRevision
	r.late, r.lateRevision = nobody, false
	if stored {
		s.write(x)
	}
	return stored
}

// explore visits all states that can follow. It stops at the first violation.
func (m *model) explore(s mState) {
	if m.faulty != nil || m.unserved != nil {
		return
	}
	h := maphash.Comparable(m.seed, s)
	if _, ok := m.visited[h]; ok || len(m.visited) >= m.limit {
		return
	}
	m.visited[h] = struct{}{}
	serving := 0
	for i := range s.replicas {
		if m.serves(&s.replicas[i]) {
			serving++
		}
	}
	if serving > 1 {
		m.faulty = slices.Clone(m.path)
		return
	}
	if m.live && len(m.visited)%97 == 0 && !m.served(s) {
		m.unserved = slices.Clone(m.path)
		return
	}
	for _, e := range m.events(&s) {
		next := s
		e.do(&next)
		m.path = append(m.path, e)
		m.explore(next)
		m.path = m.path[:len(m.path)-1]
	}
}

// served reports whether the session is served at last if all faults end and no others follow.
func (m *model) served(s mState) bool {
	s.faults = 0
	for i := range s.replicas {
		r := &s.replicas[i]
		r.cut, r.apart, r.blind, r.isolated, s.lost = false, false, false, false, false
		if r.paused {
			s.resume(int8(i))
		} else if !r.down {
			s.catchUp(int8(i))
		}
	}
	for range 30 {
		left := false
		for i := range s.replicas {
			r := &s.replicas[i]
			if m.serves(r) {
				return true
			}
			left = left || r.acts() || slices.Contains(s.owner[:m.incs], nobody)
		}
		if !left {
			return true // nobody can join: the model has no more incarnations
		}
		done := map[string]bool{}
		for range 12 { // steps of a second, each at most once
			for _, e := range m.events(&s)[1:] {
				next := s
				e.do(&next)
				if next != s && !done[e.String()] {
					s = next
					done[e.String()] = true
					break
				}
			}
			if slices.ContainsFunc(s.replicas[:], func(r mReplica) bool { return m.serves(&r) }) {
				return true
			}
		}
		m.tick(&s)
	}
	return false
}

// exploration is a part of the model's states.
type exploration struct {
	incarnations int
	faults       int8
	only         []string // parts of the names of faults; nil = all
}

func explorations() []exploration {
	return []exploration{
		{mReplicas, 2, nil},
		{mIncarnations, 1, nil},
		{mReplicas, 3, []string{"drains", "not learn", "crashes"}},
		{mReplicas, 3, []string{"drains", "forgets", "was there"}},
		{mReplicas, 3, []string{"store is lost", "others"}},
		{mIncarnations, 2, []string{"store is lost", "others"}},
	}
}

func (e exploration) run(r rules, live bool) *model {
	m := &model{
		rules: r, seed: maphash.MakeSeed(), visited: map[uint64]struct{}{}, limit: 6_000_000, live: live,
		incs: e.incarnations, only: e.only,
	}
	m.explore(mStart(e.faults))
	return m
}

func TestModel(t *testing.T) {
	for _, e := range explorations() {
		start := time.Now()
		m := e.run(productRules(), true)
		t.Logf("%+v: %d states in %v", e, len(m.visited), time.Since(start))
		if m.faulty != nil {
			t.Errorf("two replicas act for the session after: %v", m.faulty)
		}
		if m.unserved != nil {
			t.Errorf("nobody ever serves the session after: %v", m.unserved)
		}
		if len(m.visited) >= m.limit {
			t.Error("the bound of states is reached")
		}
	}
}

// TestModel_FindsFaults breaks each rule of the protocol: the model must notice.
func TestModel_FindsFaults(t *testing.T) {
	for name, breaks := range map[string]func(*rules){
		"a lease is used longer than others wait": func(r *rules) { r.actFor = silentFor + 2*time.Second },
		"a promise is used longer than it is kept": func(r *rules) {
			r.heldUntil = func(now time.Time, others []sight) time.Time {
				return heldUntil(now, others).Add(promiseFor)
			}
		},
		"one promise is enough": func(r *rules) {
			r.heldUntil = func(now time.Time, others []sight) time.Time {
				until := now
				for _, s := range others {
					if at := s.held.Add(heldFor); at.After(until) {
						until = at
					}
				}
				return until
			}
		},
		"a replica breaks its promise": func(r *rules) {
			r.mayFence = func(s sight, now time.Time, _ bool) bool {
				s.promised = time.Time{}
				return s.mayFence(now, true)
			}
		},
		"a replica fences at once what does not answer": func(r *rules) {
			r.mayFence = func(s sight, _ time.Time, _ bool) bool { return !s.ended }
		},
		"a fence is not compared":         func(r *rules) { r.compares = false },
		"a replica takes without a fence": func(r *rules) { r.ends = false },
		"a replica acts on what it has read": func(r *rules) {
			r.next = func(v view, lives func(uint64) bool) step {
				do := v.next(lives)
				if do == take && v.home() == v.self {
					return serve
				}
				return do
			}
		},
		"a draining replica takes all that was born there for its own": func(r *rules) {
			r.next = func(v view, lives func(uint64) bool) step {
				v.draining = false
				return v.next(lives)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := productRules()
			breaks(&r)
			for _, e := range explorations() {
				if m := e.run(r, false); m.faulty != nil {
					t.Logf("found after %v", m.faulty)
					return
				}
			}
			t.Error("the model does not find the fault")
		})
	}
}
