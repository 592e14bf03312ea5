package edge

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// get opens a session's own stream, or resumes the stream that Last-Event-ID names.
func (t *streamable) get(w http.ResponseWriter, r *http.Request) {
	src, id, ok := t.bodyless(w, r)
	if !ok {
		return
	}
	if id == "" {
		t.reply.methodNotAllowed(w, "POST, OPTIONS") // only sessions have a GET stream
		return
	}
	s, err := t.edge.sessions.find(&t.surface, src, id)
	if err != nil {
		t.reply.noSession(w, "", err)
		return
	}
	t.completeHandshake(s, src, "")
	if !output.ParseAccept(r.Header).Events {
		t.reply.invalidRequest(w, http.StatusNotAcceptable, "", "Accept must allow text/event-stream")
		return
	}
	s.touch()
	defer s.touch()
	number, seq := uint64(0), uint64(0)
	last := r.Header.Get("Last-Event-ID")
	if last != "" && s.own.Resumable() {
		if number, seq, ok = output.ParseEventID(last); !ok {
			t.reply.noEvents(w)
			return
		}
	}
	if number > 0 {
		if !s.own.Resume(&t.edge.out, w, r, number, seq) {
			t.reply.noEvents(w)
		}
		return
	}
	s.own.WriteEvents(&t.edge.out, w, r, last != "", seq)
}
