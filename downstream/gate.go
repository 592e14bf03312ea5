package downstream

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Why a gate lets a call not through.
var (
	errCrowded = errors.New("too many calls wait for it")
	errRetired = errors.New("another server has taken its place")
)

// gate bounds the calls that a server handles at once; as many again may wait. The clients that wait take
// turns, and where all places are taken the one with the most calls waiting gives one up: so a client that
// floods delays and loses its own calls, not those of others. It is safe for concurrent use.
type gate struct {
	limit int

	mu      sync.Mutex
	running int
	waiting int
	pinned  int              // other uses that drain waits for
	lines   map[string]*line // of the clients that wait
	turns   list.List        // of *line, the next first
	retired chan struct{}    // closed when another server takes the place of this one
	drained chan struct{}    // closed when nothing runs or is pinned any more; nil if nobody waits for that
}

// line is where the calls of one client wait, the oldest first.
type line struct {
	client  string
	waiters list.List // of *waiter
	turn    *list.Element
}

// waiter is a call that waits. told gets nil when it may begin, or why it may not.
type waiter struct {
	told  chan error // room for one
	line  *line
	place *list.Element
}

func newGate(limit int) *gate {
	return &gate{limit: limit, lines: map[string]*line{}, retired: make(chan struct{})}
}

// enter waits until the call may begin; leave must then be called. The error is errCrowded, errRetired or
// the cause of ctx: a call that ended while it waited never begins.
func (g *gate) enter(ctx context.Context, client string) error {
	g.mu.Lock()
	if g.isRetired() {
		g.mu.Unlock()
		return errRetired
	}
	if g.running < g.limit {
		g.running++
		g.mu.Unlock()
		return nil
	}
	if g.waiting >= g.limit && !g.makeRoom(client) {
		g.mu.Unlock()
		return errCrowded
	}
	w := g.push(client)
	g.mu.Unlock()
	select {
	case err := <-w.told:
		if err == nil && ctx.Err() != nil {
			g.leave()
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
	}
	g.mu.Lock()
	if w.place != nil {
		g.take(w)
		g.mu.Unlock()
		return context.Cause(ctx)
	}
	g.mu.Unlock()
	if <-w.told == nil {
		g.leave() // its turn had come in the meantime
	}
	return context.Cause(ctx)
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first := g.turns.Front(); first != nil {
		l := first.Value.(*line)
		w := l.waiters.Front().Value.(*waiter)
		g.turns.MoveToBack(first)
		g.take(w)
		w.told <- nil // the place changes hands
		return
	}
	g.running--
	g.settle()
}

// push puts a call at the end of its client's line.
func (g *gate) push(client string) *waiter {
	l := g.lines[client]
	if l == nil {
		l = &line{client: client}
		l.turn = g.turns.PushBack(l)
		g.lines[client] = l
	}
	w := &waiter{told: make(chan error, 1), line: l}
	w.place = l.waiters.PushBack(w)
	g.waiting++
	return w
}

// take takes a call out of its line.
func (g *gate) take(w *waiter) {
	w.line.waiters.Remove(w.place)
	w.place = nil
	g.waiting--
	if w.line.waiters.Len() == 0 {
		g.turns.Remove(w.line.turn)
		delete(g.lines, w.line.client)
	}
}

// makeRoom refuses the newest call of the client that has the most waiting, unless the one who asks has its
// share of the places already, or would have no fewer than that client then.
func (g *gate) makeRoom(client string) bool {
	clients, own := len(g.lines), 0
	if l := g.lines[client]; l != nil {
		own = l.waiters.Len()
	} else {
		clients++
	}
	if own >= g.limit/clients {
		return false
	}
	var longest *line
	for _, l := range g.lines {
		if longest == nil || l.waiters.Len() > longest.waiters.Len() {
			longest = l
		}
	}
	if longest.waiters.Len() <= own+1 {
		return false
	}
	w := longest.waiters.Back().Value.(*waiter)
	g.take(w)
	w.told <- errCrowded
	return true
}

// pin keeps drain waiting until unpin, for uses that are no calls. It is false if the server is retired.
func (g *gate) pin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isRetired() {
		return false
	}
	g.pinned++
	return true
}

func (g *gate) unpin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pinned--
	g.settle()
}

// retire sends new calls and those that wait away with errRetired. It is called once.
func (g *gate) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.retired)
	for _, l := range g.lines {
		for l.waiters.Len() > 0 {
			w := l.waiters.Front().Value.(*waiter)
			g.take(w)
			w.told <- errRetired
		}
	}
}

func (g *gate) isRetired() bool {
	select {
	case <-g.retired:
		return true
	default:
		return false
	}
}

// drain waits until nothing runs any more, or until stop is closed.
func (g *gate) drain(stop <-chan struct{}) {
	g.mu.Lock()
	if g.running+g.pinned == 0 {
		g.mu.Unlock()
		return
	}
	if g.drained == nil {
		g.drained = make(chan struct{})
	}
	drained := g.drained
	g.mu.Unlock()
	select {
	case <-drained:
	case <-stop:
	}
}

func (g *gate) settle() {
	if g.running+g.pinned == 0 && g.drained != nil {
		close(g.drained)
		g.drained = nil
	}
}

// load returns the calls that run and those that wait.
func (g *gate) load() (running, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running, g.waiting
}
