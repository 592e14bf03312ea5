package admission

import (
	"container/list"
	"context"
	"time"
)

// Permit lets one call begin. The zero value is ready for Enter. A Permit is used once.
type Permit struct {
	Waited time.Duration // time in Enter; set by its caller

	q        *Queue
	share    *share
	state    permitState
	suspends int           // Suspend calls not yet resumed
	at       *list.Element // in Queue.returning; nil if it is not there
	back     chan struct{} // closed when the call leaves Queue.returning
}

type permitState uint8

const (
	outside permitState = iota // before Enter and after Leave
	holding
	suspended
)

// Leave ends the call's stay in the queue. Outside of a queue it does nothing.
func (p *Permit) Leave() {
	q := p.q
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := p.share
	switch p.state {
	case outside:
		return
	case holding:
		q.free(s)
	case suspended:
		q.suspended--
		p.stopReturn()
	}
	p.share, p.state = nil, outside
	q.end(s)
	q.settle()
}

// Suspend gives up the permit of a call while the call waits for someone else, such as a user. resume takes a permit
// again, ahead of all calls that have not begun. It waits for a permit until ctx ends, and must be called once. Beyond
// the limit of suspended calls, a call keeps its permit. Suspensions may overlap: the last resume counts.
func (p *Permit) Suspend() (resume func(ctx context.Context)) {
	q := p.q
	if q == nil {
		return func(context.Context) {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state == outside {
		return func(context.Context) {}
	}
	p.suspends++
	if p.state == holding && q.suspended < q.limit {
		p.state = suspended
		q.suspended++
		q.free(p.share)
	}
	return func(ctx context.Context) { p.resume(ctx) }
}

// resume takes a permit again, see Suspend.
func (p *Permit) resume(ctx context.Context) {
	q := p.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.suspends--; p.suspends > 0 || p.state != suspended {
		return
	}
	if q.held < q.limit {
		p.restore()
		return
	}
	if p.at == nil {
		p.at, p.back = q.returning.PushBack(p), make(chan struct{})
	}
	back := p.back
	q.mu.Unlock()
	select {
	case <-back:
		q.mu.Lock()
	case <-ctx.Done():
		q.mu.Lock()
		if p.back == back {
			p.stopReturn()
		}
	}
}

// restore gives a free permit to a suspended call. The caller holds the queue's lock.
func (p *Permit) restore() {
	p.stopReturn()
	p.q.suspended--
	p.q.held++
	p.share.held++
	p.state = holding
}

// stopReturn removes a call from Queue.returning and ends the wait in resume. The caller holds the queue's lock.
func (p *Permit) stopReturn() {
	if p.at != nil {
		p.q.returning.Remove(p.at)
		close(p.back)
		p.at, p.back = nil, nil
	}
}
