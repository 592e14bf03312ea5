package output

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// sessionBytes limits the bytes queued on a session stream that carries no responses.
const sessionBytes = 1 << 20

// SessionStream is the stream of a session. Over streamable HTTP it is read by GET and carries messages that belong
// to no request; on HTTP+SSE and stdio it carries all messages.
type SessionStream struct {
	stream
	queue   requestQueue // messages that belong to no request
	replay  *replay      // of all streams of the session; nil if not resumable
	cursor  *cursor      // used only by the writer; nil if not resumable
	readers atomic.Int32 // number of reading connections
}

// InitShared prepares a stream that carries all messages of the session.
func (s *SessionStream) InitShared(out *Outputs) {
	s.stream.shared = true
	s.init(out.Budget, out.Bound)
}

// Init prepares a stream for messages that belong to no request. If resumable, payer is charged for kept events.
func (s *SessionStream) Init(budget *limit.Budget, resumable bool, payer string) {
	s.init(budget, sessionBytes)
	if resumable {
		s.replay = &replay{budget: budget, payer: payer}
		s.cursor = &cursor{replay: s.replay}
	}
}

// StartAt makes stream and event numbers greater than base, so that they differ from those before a restart.
func (s *SessionStream) StartAt(base uint64) {
	if s.replay != nil {
		s.replay.numbers, s.cursor.seq = base, base
	}
}

// Resumable reports whether clients can resume the session's streams.
func (s *SessionStream) Resumable() bool { return s.replay != nil }

// Attached reports whether a connection reads the stream.
func (s *SessionStream) Attached() bool { return s.readers.Load() > 0 }

// Lost is closed when nobody can read the stream.
func (s *SessionStream) Lost() <-chan struct{} { return s.lost }

// Send queues a message that belongs to no request.
func (s *SessionStream) Send(m Message) bool { return s.put(&s.queue, m, false) }

// Respond queues a response that belongs to no exchange.
func (s *SessionStream) Respond(m Message) { s.put(&requestQueue{}, m, true) }

// Sender returns the Sender of a request whose response goes to the stream.
func (s *SessionStream) Sender() Sender { return &streamSender{stream: &s.stream} }

// streamSender sends the messages of one request on the stream of its session.
type streamSender struct {
	stream *stream
	queue  requestQueue
}

func (s *streamSender) Send(m Message, last bool) bool { return s.stream.put(&s.queue, m, last) }
func (s *streamSender) Open() bool                     { return true }
func (s *streamSender) PreferStream()                  {}
func (s *streamSender) Lost() <-chan struct{}          { return s.stream.lost }

// End ends the stream once it is written, at once if nobody reads it, and drops kept events.
func (s *SessionStream) End() {
	s.close()
	s.abandonUnread()
	if s.replay != nil {
		s.replay.clear()
	}
}

// WriteEvents writes the stream to a connection until one of them ends. If last is set, it begins after event seq.
func (s *SessionStream) WriteEvents(out *Outputs, w http.ResponseWriter, r *http.Request, last bool, seq uint64) {
	s.readers.Add(1)
	defer s.readers.Add(-1)
	writer := s.attach()
	defer s.abandonUnread() // of a session that has ended meanwhile
	defer s.detach(writer)
	out.SetEventHeaders(w.Header())
	sink := newEventSink(w, s.cursor, connOf(r))
	var missed []event
	if last && s.replay != nil {
		if seq > s.cursor.seq {
			seq = 0 // of the same session at another replica
		}
		missed = s.replay.after(0, seq)
	}
	if sink.resend(missed) == nil {
		_ = s.run(writer, r.Context().Done(), sink, out.Heartbeat) // the client sees the end of the stream
	}
}

// WriteEndpoint writes an endpoint event and then the stream to its only connection until one of them ends.
func (s *SessionStream) WriteEndpoint(out *Outputs, w http.ResponseWriter, r *http.Request, endpoint string) {
	s.readers.Add(1)
	writer := s.attach()
	defer s.detach(writer)
	out.SetEventHeaders(w.Header())
	sink := newEventSink(w, nil, connOf(r))
	if sink.event("endpoint", endpoint) == nil {
		_ = s.run(writer, r.Context().Done(), sink, out.Heartbeat) // the client sees the end of the stream
	}
	s.Abandon()
}

// WriteLines attaches w and returns a function that writes the stream to it as lines until one of them ends.
func (s *SessionStream) WriteLines(w io.Writer) func() error {
	s.readers.Add(1)
	writer := s.attach()
	return func() error {
		defer s.Abandon()
		defer s.detach(writer)
		return s.run(writer, nil, &lineSink{w: w}, 0)
	}
}

// Resume writes the unread part of a response, after event seq of stream number, to a connection. It reports false if
// there is none.
func (s *SessionStream) Resume(out *Outputs, w http.ResponseWriter, r *http.Request, number, seq uint64) bool {
	resp := s.replay.find(number)
	if resp == nil {
		events := s.replay.after(number, seq)
		if len(events) == 0 {
			return false
		}
		out.SetEventHeaders(w.Header())
		sink := newEventSink(w, &cursor{stream: number}, connOf(r))
		_ = sink.resend(events) // on failure the client reconnects
		return true
	}
	s.readers.Add(1)
	defer s.readers.Add(-1)
	writer := resp.attach()
	out.SetEventHeaders(w.Header())
	sink := newEventSink(w, resp.cursor, connOf(r))
	_ = sink.resend(s.replay.after(number, seq)) // later writes report a broken connection
	resp.serve(writer, r.Context().Done(), sink, out.Heartbeat)
	return true
}

// resumeTime is how long clients have to resume a response that they have lost: longer than retryAfter.
const resumeTime = 1500 * time.Millisecond

// Unread reports whether a response is being written, or was kept a short time ago for a client that has lost it.
func (s *SessionStream) Unread() bool {
	r := s.replay
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams) > 0 || time.Since(r.unread) < resumeTime
}

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
	events  []event
	bytes   int
	streams map[uint64]*Response // that are being written
	unread  time.Time            // when the last event was kept that was not sent
	over    bool
}

// event is one event that was sent, or whose sending failed.
type event struct {
	stream, seq uint64
	data        Message
}

// cursor numbers the events of one stream.
type cursor struct {
	replay    *replay
	stream    uint64
	seq       uint64
	retrySent bool // the retry time has been sent
	once      bool // the stream has a single event, kept only if writing it fails
	prime     bool // begin with an event without data, whose id lets the client resume
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
		s.cursor.replay.keepUnread(event{s.cursor.stream, s.cursor.seq, m})
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
	if c.retrySent {
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
	if !c.retrySent {
		c.retrySent = true
		b = append(b, "retry: "+retryAfter+"\n"...)
	}
	return b
}

// keepUnread keeps an event that was not sent.
func (r *replay) keepUnread(e event) {
	r.keep(e)
	r.noteUnread()
}

// noteUnread notes that something was kept just now that its client has not read.
func (r *replay) noteUnread() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread = time.Now()
}

// keep adds an event and drops the oldest ones beyond the limits. An event beyond the payer's limit is not kept.
func (r *replay) keep(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := e.data.Size()
	if r.over || size > ReplayBytes {
		return
	}
	if e.data.form == array {
		e.data = Whole(e.data.Append(nil))
	}
	e.data = Message{form: e.data.form, ID: e.data.ID, Body: jsonrpc.SingleLine(e.data.Body), Payer: r.payer}
	for len(r.events) >= replayEvents || r.bytes+size > ReplayBytes || !e.data.tryCharge(r.budget) {
		if len(r.events) == 0 {
			return
		}
		old := pop(&r.events).data
		r.bytes -= old.Size()
		Release(r.budget, old)
	}
	r.bytes += size
	r.events = append(r.events, e)
}

// after returns the kept events of a stream that follow seq.
func (r *replay) after(stream, seq uint64) []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []event
	for _, e := range r.events {
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
	for _, e := range r.events {
		Release(r.budget, e.data)
	}
	r.over, r.events, r.bytes, r.streams = true, nil, 0, nil
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
