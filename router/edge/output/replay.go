package output

import (
	"strconv"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// ReplayBytes limits the bytes of the events that a session keeps for replay.
const ReplayBytes = 1 << 20

// replayEvents limits the number of these events.
const replayEvents = 256

// retryAfter is the reconnection delay of clients in milliseconds.
const retryAfter = "1000"

// replay keeps the latest events of a session's streams.
type replay struct {
	budget *limit.Budget
	payer  string // the caller of the session

	mu      sync.Mutex
	numbers uint64
	events  Queue[event]
	bytes   int
	streams map[uint64]*Response // that are being written
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

// newCursor returns the cursor of a new response, which can be resumed until forget. resp may be nil. Number 0 is the
// stream of the session.
func (r *replay) newCursor(resp *Response) *cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers++
	if resp != nil && !r.over {
		if r.streams == nil {
			r.streams = make(map[uint64]*Response)
		}
		r.streams[r.numbers] = resp
	}
	return &cursor{replay: r, stream: r.numbers}
}

// logSink writes messages to the replay log alone.
type logSink struct{ cursor *cursor }

func (s logSink) write(ms []Message) error {
	for _, m := range ms {
		s.cursor.seq++
		s.cursor.replay.keep(event{s.cursor.stream, s.cursor.seq, m})
	}
	return nil
}

func (s logSink) heartbeat() error { return nil }

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

// find returns the response of a stream that is being written; else nil.
func (r *replay) find(stream uint64) *Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[stream]
}

// forget drops a response that is written.
func (r *replay) forget(stream uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streams, stream)
}

// clear drops everything after the session has ended.
func (r *replay) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.events.Len() > 0 {
		Settle(r.budget, r.events.Pop().data)
	}
	r.over, r.bytes, r.streams = true, 0, nil
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
