package output

import (
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// Batch collects the responses to a batch of requests and sends them as one array when the last is complete.
type Batch struct {
	budget *limit.Budget
	payer  string // charged for responses without a payer
	out    Outlet
	lane   Lane

	mu    sync.Mutex
	parts []Message
	open  int // requests that are not done
}

// NewBatch returns a batch of n messages. The calling function counts as one request until it calls Done.
func NewBatch(budget *limit.Budget, payer string, out Outlet, n int) *Batch {
	return &Batch{budget: budget, payer: payer, out: out, parts: make([]Message, n), open: 1}
}

// Outlet returns the outlet of the request at an index.
func (b *Batch) Outlet(i int) Outlet { return &batchOutlet{batch: b, index: i} }

// Add adds one pending request.
func (b *Batch) Add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

// batchOutlet is the outlet of one request of a batch. Only the response is collected; other messages are sent at
// once.
type batchOutlet struct {
	batch  *Batch
	index  int
	mu     sync.Mutex
	closed bool
}

func (o *batchOutlet) Send(l *Lane, m Message, last bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if !last {
		return o.batch.out.Send(l, m, false)
	}
	o.closed = true
	o.batch.Set(o.index, m)
	return true
}

func (o *batchOutlet) Open() bool { return o.batch.out.Open() }

func (o *batchOutlet) PreferStream()                          { o.batch.out.PreferStream() }
func (o *batchOutlet) KeepAlive(now, heartbeat time.Duration) { o.batch.out.KeepAlive(now, heartbeat) }
func (o *batchOutlet) Lost() <-chan struct{}                  { return o.batch.out.Lost() }

// Set sets the response to the request at an index.
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

// Done completes one request. The last call sends the array unless it is empty.
func (b *Batch) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open--; b.open > 0 {
		return
	}
	m := Message{Keep: true}
	for _, part := range b.parts {
		if part.Paid > 0 { // cancelled requests have none
			m.batch = append(m.batch, part)
		}
	}
	if len(m.batch) > 0 && !b.out.Send(&b.lane, m, true) {
		Settle(b.budget, m)
	}
}
