package edge

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// ownBytes bounds what waits on a session's own stream, if only unrelated messages go there.
const ownBytes = 1 << 20

// ownStream is a session's own stream: that of GET for unrelated messages, or the one of SSE and stdio for everything.
type ownStream struct {
	stream
	lane    lane         // of messages that belong to no request
	replay  *replay      // of all streams of the session; nil where they cannot be resumed
	cursor  *cursor      // belongs to who writes the stream; nil where it cannot be resumed
	readers atomic.Int32 // connections that read it
}

// initShared prepares a stream that also the responses of the session go to.
func (s *ownStream) initShared(out *outputs) {
	s.stream.shared = true
	s.init(out.budget, out.bound)
}

// initOwn prepares a stream for unrelated messages. Where the streams of the session can be resumed, payer is charged for
// what is kept.
func (s *ownStream) initOwn(budget *limit.Budget, resumable bool, payer string) {
	s.init(budget, ownBytes)
	if resumable {
		s.replay = &replay{budget: budget, payer: payer}
		s.cursor = &cursor{replay: s.replay}
	}
}

// startAt numbers streams and events from beyond a base on, so that they differ from those of a former session.
func (s *ownStream) startAt(base uint64) {
	if s.replay != nil {
		s.replay.numbers, s.cursor.seq = base, base
	}
}

// attached reports whether a connection reads the stream.
func (s *ownStream) attached() bool { return s.readers.Load() > 0 }

// send queues a message that belongs to no request.
func (s *ownStream) send(m message) bool { return s.put(&s.lane, m, false) }

// answer queues a response that no exchange sends.
func (s *ownStream) answer(m message) { s.put(&lane{}, m, true) }

// pipe returns the outlet of requests whose responses go to the stream.
func (s *ownStream) pipe() outlet { return pipe{&s.stream} }

// end writes what is queued, if anybody reads it, and drops the rest.
func (s *ownStream) end() {
	s.close()
	s.abandonUnread()
	if s.replay != nil {
		s.replay.clear()
	}
}

// writeEvents writes the stream to a connection until one of them ends, beginning with what follows the event seq if last
// is set.
func (s *ownStream) writeEvents(out *outputs, w http.ResponseWriter, r *http.Request, last bool, seq uint64) {
	s.readers.Add(1)
	defer s.readers.Add(-1)
	turn := s.attach()
	defer s.abandonUnread() // of a session that has ended meanwhile
	defer s.detach(turn)
	out.eventHeaders(w.Header())
	sink := newEventSink(w, s.cursor, connOf(r))
	var missed []event
	if last && s.replay != nil {
		missed = s.replay.after(0, seq)
	}
	if sink.resend(missed) == nil {
		_ = s.run(turn, r.Context().Done(), sink, out.heartbeat) // the client sees that it ended
	}
}

// writeOnly writes the stream to its only connection until one of them ends, beginning with an endpoint event.
func (s *ownStream) writeOnly(out *outputs, w http.ResponseWriter, r *http.Request, endpoint string) {
	s.readers.Add(1)
	turn := s.attach()
	defer s.detach(turn)
	out.eventHeaders(w.Header())
	sink := newEventSink(w, nil, connOf(r))
	if sink.event("endpoint", endpoint) == nil {
		_ = s.run(turn, r.Context().Done(), sink, out.heartbeat) // the client sees that it ended
	}
	s.abandon()
}

// writeLines attaches w, and returns a function that writes the stream to it as lines until one of them ends.
func (s *ownStream) writeLines(w io.Writer) func() error {
	s.readers.Add(1)
	turn := s.attach()
	return func() error {
		defer s.abandon()
		defer s.detach(turn)
		return s.run(turn, nil, &lineSink{w: w}, 0)
	}
}

// resume writes to a connection what the client has not read of a response: what follows the event seq of a stream. It is
// false if there is nothing.
func (s *ownStream) resume(out *outputs, w http.ResponseWriter, r *http.Request, number, seq uint64) bool {
	a := s.replay.find(number)
	if a == nil {
		events := s.replay.after(number, seq)
		if len(events) == 0 {
			return false
		}
		out.eventHeaders(w.Header())
		sink := newEventSink(w, &cursor{stream: number}, connOf(r))
		_ = sink.resend(events) // the client comes again if it fails
		return true
	}
	s.readers.Add(1)
	defer s.readers.Add(-1)
	turn := a.attach()
	out.eventHeaders(w.Header())
	sink := newEventSink(w, a.cursor, connOf(r))
	if sink.resend(s.replay.after(number, seq)) != nil {
		a.leave(turn)
		return true
	}
	a.read(turn, sink, r.Context().Done(), false)
	return true
}
