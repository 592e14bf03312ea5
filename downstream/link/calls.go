package link

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// pending is a call that waits for its response. Its id is also its progress token.
type pending struct {
	end    func() // ends the call; nil if the call itself watches the session
	params []byte // as sent; for the headers of the modern era
	id     int64
	wire   jsonrpc.ID // encoded id
	call   *Call
	reply  chan jsonrpc.Message // capacity 1; nil if the call has its own stream

	ctx      context.Context // the caller's; set by add
	answered atomic.Bool     // its response has arrived, or it was abandoned

	unsent bool // the server never saw the request; set by the transport before it returns

	mu       sync.Mutex // held during reports, so that none follows finish
	finished bool
}

// report relays progress unless the call is finished.
func (c *pending) report(params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.finished && c.call.Progress != nil {
		c.call.Progress(params)
	}
}

// finish stops the reports and waits for a running one.
func (c *pending) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = true
	c.answered.Store(true)
}

// pendingCalls is the table of a session's calls in flight. Callers bound its size.
type pendingCalls struct {
	shared bool // responses arrive on one shared stream

	mu      sync.Mutex
	first   int64 // the id of the first call
	last    int64 // the id of the newest; first-1 before the first
	byID    map[int64]*pending
	listens int           // open listen requests in byID, which len and drain ignore
	drained chan struct{} // closed when no call is in flight; nil if nobody waits
}

// maxFirst limits the first id of a session. Servers may store ids as floats, which are exact below 1<<53.
const maxFirst = 1 << 52

// start chooses a random first id. Sessions may share connections, and a response that a server sends to the wrong
// session must not match a call there.
func (t *pendingCalls) start() {
	t.byID = map[int64]*pending{}
	t.first = 1 + rand.Int64N(maxFirst)
	t.last = t.first - 1
}

func (t *pendingCalls) add(ctx context.Context, call *Call) *pending {
	c := &pending{ctx: ctx, call: call}
	if t.shared {
		c.reply = make(chan jsonrpc.Message, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	c.id = t.last
	c.wire = jsonrpc.IntID(c.id)
	t.byID[c.id] = c
	if call.listens != nil {
		t.listens++
	}
	return c
}

func (t *pendingCalls) remove(c *pending) {
	c.finish()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, c.id)
	if c.call.listens != nil {
		t.listens--
	}
	if len(t.byID) == t.listens && t.drained != nil {
		close(t.drained)
		t.drained = nil
	}
}

// drain waits until no call is in flight.
func (t *pendingCalls) drain(ctx context.Context) {
	t.mu.Lock()
	if len(t.byID) == t.listens {
		t.mu.Unlock()
		return
	}
	if t.drained == nil {
		t.drained = make(chan struct{})
	}
	drained := t.drained
	t.mu.Unlock()
	select {
	case <-drained:
	case <-ctx.Done():
	}
}

// endWith sets the function with which endAll ends a call.
func (t *pendingCalls) endWith(c *pending, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.end = end
}

// endAll ends the calls that have such a function.
func (t *pendingCalls) endAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		if c.end != nil {
			c.end()
		}
	}
}

func (t *pendingCalls) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) - t.listens
}

// listening returns the number of open listen requests, and of those of a caller.
func (t *pendingCalls) listening(caller string) (all, own int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		if c.call.listens != nil && c.call.Caller == caller {
			own++
		}
	}
	return t.listens, own
}

// find returns the call with the raw id; nil if there is none, as for ids that are not integers.
func (t *pendingCalls) find(raw []byte) *pending {
	id, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *pendingCalls) byToken(params []byte) *pending {
	return t.find(jsonrpc.Get(params, "progressToken"))
}

// knew reports whether a raw id belongs to an earlier call.
func (t *pendingCalls) knew(raw []byte) bool {
	id, err := strconv.ParseInt(string(raw), 10, 64)
	t.mu.Lock()
	defer t.mu.Unlock()
	return err == nil && id >= t.first && id <= t.last
}

// ofOnlyClient returns the calls of the only client with calls in flight, newest first; none if there are several
// clients. A disconnected client counts only if no other is left, or if the other belongs to a different caller, who
// must not be asked in its place.
func (t *pendingCalls) ofOnlyClient() []*Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	var of, gone []*pending
	for _, c := range t.byID {
		switch {
		case c.call.Client == "", c.over():
		case c.call.Gone != nil && c.call.Gone():
			gone = append(gone, c)
		default:
			of = append(of, c)
		}
	}
	if len(of) == 0 {
		of, gone = gone, nil
	}
	for _, c := range of {
		if c.call.Client != of[0].call.Client {
			return nil
		}
	}
	for _, c := range gone {
		if c.call.Caller != of[0].call.Caller {
			return nil
		}
	}
	slices.SortFunc(of, func(a, b *pending) int { return cmp.Compare(b.id, a.id) })
	calls := make([]*Call, len(of))
	for i, c := range of {
		calls[i] = c.call
	}
	return calls
}

// crowded tells the calls in flight that the server has sent a request of a method that nobody is asked, because it may
// belong to any of them.
func (t *pendingCalls) crowded(method string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		if c.call.Client != "" && c.call.Crowded != nil && !c.over() {
			c.call.Crowded(method)
		}
	}
}

// over reports whether the call has ended, even if it is still in the table.
func (c *pending) over() bool { return c.answered.Load() || c.ctx.Err() != nil }
