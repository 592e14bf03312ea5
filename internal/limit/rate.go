// Package limit limits the resources of callers: [Rate] their calls per time, [Budget] their requests in flight and
// the bytes held for them, [Connections] their connections, and [Memory] the memory of the process. All are safe for
// concurrent use.
package limit

import (
	"container/list"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxIDs limits the callers that a Rate remembers.
const maxIDs = 10_000

// Rate is a sliding-window rate limiter. It stores the times of accepted calls, so that in every window of length Per
// at most Requests calls of one caller pass. Refused calls do not count. It is exact and safe for concurrent use.
//
// It remembers maxIDs callers and forgets those without a call in the window. If all of them are active, a new caller
// replaces the one whose last accepted call is the oldest, which then starts afresh. No caller is refused because of
// others.
type Rate struct {
	now  func() time.Time
	most int // maximum number of callers

	mu     sync.Mutex
	config RateConfig
	byID   map[string]*list.Element // of *window
	recent *list.List               // by last accepted call, oldest first

	refused atomic.Int64
	share   *share // with other replicas; nil = none
}

// window holds the times of one caller's accepted calls in a ring.
type window struct {
	id    string
	times []time.Time // at most the limit
	next  int         // once the ring is full, index of the oldest call
	reported
}

// New returns a limiter; now is time.Now except in tests. If Requests or Per is zero or negative, there is no limit.
func New(cfg RateConfig, now func() time.Time) *Rate {
	r := &Rate{now: now, most: maxIDs}
	r.Configure(cfg)
	return r
}

// Configure replaces the limit. If it changes, all callers start afresh.
func (r *Rate) Configure(cfg RateConfig) {
	cfg.Tools = slices.Clone(cfg.Tools)
	r.mu.Lock()
	defer r.mu.Unlock()
	if same := r.byID != nil && cfg.Requests == r.config.Requests && cfg.Per == r.config.Per; !same {
		r.byID, r.recent = map[string]*list.Element{}, list.New()
	}
	r.config = cfg
}

// Applies reports whether calls of the tool are limited.
func (r *Rate) Applies(tool string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.config.Tools, tool)
}

// Allow accepts and counts a call of the caller id, or refuses it and returns the time until one would be accepted.
// With Share it may wait for a report of the caller's former calls.
func (r *Rate) Allow(id string) (ok bool, retryAfter time.Duration) {
	for deadline := time.Now().Add(reportTimeout); ; {
		ok, retryAfter, report := r.judge(id, time.Now().Before(deadline))
		if report == nil {
			return ok, retryAfter
		}
		await(report, deadline)
	}
}

// judge is Allow, except that it returns the report to wait for if patient.
func (r *Rate) judge(id string, patient bool) (ok bool, retryAfter time.Duration, report <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config.Requests <= 0 || r.config.Per <= 0 {
		return true, 0, nil
	}
	now := r.now()
	r.forget(now)
	element := r.byID[id]
	if element == nil {
		if len(r.byID) >= r.most {
			r.remove(r.recent.Front())
		}
		element = r.recent.PushBack(&window{id: id})
		r.byID[id] = element
	}
	w := element.Value.(*window)
	if wait := w.free(now, r.config).Sub(now); wait > 0 {
		r.refused.Add(1)
		return false, wait, nil
	}
	if s := r.share; s != nil && patient && w.accepted > w.known {
		if s.start(w); w.done != nil {
			return false, 0, w.done
		}
	}
	w.accept(now, r.config.Requests)
	if r.share != nil {
		r.share.start(w)
	}
	r.recent.MoveToBack(element)
	return true, 0, nil
}

// window returns the window of a caller; nil if it has none. The caller holds r.mu.
func (r *Rate) window(id string) *window {
	if element := r.byID[id]; element != nil {
		return element.Value.(*window)
	}
	return nil
}

// accept counts a call.
func (w *window) accept(now time.Time, most int) {
	w.accepted++
	if len(w.times) < most {
		w.times = append(w.times, now)
		return
	}
	w.times[w.next] = now
	w.next = (w.next + 1) % most
}

// Refused returns the number of calls refused so far.
func (r *Rate) Refused() int64 { return r.refused.Load() }

// forget drops callers without a call in the window, at most two per invocation, which spreads the work and is faster
// than callers are added.
func (r *Rate) forget(now time.Time) {
	for range 2 {
		oldest := r.recent.Front()
		if oldest == nil || now.Sub(oldest.Value.(*window).last()) < r.config.Per {
			return
		}
		r.remove(oldest)
	}
}

func (r *Rate) remove(element *list.Element) {
	delete(r.byID, element.Value.(*window).id)
	r.recent.Remove(element)
}

// last returns the time of the last accepted call. A window is never empty outside of Allow.
func (w *window) last() time.Time {
	return w.at(len(w.times) - 1)
}

// Exceeded is the beginning of Message.
const Exceeded = "Rate limit exceeded"

// Message returns the error for a refused call with the time to wait in whole seconds, rounded up.
func Message(retryAfter time.Duration) string {
	seconds := max(1, int64((retryAfter+time.Second-1)/time.Second))
	if seconds == 1 {
		return Exceeded + ": retry in 1 second"
	}
	return fmt.Sprintf("%s: retry in %d seconds", Exceeded, seconds)
}
