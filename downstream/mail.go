package downstream

import (
	"cmp"
	"strings"
	"sync"
)

const (
	maxMail      = 1000    // notifications of one session that wait to be delivered
	maxMailBytes = 8 << 20 // their size; one larger notification is delivered if no other waits
)

// mail holds the notifications of a slot's sessions that belong to no call, until they are delivered. It keeps their
// order, so that a reader of a session does not wait for clients.
type mail struct {
	mu      sync.Mutex
	waiting []Message
	bytes   int
	sending bool
	dropped bool  // some of the notifications before those that wait
	newest  int64 // the latest session with a notification
}

// post queues a notification of the nth session for delivery to the endpoint's say. It drops the oldest if too many
// wait, and notifications from replaced sessions.
func (q *mail) post(e *endpoint, nth int64, m Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if nth < q.newest {
		return
	}
	q.newest = nth
	size := len(m.Message.Raw)
	for len(q.waiting) > 0 && (len(q.waiting) >= maxMail || q.bytes+size > maxMailBytes) {
		q.pop()
		if !q.dropped {
			q.dropped = true
			e.logger.Warn("notifications of the server are dropped: too many wait for delivery", "server", e.config.Name)
		}
	}
	q.waiting = append(q.waiting, m)
	q.bytes += size
	if !q.sending {
		q.sending = true
		e.wg.Go(func() { q.deliver(e) })
	}
}

// pop takes the oldest. q.mu is held.
func (q *mail) pop() Message {
	m := q.waiting[0]
	q.waiting[0] = Message{}
	q.waiting = q.waiting[1:]
	q.bytes -= len(m.Message.Raw)
	return m
}

// deliver passes on what waits, until nothing does.
func (q *mail) deliver(e *endpoint) {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting, q.sending, q.dropped = nil, false, false
			q.mu.Unlock()
			return
		}
		m := q.pop()
		q.mu.Unlock()
		func() {
			defer e.rescue("passing a notification on", nil)
			e.say(m)
		}()
	}
}

// private reports whether a notification may contain data of a call.
func private(method string) bool {
	return method == "notifications/message" || strings.HasPrefix(method, "notifications/tasks/")
}

// callers are those who have used a session. The zero value is nobody.
type callers struct {
	mu   sync.Mutex
	only string
	more bool
}

// add records a call. Those of the router itself have no caller.
func (c *callers) add(caller string) {
	if caller == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.only = cmp.Or(c.only, caller)
	c.more = c.more || c.only != caller
}

// one returns the only caller, empty if there was none. It is false if there were several.
func (c *callers) one() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.only, !c.more
}
