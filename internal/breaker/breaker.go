// Package breaker is a circuit breaker (M. Nygard, Release It!, 2007): after several consecutive calls have failed to
// reach a peer, it refuses further calls for a while, and then lets single calls try.
//
// [Breaker.Allow] precedes a call; [Breaker.Succeeded] or [Breaker.Failed] reports its outcome. A Breaker is safe for
// concurrent use and has no goroutines. While closed, it costs two atomic loads per call.
package breaker

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// States of a Breaker.
const (
	Closed   = "closed"    // calls go through
	Open     = "open"      // calls are refused at once
	HalfOpen = "half-open" // one trial call at a time tests the peer
)

// Breaker is the circuit breaker of one peer. The zero value is closed. The exported fields are set before its use.
type Breaker struct {
	Limit   int           // consecutive failures that open it; 0 = five
	Pause   time.Duration // first open period, and pause between trial calls; 0 = one second
	Longest time.Duration // bound of the period, which doubles with each failed trial; 0 = eight seconds

	failures atomic.Int32 // consecutive
	tripped  atomic.Bool
	counted  atomic.Uint64 // total failures

	mu        sync.Mutex
	pause     time.Duration
	until     time.Time // open until then, half-open afterwards
	next      time.Time // when the next call may try
	unreached bool      // the last failure was a failed connection
}

func (b *Breaker) first() time.Duration { return cmp.Or(b.Pause, time.Second) }

// Allow reports whether a call may go to the peer, or else the time until a trial call. After an allowed call, call
// Succeeded or Failed, or neither if the outcome says nothing about the peer.
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
	b.next = now.Add(b.first())
	return true, 0
}

// Refuses is like Allow, but never admits a trial call.
func (b *Breaker) Refuses() (refused bool, wait time.Duration) {
	if !b.tripped.Load() {
		return false, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = time.Until(b.next)
	return wait > 0, wait
}

// Succeeded records that the peer answered a call.
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

// Failures returns the total number of failures.
func (b *Breaker) Failures() uint64 { return b.counted.Load() }

// Failed records that a call could not reach the peer or lost it, and reports whether that opens the breaker. before
// is the value of Failures when the call began: concurrent failures count as one.
func (b *Breaker) Failed(before uint64, unreached bool) (opens bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.counted.CompareAndSwap(before, before+1) {
		return false
	}
	b.unreached = unreached
	if int(b.failures.Add(1)) < cmp.Or(b.Limit, 5) {
		return false
	}
	tripped := b.tripped.Swap(true)
	b.pause = min(max(2*b.pause, b.first()), cmp.Or(b.Longest, 8*time.Second))
	spread := time.Duration(rand.Int64N(int64(b.pause)/5 + 1)) // keeps many routers from retrying simultaneously
	b.until = time.Now().Add(b.pause + spread)
	b.next = b.until
	return !tripped
}

// Reached records a successful connection. If the last failure was a failed connection, the next call may try at
// once.
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
