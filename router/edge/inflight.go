package edge

import (
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// scope is the table of exchanges in flight of one session, or of all that have none.
type scope struct {
	mu    sync.Mutex
	byID  map[string]*Exchange // requests that can be cancelled; nil where ids mean nothing
	first *Exchange            // all, newest first
}

// add lists an exchange without a session.
func (c *scope) add(x *Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(x)
}

func (c *scope) remove(x *Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(x)
}

// addLocked lists x and, for a request, its id. It reports false if the id is taken.
func (c *scope) addLocked(x *Exchange) bool {
	if c.byID != nil && x.id != "" {
		key := x.id.Key()
		if _, taken := c.byID[key]; taken {
			return false
		}
		c.byID[key] = x
	}
	x.listed = true
	x.next = c.first
	if c.first != nil {
		c.first.prev = x
	}
	c.first = x
	return true
}

// relist gives x, whose id is free, another one. It reports false if that is taken.
func (c *scope) relist(x *Exchange, id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		return true
	}
	if _, taken := c.byID[id.Key()]; taken {
		return false
	}
	x.id = id
	c.byID[id.Key()] = x
	return true
}

// settle frees x's id: it is answered or cancelled.
func (c *scope) settle(x *Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(x)
}

func (c *scope) settleLocked(x *Exchange) {
	if c.byID == nil || x.id == "" {
		return
	}
	if key := x.id.Key(); c.byID[key] == x {
		delete(c.byID, key)
	}
}

// removeLocked takes x off the table: its handler has returned.
func (c *scope) removeLocked(x *Exchange) {
	c.settleLocked(x)
	c.sentLocked(x)
	if !x.listed {
		return
	}
	x.listed = false
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		c.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
}

func (c *scope) markSent(x *Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sentLocked(x)
}

func (c *scope) sentLocked(x *Exchange) {
	if x.sent {
		return
	}
	x.sent = true
	if x.sentCh != nil {
		close(x.sentCh)
	}
}

// unsentLocked returns channels that close when the requests in flight have been handed on.
func (c *scope) unsentLocked() []<-chan struct{} {
	var waits []<-chan struct{}
	for x := c.first; x != nil; x = x.next {
		if x.sent || x.Message.ID == "" {
			continue
		}
		if x.sentCh == nil {
			x.sentCh = make(chan struct{})
		}
		waits = append(waits, x.sentCh)
	}
	return waits
}

// cancel ends the contexts of what is in flight and chosen.
func (c *scope) cancel(cause error, chosen func(*Exchange) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := c.first; x != nil; x = x.next {
		if chosen(x) {
			x.abort(cause)
		}
	}
}

func all(*Exchange) bool { return true }

// tick tells the time to all that is in flight and reports whether any of it still has its connection.
func (c *scope) tick(now, heartbeat time.Duration) (connected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := c.first; x != nil; x = x.next {
		if x.out != nil {
			x.out.KeepAlive(now, heartbeat)
		}
		select {
		case <-x.conn:
		default:
			connected = connected || x.conn != nil
		}
	}
	return connected
}
