package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	paceBurst = 100 * time.Millisecond // how far a caller may be ahead of the pace before it takes turns
	paceMost  = time.Second            // how long a caller takes turns after its last message, at most
	turnTime  = 50 * time.Millisecond  // longest turn; a longer request mostly waits for its server
	turnWait  = time.Second            // longest wait for a turn
	freeBytes = 4 << 10                // smaller messages do not count: their bytes are the least of their cost
	maxMovers = 10_000                 // callers remembered; further ones take no turns
)

// pace tracks which callers move more than rate bytes a second. Each message adds the time that its bytes take at that
// rate. A caller is remembered until its time has passed.
type pace struct {
	rate  int64 // bytes a second; 0 = no limit
	turns int   // concurrent turns of one caller
	began time.Time
	until atomic.Int64 // end of the time of all callers ahead of the pace, in nanoseconds since began; 0 = none so far

	mu    sync.Mutex
	by    map[string]*mover
	swept time.Duration // last removal of callers whose time has passed
}

// mover is a caller that moves bytes.
type mover struct {
	until time.Duration // end of the time of its messages, since began
	turns chan struct{} // holds a token for each turn
}

// count adds n bytes to what a caller moves.
func (p *pace) count(caller string, n int) {
	if n <= freeBytes || p.rate == 0 {
		return
	}
	now := time.Since(p.began)
	cost := time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	m := p.by[caller]
	if m == nil && len(p.by) >= maxMovers {
		return
	}
	if m == nil {
		m = &mover{turns: make(chan struct{}, p.turns)}
		p.by[caller] = m
	}
	m.until = min(max(m.until, now)+cost, now+paceBurst+paceMost)
	if m.until > now+paceBurst && int64(m.until) > p.until.Load() {
		p.until.Store(int64(m.until))
	}
}

// sweep forgets callers whose time has passed, once a second. p.mu is held.
func (p *pace) sweep(now time.Duration) {
	if now-p.swept < paceMost {
		return
	}
	p.swept = now
	for caller, m := range p.by {
		if m.until <= now {
			delete(p.by, caller)
		}
	}
}

// ahead returns the turns of a caller that moves more bytes than the pace; nil if it does not.
func (p *pace) ahead(caller string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.by[caller]; m != nil && m.until > time.Since(p.began)+paceBurst {
		return m.turns
	}
	return nil
}

// Turn waits for a turn if the caller moves more than Pace bytes a second while others ask. Such a caller has at most
// Turns turns at a time, which leaves processors to the others. A turn ends when done is called, or after 50 ms; done
// may be called repeatedly. Turn returns when the turn begins, after a second, or when ctx ends, whichever is first.
func (b *Budget) Turn(ctx context.Context, caller string) (done func()) {
	none := func() {}
	until := b.pace.until.Load()
	if until == 0 || int64(time.Since(b.pace.began)) >= until || b.askers.alone(caller) {
		return none
	}
	turns := b.pace.ahead(caller)
	if turns == nil {
		return none
	}
	timeout := time.NewTimer(turnWait)
	defer timeout.Stop()
	select {
	case turns <- struct{}{}:
	case <-timeout.C:
		return none
	case <-ctx.Done():
		return none
	}
	end := time.AfterFunc(turnTime, func() { <-turns })
	return func() {
		if end.Stop() {
			<-turns
		}
	}
}
