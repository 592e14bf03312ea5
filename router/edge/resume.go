package edge

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// get opens a session's own stream, or resumes the stream that Last-Event-ID names.
func (t *streamable) get(w http.ResponseWriter, r *http.Request) {
	src, id, ok := t.named(w, r)
	if !ok {
		return
	}
	if id == "" {
		t.edge.notAllowed(w, "POST, OPTIONS") // without a session there is no such stream
		return
	}
	s, err := t.session(src, id)
	if err != nil {
		t.edge.noSession(w, "", err)
		return
	}
	t.settle(s, src, "")
	if !accepts(r.Header).events {
		t.edge.writeError(w, http.StatusNotAcceptable, "", &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: "Accept must allow text/event-stream"})
		return
	}
	s.touch()
	defer s.touch()
	number, seq := uint64(0), uint64(0)
	last := r.Header.Get("Last-Event-ID")
	if last != "" && s.replay != nil {
		if number, seq, ok = parseEventID(last); !ok {
			t.edge.noEvents(w)
			return
		}
	}
	if number > 0 {
		t.edge.resume(w, r, s, number, seq)
		return
	}
	s.readers.Add(1)
	defer s.readers.Add(-1)
	turn := s.own.attach()
	defer s.own.abandonUnread() // of a session that has ended meanwhile
	defer s.own.detach(turn)
	t.edge.eventHeaders(w.Header())
	sink := newEventSink(w, s.ownCursor, connOf(r))
	var missed []event
	if last != "" && s.replay != nil {
		missed = s.replay.after(0, seq)
	}
	if sink.resend(missed) == nil {
		_ = s.own.run(turn, r.Context().Done(), sink, t.edge.heartbeat) // the client sees that it ended
	}
}

func (e *Edge) noEvents(w http.ResponseWriter) {
	e.writeError(w, http.StatusBadRequest, "", &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidRequest, Message: "Last-Event-ID names no stream that can be resumed"})
}

// resume sends what a broken answer stream still has to say.
func (e *Edge) resume(w http.ResponseWriter, r *http.Request, s *session, number, seq uint64) {
	a := s.replay.find(number)
	if a == nil {
		events := s.replay.after(number, seq)
		if len(events) == 0 {
			e.noEvents(w)
			return
		}
		e.eventHeaders(w.Header())
		sink := newEventSink(w, &cursor{stream: number}, connOf(r))
		_ = sink.resend(events) // the client comes again if it fails
		return
	}
	s.readers.Add(1)
	defer s.readers.Add(-1)
	turn := a.attach()
	e.eventHeaders(w.Header())
	sink := newEventSink(w, a.cursor, connOf(r))
	if sink.resend(s.replay.after(number, seq)) != nil {
		a.leave(turn)
		return
	}
	a.read(turn, sink, r.Context().Done(), false)
}
