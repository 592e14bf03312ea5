package output

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// ReplayBytes limits the bytes of events, and of one unread response, that a session keeps for replay.
const ReplayBytes = 1 << 20

// Further limits of replay.
const (
	replayEvents  = 256 // events per session
	replayStreams = 16  // finished unread responses per session
)

// retryAfter is the reconnection delay of clients in milliseconds.
const retryAfter = "1000"

// replay keeps the latest events of a session's streams, and the responses whose connection was lost.
type replay struct {
	budget *limit.Budget
	payer  string // the caller of the session

	mu      sync.Mutex
	numbers uint64
	events  Queue[event]
	bytes   int
	streams map[uint64]*Response // open responses, and finished responses not fully read
	orphans []uint64             // finished ones, oldest first
	over    bool
}

// event is one event that was sent, or whose sending failed.
type event struct {
	stream, seq uint64
	data        Message
}

// cursor numbers the events of one stream.
type cursor struct {
	replay *replay
	stream uint64
	seq    uint64
	told   bool // the retry time has been sent
	once   bool // the stream has a single event, kept only if writing it fails
	prime  bool // begin with an event without data, whose id lets the client resume
}

// appendPriming appends an event without data. Clients that look for "data: " ignore it.
func (c *cursor) appendPriming(b []byte) []byte {
	c.prime = false
	return append(c.lines(b, c.seq), "data:\n\n"...)
}

// newCursor returns the cursor of a new response. Number 0 is the stream of the session.
func (r *replay) newCursor(a *Response) *cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers++
	if r.over {
		return &cursor{replay: r, stream: r.numbers}
	}
	if r.streams == nil {
		r.streams = make(map[uint64]*Response)
	}
	r.streams[r.numbers] = a
	return &cursor{replay: r, stream: r.numbers}
}

// append appends the id line of a new event and keeps the event.
func (c *cursor) append(b []byte, m Message) []byte {
	c.seq++
	if !c.once {
		c.replay.keep(event{c.stream, c.seq, m})
	}
	return c.lines(b, c.seq)
}

// appendStart appends the id of the last event, once.
func (c *cursor) appendStart(b []byte) []byte {
	if c.told {
		return b
	}
	return c.lines(b, c.seq)
}

func (c *cursor) lines(b []byte, seq uint64) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendUint(b, c.stream, 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, '\n')
	if !c.told {
		c.told = true
		b = append(b, "retry: "+retryAfter+"\n"...)
	}
	return b
}

// keep adds an event and drops the oldest ones beyond the limits. An event beyond the payer's limit is not kept.
func (r *replay) keep(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := e.data.Size()
	if r.over || size > ReplayBytes {
		return
	}
	if e.data.batch != nil {
		e.data.form, e.data.Body = whole, e.data.Append(nil)
	}
	e.data = Message{form: e.data.form, ID: e.data.ID, Body: jsonrpc.SingleLine(e.data.Body), Payer: r.payer}
	for r.events.Len() >= replayEvents || r.bytes+size > ReplayBytes || !e.data.pay(r.budget) {
		if r.events.Len() == 0 {
			return
		}
		old := r.events.Pop().data
		r.bytes -= old.Size()
		Settle(r.budget, old)
	}
	r.bytes += size
	r.events.Push(e)
}

// after returns the kept events of a stream that follow seq.
func (r *replay) after(stream, seq uint64) []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []event
	for _, e := range r.events.items[r.events.off:] {
		if e.stream == stream && e.seq > seq {
			events = append(events, e)
		}
	}
	return events
}

// find returns the response of a stream; nil if it is fully read or unknown.
func (r *replay) find(stream uint64) *Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[stream]
}

// forget drops a response that is fully read.
func (r *replay) forget(stream uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streams, stream)
	if i := slices.Index(r.orphans, stream); i >= 0 {
		r.orphans = slices.Delete(r.orphans, i, i+1)
	}
}

// orphan keeps a finished response that is not fully read. Beyond replayStreams the oldest one is abandoned. It
// reports false if the response cannot be kept.
func (r *replay) orphan(stream uint64, size int) bool {
	r.mu.Lock()
	if r.over || size > ReplayBytes {
		delete(r.streams, stream)
		r.mu.Unlock()
		return false
	}
	if !slices.Contains(r.orphans, stream) {
		r.orphans = append(r.orphans, stream)
	}
	var oldest *Response
	if len(r.orphans) > replayStreams {
		oldest = r.streams[r.orphans[0]]
		delete(r.streams, r.orphans[0])
		r.orphans = r.orphans[1:]
	}
	r.mu.Unlock() // unlock: newCursor is called with a response locked
	if oldest != nil {
		oldest.abandonUnread()
	}
	return true
}

// clear drops everything after the session has ended.
func (r *replay) clear() {
	r.mu.Lock()
	var unread []*Response
	for _, stream := range r.orphans {
		unread = append(unread, r.streams[stream])
	}
	for r.events.Len() > 0 {
		Settle(r.budget, r.events.Pop().data)
	}
	r.over, r.bytes = true, 0
	r.streams, r.orphans = nil, nil
	r.mu.Unlock() // unlock: newCursor is called with a response locked
	for _, a := range unread {
		a.abandonUnread()
	}
}

// ParseEventID splits an event id into stream and number.
func ParseEventID(id string) (stream, seq uint64, ok bool) {
	a, b, found := strings.Cut(id, "-")
	stream, err := strconv.ParseUint(a, 10, 64)
	if !found || err != nil {
		return 0, 0, false
	}
	seq, err = strconv.ParseUint(b, 10, 64)
	return stream, seq, err == nil
}
