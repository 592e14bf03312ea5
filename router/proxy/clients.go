package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
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
func (c *client) concerns(server string) bool {
	caller, _ := c.user().Now()
	return (c.surface.only == "" || c.surface.only == server) && caller.MaySee(server)
}

// hears reports whether a notification of a server is for the client: it is on the client's surface, and what it says
// is currently visible to its caller.
func (c *client) hears(server string, m jsonrpc.Message) bool {
	caller, _ := c.user().Now()
	return (c.surface.only == "" || c.surface.only == server) && downstream.Hears(caller, server, m)
}

// user returns the caller that owns the session.
func (c *client) user() auth.Caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caller
}

// delivery is a queued notification.
type delivery struct {
	order uint64        // position among the messages of the session
	done  chan struct{} // closed when it has been sent or dropped
}

// enter records the caller and the surface of a session.
func (p *Proxy) enter(session string, s *Surface, caller auth.Caller) {
	c := p.client(session)
	if c == nil {
		p.mu.Lock()
		if c = p.clients[session]; c == nil {
			c = newClient(session, s, caller)
			p.clients[session] = c
		}
		p.mu.Unlock()
	}
	if !caller.Anonymous {
		c.mu.Lock()
		if c.caller.Anonymous {
			c.caller = caller // the session's first key
		}
		c.mu.Unlock()
	}
}

func newClient(session string, s *Surface, caller auth.Caller) *client {
	c := &client{session: session, surface: s, caller: caller}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
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
func (c *client) send(message []byte) {
	if c.listener != nil {
		c.listener.send(message)
		return
	}
	c.surface.p.parts.Clients.Send(c.session, message)
}

// leave removes a session or a listener. Queued notifications have a short time to be sent.
func (p *Proxy) leave(session string) {
	p.mu.Lock()
	c := p.clients[session]
	delete(p.clients, session)
	p.mu.Unlock()
	if c != nil {
		timer := time.AfterFunc(drainTimeout, c.cancel)
		c.wg.Wait()
		timer.Stop()
		c.cancel()
	}
	p.servers.Sessions().Leave(session)
}

// errQueueFull is returned if a server takes a client's notifications too slowly.
var errQueueFull = errors.New("too many notifications are waiting")

// post queues a notification to a server behind earlier ones and does not wait. order is its position among the
// messages of the session. failed receives errors. It reports whether send will be called.
func (c *client) post(server string, order uint64, send func(ctx context.Context) error, failed func(error)) bool {
	c.mu.Lock()
	q := c.queues[server]
	if len(q) == maxQueued {
		c.mu.Unlock()
		failed(errQueueFull)
		return false
	}
	if c.queues == nil {
		c.queues = map[string][]*delivery{}
	}
	d := &delivery{order, make(chan struct{})}
	c.queues[server] = append(q, d)
	c.mu.Unlock()
	c.wg.Go(func() {
		if len(q) > 0 {
			<-q[len(q)-1].done
		}
		err := c.surface.p.deliver(c.ctx, server, send)
		c.mu.Lock()
		if rest := c.queues[server][1:]; len(rest) > 0 {
			c.queues[server] = rest
		} else {
			delete(c.queues, server)
		}
		c.mu.Unlock()
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
	c := p.client(session)
	if c == nil {
		return true
	}
	c.mu.Lock()
	var last <-chan struct{}
	for _, d := range c.queues[server] {
		if d.order < order {
			last = d.done
		}
	}
	c.mu.Unlock()
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
