package downstream

import (
	"cmp"
	"strings"
	"sync"
)

const (
	maxMail      = 1000    // undelivered notifications per session
	maxMailBytes = 8 << 20 // their size; a larger notification is accepted only if none waits
)

// mail queues the notifications of a slot's sessions that belong to no call. It keeps their order and decouples the
// readers of sessions from slow clients.
type mail struct {
	mu      sync.Mutex
	waiting []Message
	bytes   int
	sending bool
	dropped bool  // notifications before the queued ones were dropped
	newest  int64 // the newest session that sent a notification
}

// post queues a notification of the nth session for the endpoint's say. It drops the oldest if the queue is full, and
// drops notifications from replaced sessions.
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
			e.logger.Warn("dropped notifications of the server: too many wait for delivery", "server", e.config.Name)
		}
	}
	q.waiting = append(q.waiting, m)
	q.bytes += size
	if !q.sending {
		q.sending = true
		e.wg.Go(func() { q.deliver(e) })
	}
}

// pop removes and returns the oldest notification. The caller holds q.mu.
func (q *mail) pop() Message {
	m := q.waiting[0]
	q.waiting[0] = Message{}
	q.waiting = q.waiting[1:]
	q.bytes -= len(m.Message.Raw)
	return m
}

// deliver delivers notifications until the queue is empty.
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

// common reports whether a notification concerns all clients of a session, whichever call it comes with.
func common(method string) bool {
	return method == "notifications/resources/updated" || strings.HasSuffix(method, "/list_changed")
}

// callers records who has used a session. The zero value is empty.
type callers struct {
	mu   sync.Mutex
	only string
	more bool
}

// add records the caller of a call; the router's own calls have none.
func (c *callers) add(caller string) {
	if caller == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.only = cmp.Or(c.only, caller)
	c.more = c.more || c.only != caller
}

// one returns the only caller, empty if there was none. ok is false if there were several.
func (c *callers) one() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.only, !c.more
}
