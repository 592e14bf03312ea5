package edge

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// inFlight is the table of exchanges in flight of one session, or of all sessionless exchanges.
type inFlight struct {
	mu    sync.Mutex
	byID  map[string]*Exchange // requests that can be cancelled; nil without a session
	all   map[*Exchange]struct{}
	count uint64 // exchanges added so far
}

// entry is the record of an exchange in its table. The mutex of the table guards it.
type entry struct {
	table    *inFlight
	id       jsonrpc.ID      // id that cancels it
	passed   chan struct{}   // closed when nothing waits for the request, see Exchange.ReleaseWaiting
	isPassed bool            // passed is closed
	earlier  []chan struct{} // of a notification: passed of the requests before it
}

// add adds an exchange of a session, or one without a session. It reports false if its id is in use.
func (t *inFlight) add(x *Exchange) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addLocked(x)
}

func (t *inFlight) addLocked(x *Exchange) bool {
	e := &x.entry
	if t.byID != nil && e.id != "" {
		key := e.id.Key()
		if _, taken := t.byID[key]; taken {
			return false
		}
		t.byID[key] = x
	}
	if x.Message.IsNotification() {
		for other := range t.all {
			if !other.entry.isPassed {
				e.earlier = append(e.earlier, other.entry.passed)
			}
		}
		e.isPassed = true
	} else {
		e.passed = make(chan struct{})
	}
	if t.all == nil {
		t.all = make(map[*Exchange]struct{})
	}
	t.all[x] = struct{}{}
	t.count++
	x.Order = t.count
	return true
}

func (t *inFlight) remove(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(x)
}

// removeLocked removes x after its handler has returned.
func (t *inFlight) removeLocked(x *Exchange) {
	t.freeIDLocked(x)
	t.markPassedLocked(x)
	delete(t.all, x)
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
	if x == nil || !x.reply.state.CompareAndSwap(live, cancelled) {
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

func (t *inFlight) markPassed(x *Exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.markPassedLocked(x)
}

func (t *inFlight) markPassedLocked(x *Exchange) {
	if e := &x.entry; !e.isPassed {
		e.isPassed = true
		close(e.passed)
	}
}

// cancel cancels the contexts of the exchanges that chosen selects.
func (t *inFlight) cancel(cause error, chosen func(*Exchange) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := range t.all {
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
	for x := range t.all {
		select {
		case <-x.reply.conn:
		default:
			if x.reply.conn != nil {
				return true
			}
		}
	}
	return false
}

// orderTimeout is how long a message waits for earlier ones.
const orderTimeout = 5 * time.Second

// AwaitEarlier waits until the requests before a notification are passed on, see [Exchange.ReleaseWaiting], but at most
// 5 seconds, and not after ctx or the session has ended.
func AwaitEarlier(ctx context.Context, x *Exchange) {
	if len(x.entry.earlier) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	for _, passed := range x.entry.earlier {
		select {
		case <-passed:
		case <-x.session.life.ending:
			return
		case <-ctx.Done():
			return
		}
	}
}
