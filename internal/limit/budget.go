package limit

import (
	"sync"
	"time"
)

const (
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
}

// Budget limits what the router holds for callers: requests in flight, and the bytes of bodies, queued messages,
// results and replay logs. There are limits per caller, so that one cannot exhaust what others need, and in total.
// Beyond them Budget refuses immediately. It is safe for concurrent use.
//
// One caller may have Requests in flight while no other is active, else Share. Callers below their share are admitted
// up to 1.5 × Requests in total.
type Budget struct {
	bounds Bounds
	half   int // half of the requests
	share  int // requests of one caller while others are active
	kept   int // requests reserved for callers with few
	memory *Memory

	mu       sync.Mutex
	by       map[string]account // callers with requests or bytes
	inFlight int
	held     int64
	dropped  int64 // messages
	askers   askers
}

// account holds the requests and bytes of a caller.
type account struct {
	requests int
	bytes    int64
}

// NewBudget returns a Budget. It admits no requests while memory is short; memory may be nil.
func NewBudget(bounds Bounds, memory *Memory) *Budget {
	half := max(1, bounds.Requests/2)
	b := &Budget{bounds: bounds, half: half, share: half, kept: bounds.Requests / keptShare, memory: memory,
		by: map[string]account{}}
	if bounds.Share > 0 {
		b.share = min(half, bounds.Share)
	}
	return b
}

// Enter admits a request of n bytes or reports false. After admission, Leave must be called.
func (b *Budget) Enter(caller string, n int) bool {
	if b.Short() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.by[caller]
	if !b.admits(caller, a.requests) || !b.fits(a.bytes, n, 1) {
		return false
	}
	b.change(caller, 1, n)
	return true
}

// admits reports whether a caller with own requests in flight may start another one.
func (b *Budget) admits(caller string, own int) bool {
	total := b.inFlight + 1
	if total <= b.share {
		return true
	}
	alone := b.askers.alone(caller)
	if own < b.share {
		most := b.bounds.Requests + b.half
		if own >= b.kept {
			most -= b.kept
		}
		return total <= most
	}
	return alone && total <= b.bounds.Requests
}

// Leave ends a request that Enter admitted and releases n bytes.
func (b *Budget) Leave(caller string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change(caller, -1, -n)
}

// Fits reports whether Reserve would charge n bytes to a caller.
func (b *Budget) Fits(caller string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fits(b.by[caller].bytes, n, 1)
}

// Reserve charges n bytes to a caller or reports false. After success, Release must be called.
func (b *Budget) Reserve(caller string, n int) bool { return b.reserve(caller, n, 1) }

// ReserveSpare is like Reserve for data that can be dropped: it uses only half of the limits.
func (b *Budget) ReserveSpare(caller string, n int) bool { return b.reserve(caller, n, 2) }

func (b *Budget) reserve(caller string, n int, part int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fits(b.by[caller].bytes, n, part) {
		return false
	}
	b.change(caller, 0, n)
	return true
}

// fits reports whether n more bytes fit into 1/part of the limits for a caller that holds own bytes.
func (b *Budget) fits(own int64, n int, part int64) bool {
	own += int64(n)
	return own <= b.bounds.Own/part && (own <= b.bounds.Floor || b.held+int64(n) <= b.bounds.Total/part)
}

// Charge charges n bytes to a caller regardless of the limits. It is for small messages that must not be lost and are
// limited otherwise. Release must be called afterwards.
func (b *Budget) Charge(caller string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change(caller, 0, n)
}

// Release releases n bytes of a caller.
func (b *Budget) Release(caller string, n int) { b.Charge(caller, -n) }

func (b *Budget) change(caller string, requests, n int) {
	a := b.by[caller]
	if a = (account{a.requests + requests, a.bytes + int64(n)}); a == (account{}) {
		delete(b.by, caller)
	} else {
		b.by[caller] = a
	}
	b.inFlight += requests
	b.held += int64(n)
}

// Short reports whether the memory of the process is short.
func (b *Budget) Short() bool { return b.memory.Short(b.Held()) }

// Held returns the bytes held for all callers.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// InFlight returns the number of admitted requests.
func (b *Budget) InFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inFlight
}

// Drop counts a message dropped in favor of newer ones.
func (b *Budget) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped++
}

// Dropped returns the number of dropped messages.
func (b *Budget) Dropped() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// askers remembers the last two callers that started a request while many were in flight.
type askers struct {
	last, before string
	asked        time.Time // time of before's request
	lastAsked    time.Time
}

// alone records a request of a caller and reports whether no other caller has made one within askTime.
func (a *askers) alone(caller string) bool {
	now := time.Now()
	if a.last != caller {
		a.before, a.asked = a.last, a.lastAsked
		a.last = caller
	}
	a.lastAsked = now
	return a.before == "" || now.Sub(a.asked) >= askTime
}
