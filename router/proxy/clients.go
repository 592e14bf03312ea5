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
	notifyTimeout = 10 * time.Second // to send a notification
	orderTimeout  = 5 * time.Second  // for a request to wait for earlier notifications
	drainTimeout  = time.Second      // for queued notifications of a closed session
	maxQueued     = 100              // queued notifications per client and server
)

// client is a client session on a surface, or a listener.
type client struct {
	session  string
	surface  *Surface
	listener *listener // nil for a session

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	wg     sync.WaitGroup // sends of notifications

	mu     sync.Mutex
	caller auth.Caller
	queues map[string][]*delivery // by server, in the order in which they are sent
}

// concerns reports whether a server is on the client's surface and currently visible to its caller.
func (m *client) concerns(server string) bool {
	caller, _ := m.user().Now()
	return (m.surface.only == "" || m.surface.only == server) && caller.MaySee(server)
}

// user returns the caller that owns the session.
func (m *client) user() auth.Caller {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.caller
}

// delivery is a queued notification.
type delivery struct {
	order uint64        // position among the messages of the session
	done  chan struct{} // closed when it has been sent or dropped
}

// enter records the caller and the surface of a session.
func (p *Proxy) enter(session string, s *Surface, caller auth.Caller) {
	p.mu.Lock()
	m := p.clients[session]
	if m == nil {
		m = newClient(session, s, caller)
		p.clients[session] = m
	}
	p.mu.Unlock()
	if !caller.Anonymous {
		m.mu.Lock()
		if m.caller.Anonymous {
			m.caller = caller // the session's first key
		}
		m.mu.Unlock()
	}
}

func newClient(session string, s *Surface, caller auth.Caller) *client {
	m := &client{session: session, surface: s, caller: caller}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

func (p *Proxy) client(session string) *client {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.clients[session]
}

// all returns all clients.
func (p *Proxy) all() []*client {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.clients))
}

// send queues a notification for the client.
func (m *client) send(message []byte) {
	if m.listener != nil {
		m.listener.send(message)
		return
	}
	m.surface.p.parts.Clients.Send(m.session, message)
}

// leave removes a session. Queued notifications have a short time to be sent.
func (p *Proxy) leave(session string) {
	p.mu.Lock()
	m := p.clients[session]
	delete(p.clients, session)
	p.mu.Unlock()
	if m == nil {
		return
	}
	timer := time.AfterFunc(drainTimeout, m.cancel)
	m.wg.Wait()
	timer.Stop()
	m.cancel()
}

// errQueueFull is returned if a server takes a client's notifications too slowly.
var errQueueFull = errors.New("too many notifications are waiting")

// post queues a notification to a server behind earlier ones and does not wait. order is its position among the
// messages of the session. failed receives errors. It reports whether send will be called.
func (m *client) post(server string, order uint64, send func(ctx context.Context) error, failed func(error)) bool {
	m.mu.Lock()
	q := m.queues[server]
	if len(q) == maxQueued {
		m.mu.Unlock()
		failed(errQueueFull)
		return false
	}
	if m.queues == nil {
		m.queues = map[string][]*delivery{}
	}
	d := &delivery{order, make(chan struct{})}
	m.queues[server] = append(q, d)
	m.mu.Unlock()
	m.wg.Go(func() {
		if len(q) > 0 {
			<-q[len(q)-1].done
		}
		err := m.surface.p.deliver(m.ctx, server, send)
		m.mu.Lock()
		if rest := m.queues[server][1:]; len(rest) > 0 {
			m.queues[server] = rest
		} else {
			delete(m.queues, server)
		}
		m.mu.Unlock()
		close(d.done)
		if err != nil {
			failed(err)
		}
	})
	return true
}

// deliver sends one notification to a server within notifyTimeout.
func (p *Proxy) deliver(ctx context.Context, server string, send func(ctx context.Context) error) (err error) {
	defer safe.Recover(p.log, "notifying server "+server, func(panicked error) { err = panicked })
	ctx, cancel := context.WithTimeoutCause(ctx, notifyTimeout, errors.New("the notification timed out"))
	defer cancel()
	return send(ctx)
}

// inOrder waits until the notifications before a message of the session have been sent to a server, for at most
// orderTimeout. It reports false if ctx ends first.
func (p *Proxy) inOrder(ctx context.Context, session string, order uint64, server string) bool {
	m := p.client(session)
	if m == nil {
		return true
	}
	m.mu.Lock()
	var last <-chan struct{}
	for _, d := range m.queues[server] {
		if d.order < order {
			last = d.done
		}
	}
	m.mu.Unlock()
	if last == nil {
		return true
	}
	select {
	case <-last:
	case <-time.After(orderTimeout):
	case <-ctx.Done():
		return false
	}
	return true
}
