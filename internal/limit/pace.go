package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	paceBurst = 100 * time.Millisecond // a caller may be ahead of the pace by that without taking turns
	paceMost  = time.Second            // a caller takes turns for that long at most after its last message
	turnTime  = 50 * time.Millisecond  // a turn ends after that although its request goes on: it mostly waits for others
	turnWait  = time.Second            // longest wait for a turn
	freeBytes = 4 << 10                // the bytes of smaller messages are not counted: they are the least of their cost
)

// pace knows which callers move more bytes than rate. What a caller moves takes time at that rate; until that time is
// over the caller is remembered.
type pace struct {
	rate  int64 // bytes a second; 0 = any number
	turns int   // of one caller at a time
	began time.Time
	until atomic.Int64 // when no caller is ahead any more, in nanoseconds since began; 0 if none was

	mu    sync.Mutex
	by    map[string]*mover
	swept time.Duration // when the callers that need not be remembered were last forgotten
}

// mover is a caller that moves bytes.
type mover struct {
	until time.Duration // when what it moved is over
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
	m := p.by[caller]
	if m == nil {
		m = &mover{turns: make(chan struct{}, p.turns)}
		p.by[caller] = m
	}
	m.until = min(max(m.until, now)+cost, now+paceBurst+paceMost)
	if m.until > now+paceBurst && int64(m.until) > p.until.Load() {
		p.until.Store(int64(m.until))
	}
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

// Turn waits for the caller's turn if the caller moves more than Pace bytes a second while others ask. It then has
// Turns turns at a time, so that the other processors serve others at once. A turn ends with done, which may be called
// again, or after 50 ms. Turn returns when the turn has come, after a second, or when ctx ends, whichever is first.
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
