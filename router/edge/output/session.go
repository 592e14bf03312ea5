package output

import (
	"io"
	"net/http"
	"sync/atomic"

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
