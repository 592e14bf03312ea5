package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/router/auth"
)

const (
	courtesy  = 10 * time.Second // for a notification that nobody waits for
	patience  = 5 * time.Second  // that a request waits for the notifications before it
	farewell  = time.Second      // for what is still to be said when a client has left
	maxQueued = 100              // notifications of one client that wait for one server
)

// member is a client session on a surface.
type member struct {
	surface *Surface
	caller  auth.Caller

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	wg     sync.WaitGroup // notifications on their way

	mu     sync.Mutex
	queues map[string]*queue // by server
}

// concerns reports whether a server is on the member's surface and its caller may see it by now.
func (m *member) concerns(server string) bool {
	caller, _ := m.caller.Now()
	return (m.surface.only == "" || m.surface.only == server) && caller.MaySee(server)
}

// queue is what a client has notified a server of and is not yet on its way.
type queue struct {
	length int
	last   chan struct{} // closed when the newest has been sent, or given up
}

// enter notes who uses a session, and on which surface.
func (p *Proxy) enter(session string, s *Surface, caller auth.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[session]
	if m == nil {
		m = &member{surface: s, caller: caller}
		m.ctx, m.cancel = context.WithCancel(context.Background())
		p.members[session] = m
	}
	if m.caller.Anonymous {
		m.caller = caller // a key may follow later
	}
}

func (p *Proxy) member(session string) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[session]
}

// leave forgets a session. Its notifications have a moment to get on their way.
func (p *Proxy) leave(session string) {
	p.mu.Lock()
	m := p.members[session]
	delete(p.members, session)
	p.mu.Unlock()
	if m == nil {
		return
	}
	timer := time.AfterFunc(farewell, m.cancel)
	m.wg.Wait()
	timer.Stop()
	m.cancel()
}

// errQueueFull tells that a server takes the notifications of a client too slowly.
var errQueueFull = errors.New("too many notifications are waiting")

// post sends a notification to a server after those before it, without waiting; failed is told of failures.
func (m *member) post(server string, send func(ctx context.Context) error, failed func(error)) {
	m.mu.Lock()
	q := m.queues[server]
	if q == nil {
		q = &queue{}
		if m.queues == nil {
			m.queues = map[string]*queue{}
		}
		m.queues[server] = q
	}
	if q.length == maxQueued {
		m.mu.Unlock()
		failed(errQueueFull)
		return
	}
	q.length++
	before, sent := q.last, make(chan struct{})
	q.last = sent
	m.mu.Unlock()
	m.wg.Go(func() {
		if before != nil {
			<-before
		}
		ctx, cancel := context.WithTimeoutCause(m.ctx, courtesy, errors.New("it took too long"))
		defer cancel()
		err := send(ctx)
		m.mu.Lock()
		if q.length--; q.length == 0 {
			delete(m.queues, server)
		}
		m.mu.Unlock()
		close(sent)
		if err != nil {
			failed(err)
		}
	})
}

// inOrder waits until a server was sent what the client notified it of before, for as long as is bearable.
// It is false if ctx ends before.
func (p *Proxy) inOrder(ctx context.Context, session, server string) bool {
	m := p.member(session)
	if m == nil {
		return true
	}
	m.mu.Lock()
	q := m.queues[server]
	if q == nil {
		m.mu.Unlock()
		return true
	}
	last := q.last
	m.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-last:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}
