package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const (
	courtesy  = 10 * time.Second // for a notification that nobody waits for
	patience  = 5 * time.Second  // that a request waits for the notifications before it
	farewell  = time.Second      // for what is still to be said when a client has left
	maxQueued = 100              // notifications of one client that wait for one server
)

// client is a client session on a surface.
type client struct {
	session string
	surface *Surface

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	wg     sync.WaitGroup // notifications on their way

	mu     sync.Mutex
	caller auth.Caller
	queues map[string]*queue // by server
}

// concerns reports whether a server is on the client's surface and its caller may see it by now.
func (m *client) concerns(server string) bool {
	caller, _ := m.user().Now()
	return (m.surface.only == "" || m.surface.only == server) && caller.MaySee(server)
}

// user is the caller whose session it is.
func (m *client) user() auth.Caller {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.caller
}

// queue is what a client has notified a server of and is not yet on its way.
type queue struct {
	length int
	last   chan struct{} // closed when the newest has been sent, or given up
}

// enter notes who uses a session, and on which surface.
func (p *Proxy) enter(session string, s *Surface, caller auth.Caller) {
	m := p.client(session)
	if m == nil {
		p.mu.Lock()
		if m = p.clients[session]; m == nil {
			m = &client{session: session, surface: s, caller: caller}
			m.ctx, m.cancel = context.WithCancel(context.Background())
			p.clients[session] = m
		}
		p.mu.Unlock()
	}
	if !caller.Anonymous {
		m.mu.Lock()
		if m.caller.Anonymous {
			m.caller = caller // the first key that it shows
		}
		m.mu.Unlock()
	}
}

func (p *Proxy) client(session string) *client {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.clients[session]
}

// all returns the clients there are.
func (p *Proxy) all() []*client {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.clients))
}

// attached returns the edge that serves the surfaces.
func (p *Proxy) attached() Clients {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.edge
}

// leave forgets a session. Its notifications have a moment to get on their way.
func (p *Proxy) leave(session string) {
	p.mu.Lock()
	m := p.clients[session]
	delete(p.clients, session)
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

// post sends a notification to a server after those before it, without waiting; failed is told of failures. It
// reports whether send will be called.
func (m *client) post(server string, send func(ctx context.Context) error, failed func(error)) bool {
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
		return false
	}
	q.length++
	before, sent := q.last, make(chan struct{})
	q.last = sent
	m.mu.Unlock()
	m.wg.Go(func() {
		if before != nil {
			<-before
		}
		err := m.deliver(server, send)
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
	return true
}

// deliver sends one notification to a server, within courtesy.
func (m *client) deliver(server string, send func(ctx context.Context) error) (err error) {
	defer safe.Recover(m.surface.p.log, "notifying server "+server, func(panicked error) { err = panicked })
	ctx, cancel := context.WithTimeoutCause(m.ctx, courtesy, errors.New("it took too long"))
	defer cancel()
	return send(ctx)
}

// inOrder waits until a server was sent what the client notified it of before, for as long as is bearable.
// It is false if ctx ends before.
func (p *Proxy) inOrder(ctx context.Context, session, server string) bool {
	m := p.client(session)
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
	select {
	case <-last:
	case <-time.After(patience):
	case <-ctx.Done():
		return false
	}
	return true
}
