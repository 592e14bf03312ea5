package output

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// acceptance says which kinds of answer a client takes.
type acceptance struct{ JSON, Events bool }

// ParseAccept reads the Accept header. A client that says nothing takes everything, one that names neither
// kind gets JSON.
func ParseAccept(h http.Header) acceptance {
	values := h["Accept"]
	if len(values) == 0 {
		return acceptance{true, true}
	}
	var a acceptance
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "", "*/*":
				a.JSON, a.Events = true, true
			case "application/json", "application/*":
				a.JSON = true
			case "text/event-stream", "text/*":
				a.Events = true
			}
		}
	}
	if !a.Events {
		a.JSON = true
	}
	return a
}

// Response is the answer to one POST: undecided at first, then either one JSON body or an event stream,
// which whatever comes before the response makes of it. The mutex of the stream guards the fields.
type Response struct {
	stream
	out    *Outputs
	w      http.ResponseWriter
	gone   <-chan struct{} // closed when the connection ends
	conn   *conn           // see OnePiece
	accept acceptance
	status func(code int) int // the HTTP status for the code of an error; nil = 200
	replay *replay
	since  time.Duration // when it began

	preferStream bool // a stream rather than JSON, where the client takes both
	cursor       *cursor
	pump         chan struct{} // closed when writing the stream on this connection has ended; nil = undecided
	ready        bool          // final is set
	final        Message
}

// Begin prepares the answer to r.
func (a *Response) Begin(out *Outputs, w http.ResponseWriter, r *http.Request, status func(code int) int) {
	a.out = out
	a.w = w
	a.gone = r.Context().Done()
	a.conn = connOf(r)
	a.accept = ParseAccept(r.Header)
	a.status = status
	a.since = out.Now()
}

// Open makes the answer an event stream, if the client takes one.
func (a *Response) Open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.openLocked(false)
}

// PreferStream makes the answer an event stream once there is something to send, if the client takes one.
func (a *Response) PreferStream() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.preferStream = true
}

func (a *Response) openLocked(beat bool) bool {
	if a.pump != nil {
		return true
	}
	if !a.accept.Events || a.ready || a.closed {
		return false
	}
	a.init(a.out.Budget, a.out.Bound)
	if a.replay != nil {
		a.cursor = a.replay.newCursor(a)
		a.cursor.primed = a.preferStream
	}
	a.pump = make(chan struct{})
	a.out.SetEventHeaders(a.w.Header())
	w := newEventSink(a.w, a.cursor, a.conn)
	a.out.Spawn("writing a stream", func() {
		defer close(a.pump)
		a.serve(a.attach(), w, a.gone, beat)
	})
	return true
}

// serve writes the stream to a connection until it is done or the connection ends. beat begins with a sign of life.
func (a *Response) serve(t *writer, w *eventSink, gone <-chan struct{}, beat bool) {
	err := context.Canceled // if writing panics
	defer func() {
		if err == errReplaced || err == nil && a.cursor == nil { // everything is written
			a.detach(t)
		} else {
			a.leave(t)
		}
	}()
	if beat {
		_ = w.heartbeat() // a broken connection shows in what follows
	}
	err = a.run(t, gone, w, a.out.Heartbeat)
}

// leave ends a turn that nobody takes over. What can be resumed is kept.
func (a *Response) leave(t *writer) {
	a.detach(t)
	if a.cursor == nil {
		a.Abandon()
		return
	}
	a.mu.Lock()
	a.bound = ReplayBytes
	finished := a.closed
	a.mu.Unlock()
	if finished {
		a.keep()
	}
}

// keep leaves what was not read to a client that comes back for it.
func (a *Response) keep() {
	a.mu.Lock()
	unread, size, busy := a.stream.ready.Len() > 0, a.bytes, a.turn != nil
	a.mu.Unlock()
	switch {
	case busy:
	case !unread:
		a.replay.forget(a.cursor.stream)
	case !a.replay.orphan(a.cursor.stream, size):
		a.Abandon()
	}
}

// KeepAlive opens the stream, and so shows a sign of life, when nothing was heard of the answer for long.
func (a *Response) KeepAlive(now, heartbeat time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pump == nil && now-a.since >= heartbeat {
		a.openLocked(true)
	}
}

func (a *Response) Lost() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream.Lost
}

// Send queues a message. The response of an undecided answer is kept for finish.
func (a *Response) Send(l *Lane, m Message, last bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.closed {
		return false
	}
	if a.pump != nil || !last && a.openLocked(false) {
		return a.putLocked(l, m, last)
	}
	if !last {
		return false
	}
	l.closed = true
	if m.Paid == 0 && m.Batch == nil && m.Size() > SmallMessage {
		m.Paid = m.Size()
		a.out.Budget.Charge(m.Payer, m.Paid)
	}
	a.final, a.ready = m, true
	return true
}

// Streaming reports whether the headers of the answer are gone.
func (a *Response) Streaming() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pump != nil
}

// UseReplay keeps what is written of the response for a client that comes back to the session.
func (a *Response) UseReplay(s *SessionStream) { a.replay = s.replay }

// Finish completes the answer once all handlers have returned. Without a response, which is so for
// cancelled requests, it just ends.
func (a *Response) Finish() {
	a.mu.Lock()
	streaming := a.pump != nil
	a.closed = true
	if streaming {
		a.signal()
	}
	final := a.final
	a.final = Message{} // a timer that was stopped may keep the request for a while: not its result, too
	a.mu.Unlock()
	defer Settle(a.out.Budget, final)
	switch {
	case streaming:
		<-a.pump
		if a.cursor != nil {
			a.keep()
		}
	case !a.ready && a.accept.Events:
		a.out.SetEventHeaders(a.w.Header())
		a.w.WriteHeader(http.StatusOK)
	case !a.ready:
		a.w.WriteHeader(http.StatusNoContent)
	case a.accept.JSON && !(a.preferStream && a.accept.Events):
		a.out.WriteMessage(a.w, a.httpStatus(final), final)
	default:
		a.finishAsStream(final)
	}
}

// finishAsStream writes the response of an undecided answer as an event stream of its own.
func (a *Response) finishAsStream(final Message) {
	a.out.SetEventHeaders(a.w.Header())
	if a.replay != nil {
		a.cursor = a.replay.newCursor(a)
		a.cursor.primed, a.cursor.once = a.preferStream, true
		defer a.replay.forget(a.cursor.stream)
	}
	w := newEventSink(a.w, a.cursor, nil)
	err := w.writeLast(final)
	if a.replay != nil && (err != nil || a.isGone()) {
		a.replay.keep(event{a.cursor.stream, a.cursor.seq, final})
	}
}

// isGone reports whether the connection has ended.
func (a *Response) isGone() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// httpStatus is the status of a plain response.
func (a *Response) httpStatus(final Message) int {
	if a.status == nil || final.form != failure {
		return http.StatusOK
	}
	code, _ := strconv.Atoi(string(jsonrpc.Get(final.Body, "code")))
	return a.status(code)
}
