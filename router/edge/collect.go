package edge

import (
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// batch collects the responses to the requests of a batch: one array, when the last of them is done.
type batch struct {
	budget *limit.Budget
	payer  string // who pays for errors that cost nothing yet
	out    outlet
	lane   lane

	mu    sync.Mutex
	parts []message
	left  int
}

// newBatch returns a batch of n messages. The calling function counts as one request until it calls leave.
func newBatch(budget *limit.Budget, payer string, out outlet, n int) *batch {
	return &batch{budget: budget, payer: payer, out: out, parts: make([]message, n), left: 1}
}

// slot returns the outlet of the request at an index.
func (b *batch) slot(i int) outlet { return &slot{batch: b, index: i} }

// add counts one request more.
func (b *batch) add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}

// slot is the outlet of one request of a batch. What is not its response goes out at once.
type slot struct {
	batch  *batch
	index  int
	mu     sync.Mutex
	closed bool
}

func (p *slot) send(l *lane, m message, last bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !last {
		return p.batch.out.send(l, m, false)
	}
	p.closed = true
	p.batch.set(p.index, m)
	return true
}

func (p *slot) open() bool { return p.batch.out.open() }

func (p *slot) favour()                            { p.batch.out.favour() }
func (p *slot) quiet(now, heartbeat time.Duration) { p.batch.out.quiet(now, heartbeat) }
func (p *slot) lost() <-chan struct{}              { return p.batch.out.lost() }

// set takes the response to a request.
func (b *batch) set(i int, m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.paid == 0 {
		m.payer = b.payer
		m.paid = m.size()
		b.budget.Charge(m.payer, m.paid)
	}
	b.parts[i] = m
}

// leave counts one request less. The last one sends the array, unless nothing is in it.
func (b *batch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left > 0 {
		return
	}
	m := message{keep: true}
	for _, part := range b.parts {
		if part.paid > 0 { // others were cancelled
			m.batch = append(m.batch, part)
		}
	}
	if len(m.batch) > 0 && !b.out.send(&b.lane, m, true) {
		settle(b.budget, m)
	}
}
