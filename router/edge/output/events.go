package output

import (
	"errors"
	"io"
	"net/http"
)

// eventSink writes messages as server-sent events.
type eventSink struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	buf    []byte
	cursor *cursor // numbers the events of a resumable stream; else nil
	conn   *conn   // sends flushed bytes in one piece; may be nil
}

// largeBody is the size from which a body is written directly instead of being copied.
const largeBody = 32 << 10

func newEventSink(w http.ResponseWriter, c *cursor, on *conn) *eventSink {
	return &eventSink{w: w, rc: http.NewResponseController(w), cursor: c, conn: on}
}

// write sends events; those below largeBody in one piece.
func (s *eventSink) write(ms []Message) error {
	if err := s.putEvents(ms); err != nil {
		return err
	}
	return s.flush()
}

// writeLast writes the only event of a stream; the end of the HTTP handler flushes it.
func (s *eventSink) writeLast(m Message) error {
	if err := s.putEvents([]Message{m}); err != nil {
		return err
	}
	return s.put(s.buf)
}

// putEvents writes large events and leaves the rest in buf.
func (s *eventSink) putEvents(ms []Message) error {
	s.buf = s.buf[:0]
	if s.cursor != nil && s.cursor.prime {
		s.buf = s.cursor.appendPriming(s.buf)
	}
	for _, m := range ms {
		s.buf = append(s.buf, "event: message\n"...)
		if s.cursor != nil {
			s.buf = s.cursor.append(s.buf, m)
		}
		var err error
		if s.buf, err = m.put(append(s.buf, "data: "...), s.put); err != nil {
			return err
		}
		s.buf = append(s.buf, "\n\n"...)
	}
	return nil
}

// resend sends kept events again. If there are none, it sends a comment to show that the stream is open.
func (s *eventSink) resend(events []event) error {
	s.buf = s.buf[:0]
	for _, e := range events {
		s.buf = append(s.buf, "event: message\n"...)
		s.buf = s.cursor.lines(s.buf, e.seq)
		s.buf = append(s.buf, "data: "...)
		s.buf = append(e.data.Append(s.buf), "\n\n"...)
	}
	if len(events) == 0 {
		return s.heartbeat()
	}
	return s.flush()
}

// event sends one event of a given name.
func (s *eventSink) event(name, data string) error {
	s.buf = append(s.buf[:0], "event: "+name+"\ndata: "+data+"\n\n"...)
	return s.flush()
}

// heartbeat sends a comment. The first comment of a resumable stream carries the id of the last event.
func (s *eventSink) heartbeat() error {
	s.buf = append(s.buf[:0], ": keep-alive\n"...)
	if s.cursor != nil {
		s.buf = s.cursor.appendStart(s.buf)
	}
	s.buf = append(s.buf, '\n')
	return s.flush()
}

func (s *eventSink) put(b []byte) error { return writePieces(s.w, b) }

func (s *eventSink) flush() error {
	s.conn.hold()
	err := s.put(s.buf)
	if err == nil {
		err = s.rc.Flush()
	}
	if sent := s.conn.release(); sent != nil {
		return sent
	}
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// pieceSize is the number of bytes of a large body per write, each within one writeTimeout.
const pieceSize = 1 << 20

// writePieces writes a large body in pieces, so that the write deadline applies to each.
func writePieces(w io.Writer, body []byte) error {
	for len(body) > 0 {
		n, err := w.Write(body[:min(len(body), pieceSize)])
		if err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}
