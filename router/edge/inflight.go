package edge

import (
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// inFlight is the table of exchanges in flight of one session, or of all sessionless exchanges.
type inFlight struct {
	mu    sync.Mutex
	byID  map[string]*Exchange // requests that can be cancelled; nil without a session
	first *Exchange            // all exchanges, newest first
}

// entry is the place of an exchange in its table. The mutex of the table guards it.
type entry struct {
	table   *inFlight
	id      jsonrpc.ID    // id that cancels it
	barrier uint64        // number of preceding notifications
	sentCh  chan struct{} // closed when sent; created by the first waiter
	sent    bool          // see Exchange.Sent
	listed  bool
	prev    *Exchange
	next    *Exchange
}

// add adds an exchange without a session.
func (t *inFlight) add(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(x)
}

func (t *inFlight) remove(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(x)
}

// addLocked adds x and, for a request, its id. It reports false if the id is in use.
func (t *inFlight) addLocked(x *Exchange) bool {
	e := &x.entry
	if t.byID != nil && e.id != "" {
		key := e.id.Key()
		if _, taken := t.byID[key]; taken {
			return false
		}
		t.byID[key] = x
	}
	e.listed = true
	e.next = t.first
	if t.first != nil {
		t.first.entry.prev = x
	}
	t.first = x
	return true
}

// has reports whether a request with the id is in flight.
func (t *inFlight) has(id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id.Key()] != nil
}

// rename lists x under another id. x must have no id. It reports false if the new id is in use.
func (t *inFlight) rename(x *Exchange, id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		return true
	}
	if _, taken := t.byID[id.Key()]; taken {
		return false
	}
	x.entry.id = id
	t.byID[id.Key()] = x
	return true
}

// cancelRequest handles notifications/cancelled. It reports false if no live request has the id.
func (t *inFlight) cancelRequest(id jsonrpc.ID, c *Cancelled) bool {
	t.mu.Lock()
	x := t.byID[id.Key()]
	if x == nil || !x.out.state.CompareAndSwap(live, cancelled) {
		t.mu.Unlock()
		return false
	}
	t.freeIDLocked(x)
	t.mu.Unlock()
	x.abort(c)
	return true
}

// freeID frees the id of x after its response or cancellation.
func (t *inFlight) freeID(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freeIDLocked(x)
}

func (t *inFlight) freeIDLocked(x *Exchange) {
	if t.byID == nil || x.entry.id == "" {
		return
	}
	if key := x.entry.id.Key(); t.byID[key] == x {
		delete(t.byID, key)
	}
}

// removeLocked removes x after its handler has returned.
func (t *inFlight) removeLocked(x *Exchange) {
	t.freeIDLocked(x)
	t.markSentLocked(x)
	e := &x.entry
	if !e.listed {
		return
	}
	e.listed = false
	if e.prev != nil {
		e.prev.entry.next = e.next
	} else {
		t.first = e.next
	}
	if e.next != nil {
		e.next.entry.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

func (t *inFlight) markSent(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.markSentLocked(x)
}

func (t *inFlight) markSentLocked(x *Exchange) {
	if x.entry.sent {
		return
	}
	x.entry.sent = true
	if x.entry.sentCh != nil {
		close(x.entry.sentCh)
	}
}

// unsentLocked returns, for each unsent request, a channel that is closed when it is sent.
func (t *inFlight) unsentLocked() []<-chan struct{} {
	var waits []<-chan struct{}
	for x := t.first; x != nil; x = x.entry.next {
		if x.entry.sent || x.Message.ID == "" {
			continue
		}
		if x.entry.sentCh == nil {
			x.entry.sentCh = make(chan struct{})
		}
		waits = append(waits, x.entry.sentCh)
	}
	return waits
}

// cancel cancels the contexts of the exchanges that chosen selects.
func (t *inFlight) cancel(cause error, chosen func(*Exchange) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := t.first; x != nil; x = x.entry.next {
		if chosen(x) {
			x.abort(cause)
		}
	}
}

func all(*Exchange) bool { return true }

// connected reports whether any exchange still has its connection.
func (t *inFlight) connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := t.first; x != nil; x = x.entry.next {
		select {
		case <-x.out.conn:
		default:
			if x.out.conn != nil {
				return true
			}
		}
	}
	return false
}
