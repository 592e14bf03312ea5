package limit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	shards    = 16          // shards of the caller table, to reduce lock contention
	keptShare = 100         // 1/keptShare of the requests is reserved for callers with fewer in flight
	askTime   = time.Second // how long another caller's request counts as demand
)

// Bounds are the limits of a Budget.
type Bounds struct {
	Requests int   // in flight for a single active caller; all callers together may have 1.5 times as many
	Share    int   // in flight for one caller while others are active; at most, and by default, half of Requests
	Total    int64 // bytes held for all callers
	Own      int64 // bytes held for one caller
	Floor    int64 // bytes guaranteed to a caller even if Total is exhausted
	Pace     int64 // bytes a second; a caller that moves more takes turns while others are active, see Turn; 0 = no limit
	Turns    int   // that such a caller has at a time
}

// Budget limits what the router holds for callers: requests in flight, and the bytes of bodies, queued messages,
// results and replay logs. There are limits per caller, so that one cannot exhaust what others need, and in total.
// Beyond them Budget refuses immediately; only Turn waits. It is safe for concurrent use.
//
// One caller may have Requests in flight while no other is active, else Share. Callers below their share are admitted
// up to 1.5 × Requests in total.
type Budget struct {
	bounds Bounds
	half   int64 // half of the requests
	share  int64 // requests of one caller while others are active
	kept   int64 // requests reserved for callers with few
	memory *Memory

	inFlight atomic.Int64
	held     atomic.Int64
	dropped  atomic.Int64 // messages
	askers   askers
	pace     pace
	seed     maphash.Seed
	shards   [shards]shard
}

// shard is one part of the caller table.
type shard struct {
	mu sync.Mutex
	by map[string]account // callers with requests or bytes
	_  [40]byte           // fills a cache line
}

// account holds the requests and bytes of a caller.
type account struct {
	requests int64
	bytes    int64
}

// NewBudget returns a Budget. It admits no requests while memory is short; memory may be nil.
func NewBudget(bounds Bounds, memory *Memory) *Budget {
	most := int64(bounds.Requests)
	b := &Budget{bounds: bounds, half: max(1, most/2), kept: most / keptShare, memory: memory, seed: maphash.MakeSeed()}
	b.share = b.half
	if bounds.Share > 0 {
		b.share = min(b.half, int64(bounds.Share))
	}
	for i := range b.shards {
		b.shards[i].by = map[string]account{}
	}
	b.pace = pace{rate: bounds.Pace, turns: bounds.Turns, began: time.Now(), by: map[string]*mover{}}
	return b
}

// Enter admits a request of n bytes or reports false. After admission, Leave must be called.
func (b *Budget) Enter(caller string, n int) bool {
	b.pace.count(caller, n)
	if b.Short() {
		return false
	}
	s := b.shard(caller)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.by[caller]
	for {
		total := b.inFlight.Load()
		if !b.admits(caller, a.requests, total+1) || !b.fits(a.bytes, n, 1) {
			return false
		}
		if b.inFlight.CompareAndSwap(total, total+1) {
			break
		}
	}
	s.by[caller] = account{a.requests + 1, a.bytes + int64(n)}
	b.held.Add(int64(n))
	return true
}

// admits reports whether a caller with own requests in flight may start another one. total includes it.
func (b *Budget) admits(caller string, own, total int64) bool {
	if total <= b.share {
		return true
	}
	alone := b.askers.alone(caller)
	if own < b.share {
		most := int64(b.bounds.Requests) + b.half
		if own >= b.kept {
			most -= b.kept
		}
		return total <= most
	}
	return alone && total <= int64(b.bounds.Requests)
}

// Fits reports whether Reserve would charge n bytes to a caller.
func (b *Budget) Fits(caller string, n int) bool {
	s := b.shard(caller)
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.fits(s.by[caller].bytes, n, 1)
}

// Leave ends a request that Enter admitted and releases n bytes.
func (b *Budget) Leave(caller string, n int) {
	b.change(caller, -1, -n)
	b.inFlight.Add(-1)
}

// Reserve charges n bytes to a caller or reports false. After success, Release must be called.
func (b *Budget) Reserve(caller string, n int) bool { return b.reserve(caller, n, 1) }

// ReserveSpare is like Reserve for data that can be dropped: it uses only half of the limits.
func (b *Budget) ReserveSpare(caller string, n int) bool { return b.reserve(caller, n, 2) }

func (b *Budget) reserve(caller string, n int, part int64) bool {
	b.pace.count(caller, n) // also if it is refused: the bytes have come
	s := b.shard(caller)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.by[caller]
	if !b.fits(a.bytes, n, part) {
		return false
	}
	a.bytes += int64(n)
	s.by[caller] = a
	b.held.Add(int64(n))
	return true
}

// fits reports whether n more bytes fit into 1/part of the limits for a caller that holds own bytes.
func (b *Budget) fits(own int64, n int, part int64) bool {
	own += int64(n)
	return own <= b.bounds.Own/part && (own <= b.bounds.Floor || b.held.Load()+int64(n) <= b.bounds.Total/part)
}

// Charge charges n bytes to a caller regardless of the limits. It is for small messages that must not be lost and are
// limited otherwise. Release must be called afterwards.
func (b *Budget) Charge(caller string, n int) {
	b.pace.count(caller, n)
	b.change(caller, 0, n)
}

// Release releases n bytes of a caller.
func (b *Budget) Release(caller string, n int) { b.change(caller, 0, -n) }

func (b *Budget) change(caller string, requests int64, n int) {
	s := b.shard(caller)
	s.mu.Lock()
	a := s.by[caller]
	if a = (account{a.requests + requests, a.bytes + int64(n)}); a == (account{}) {
		delete(s.by, caller)
	} else {
		s.by[caller] = a
	}
	s.mu.Unlock()
	b.held.Add(int64(n))
}

// Short reports whether the memory of the process is short.
func (b *Budget) Short() bool { return b.memory.Short(b.held.Load()) }

// Held returns the bytes held for all callers.
func (b *Budget) Held() int64 { return b.held.Load() }

// Drop counts a message dropped in favor of newer ones.
func (b *Budget) Drop() { b.dropped.Add(1) }

// Dropped returns the number of dropped messages.
func (b *Budget) Dropped() int64 { return b.dropped.Load() }

// InFlight returns the number of admitted requests.
func (b *Budget) InFlight() int { return int(b.inFlight.Load()) }

func (b *Budget) shard(caller string) *shard {
	return &b.shards[maphash.String(b.seed, caller)%shards]
}

// askers remembers the last two callers that started a request while many were in flight.
type askers struct {
	mu           sync.Mutex
	last, before string
	asked        time.Time // time of before's request
	lastAsked    time.Time
}

// alone records a request of a caller and reports whether no other caller has made one within askTime.
func (a *askers) alone(caller string) bool {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != caller {
		a.before, a.asked = a.last, a.lastAsked
		a.last = caller
	}
	a.lastAsked = now
	return a.before == "" || now.Sub(a.asked) >= askTime
}
