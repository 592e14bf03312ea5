package output

import (
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// Batch collects the responses to the requests of a batch: one array, when the last of them is done.
type Batch struct {
	budget *limit.Budget
	payer  string // who pays for errors that cost nothing yet
	out    Outlet
	lane   Lane

	mu    sync.Mutex
	parts []Message
	open  int
}

// NewBatch returns a batch of n messages. The calling function counts as one request until it calls leave.
func NewBatch(budget *limit.Budget, payer string, out Outlet, n int) *Batch {
	return &Batch{budget: budget, payer: payer, out: out, parts: make([]Message, n), open: 1}
}

// Outlet returns the outlet of the request at an index.
func (b *Batch) Outlet(i int) Outlet { return &batchOutlet{batch: b, index: i} }

// Add counts one request more.
func (b *Batch) Add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

// batchOutlet is the outlet of one request of a batch. What is not its response goes out at once.
type batchOutlet struct {
	batch  *Batch
	index  int
	mu     sync.Mutex
	closed bool
}

func (p *batchOutlet) Send(l *Lane, m Message, last bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !last {
		return p.batch.out.Send(l, m, false)
	}
	p.closed = true
	p.batch.Set(p.index, m)
	return true
}

func (p *batchOutlet) Open() bool { return p.batch.out.Open() }

func (p *batchOutlet) PreferStream()                          { p.batch.out.PreferStream() }
func (p *batchOutlet) KeepAlive(now, heartbeat time.Duration) { p.batch.out.KeepAlive(now, heartbeat) }
func (p *batchOutlet) Lost() <-chan struct{}                  { return p.batch.out.Lost() }

// Set takes the response to a request.
func (b *Batch) Set(i int, m Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Paid == 0 {
		m.Payer = b.payer
		m.Paid = m.Size()
		b.budget.Charge(m.Payer, m.Paid)
	}
	b.parts[i] = m
}

// Done counts one request less. The last one sends the array, unless nothing is in it.
func (b *Batch) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open--; b.open > 0 {
		return
	}
	m := Message{Keep: true}
	for _, part := range b.parts {
		if part.Paid > 0 { // others were cancelled
			m.Batch = append(m.Batch, part)
		}
	}
	if len(m.Batch) > 0 && !b.out.Send(&b.lane, m, true) {
		Settle(b.budget, m)
	}
}
