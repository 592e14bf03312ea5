package downstream

import (
	"strings"
	"sync"
)

const (
	maxMail      = 1000    // notifications of one session that wait to be delivered
	maxMailBytes = 8 << 20 // their size; one larger notification is delivered if no other waits
)

// mail holds the notifications of a slot's session that belong to no call, until they are delivered. They keep
// their order. A reader of a session does not wait for clients.
type mail struct {
	mu      sync.Mutex
	waiting []Message
	bytes   int
	sending bool
	dropped bool  // some of those that wait
	speaker int64 // the last session that has said something
}

// post queues a notification of the nth session for delivery. Where too much waits the oldest is dropped, and so
// is what a lost session said once a later one has spoken.
func (sl *slot) post(nth int64, m Message) {
	q := &sl.mail
	q.mu.Lock()
	defer q.mu.Unlock()
	if nth < q.speaker {
		return
	}
	q.speaker = nth
	size := len(m.Message.Raw)
	for len(q.waiting) > 0 && (len(q.waiting) >= maxMail || q.bytes+size > maxMailBytes) {
		q.pop()
		if !q.dropped {
			q.dropped = true
			sl.s.logger.Warn("notifications of the server are dropped: too many wait for delivery", "server", sl.s.config.Name)
		}
	}
	q.waiting = append(q.waiting, m)
	q.bytes += size
	if !q.sending {
		q.sending = true
		sl.s.wg.Go(sl.deliver)
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

// deliver hands over what waits, until nothing does.
func (sl *slot) deliver() {
	q := &sl.mail
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting, q.sending, q.dropped = nil, false, false
			q.mu.Unlock()
			return
		}
		m := q.pop()
		q.mu.Unlock()
		sl.s.pass(m)
	}
}

// pass hands one notification over.
func (s *server) pass(m Message) {
	defer s.rescue("passing a notification on", nil)
	s.say(m)
}

// private reports whether a notification may tell what a call is about.
func private(method string) bool {
	return method == "notifications/message" || strings.HasPrefix(method, "notifications/tasks/")
}

// callers are those who have used a session. The zero value is nobody.
type callers struct {
	mu   sync.Mutex
	only string
	more bool
}

// add notes a call; the router's own say nothing of anybody.
func (c *callers) add(caller string) {
	if caller == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.only == "" {
		c.only = caller
	}
	c.more = c.more || c.only != caller
}

// one returns the only caller, empty if there was none. It is false if there were several.
func (c *callers) one() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.only, !c.more
}
