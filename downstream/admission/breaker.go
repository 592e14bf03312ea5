package admission

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// States of a Breaker.
const (
	Closed   = "closed"    // calls go through
	Open     = "open"      // calls are refused at once
	HalfOpen = "half-open" // one call at a time tries whether the server is back
)

const (
	breakerFailures = 5               // in a row open it
	breakerPause    = time.Second     // of the first open state, and between two trial calls
	breakerMaxPause = 8 * time.Second // longest pause; it doubles with each failed trial
)

// Breaker is the circuit breaker of a server (M. Nygard, Release It!, 2007): after several calls in a row have failed
// to reach the server, others are refused at once. The zero value is closed. It is safe for concurrent use. While it
// is closed, it costs two atomic loads a call.
type Breaker struct {
	failures atomic.Int32 // in a row
	tripped  atomic.Bool
	counted  atomic.Uint64 // failures ever

	mu        sync.Mutex
	pause     time.Duration
	until     time.Time // open until then, half-open afterwards
	next      time.Time // when the next call may try
	unreached bool      // the last failure was that of a connection
}

// Allow reports whether a call may go to the server, or else the time until one may try. After an allowed call, call
// Succeeded or Failed, or neither if the call says nothing about the server.
func (b *Breaker) Allow() (ok bool, wait time.Duration) {
	if !b.tripped.Load() {
		return true, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if wait := b.next.Sub(now); wait > 0 {
		return false, wait
	}
	b.next = now.Add(breakerPause)
	return true, 0
}

// Refuses is Allow without a trial call.
func (b *Breaker) Refuses() (refused bool, wait time.Duration) {
	if !b.tripped.Load() {
		return false, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = time.Until(b.next)
	return wait > 0, wait
}

// Succeeded records that the server answered a call.
func (b *Breaker) Succeeded() {
	if b.failures.Load() == 0 && !b.tripped.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures.Store(0)
	b.tripped.Store(false)
	b.pause = 0
}

// Failures returns how many failures were counted so far.
func (b *Breaker) Failures() uint64 { return b.counted.Load() }

// Failed records that a call could not reach the server or lost it, and reports whether that opens the breaker.
// before is the value of Failures when the call began: concurrent calls that fail together count as one.
func (b *Breaker) Failed(before uint64, unreached bool) (opens bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.counted.CompareAndSwap(before, before+1) {
		return false
	}
	b.unreached = unreached
	if b.failures.Add(1) < breakerFailures {
		return false
	}
	tripped := b.tripped.Swap(true)
	b.pause = min(max(2*b.pause, breakerPause), breakerMaxPause)
	spread := time.Duration(rand.Int64N(int64(b.pause)/5 + 1)) // so that many routers do not come back at once
	b.until = time.Now().Add(b.pause + spread)
	b.next = b.until
	return !tripped
}

// Reached records a successful connection: if the connection had failed, the next call may try at once.
func (b *Breaker) Reached() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tripped.Load() && b.unreached {
		b.until, b.next = time.Now(), time.Now()
	}
}

// State returns Closed, Open or HalfOpen.
func (b *Breaker) State() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.tripped.Load():
		return Closed
	case time.Now().Before(b.until):
		return Open
	}
	return HalfOpen
}
