package edge

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// accept says which kinds of answer a client takes.
type accept struct{ json, events bool }

// accepts reads the Accept header. A client that says nothing takes everything, one that names neither
// kind gets JSON.
func accepts(h http.Header) accept {
	values := h["Accept"]
	if len(values) == 0 {
		return accept{true, true}
	}
	var a accept
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "", "*/*":
				a.json, a.events = true, true
			case "application/json", "application/*":
				a.json = true
			case "text/event-stream", "text/*":
				a.events = true
			}
		}
	}
	if !a.events {
		a.json = true
	}
	return a
}

// answer is the answer to one POST: undecided at first, then either one JSON body or an event stream,
// which whatever comes before the response makes of it. The mutex of the stream guards the fields.
type answer struct {
	stream
	out    *outputs
	w      http.ResponseWriter
	gone   <-chan struct{} // closed when the connection ends
	conn   *conn           // see OnePiece
	accept accept
	status func(code int) int // the HTTP status for the code of an error; nil = 200
	replay *replay
	since  time.Duration // when it began

	prefer bool // a stream rather than JSON, where the client takes both
	cursor *cursor
	pump   chan struct{} // closed when writing the stream on this connection has ended; nil = undecided
	ready  bool          // final is set
	final  message
}

// begin prepares the answer to r.
func (a *answer) begin(out *outputs, w http.ResponseWriter, r *http.Request, status func(code int) int) {
	a.out = out
	a.w = w
	a.gone = r.Context().Done()
	a.conn = connOf(r)
	a.accept = accepts(r.Header)
	a.status = status
	a.since = out.now()
}

// open makes the answer an event stream, if the client takes one.
func (a *answer) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.openLocked(false)
}

// favour makes the answer an event stream once there is something to send, if the client takes one.
func (a *answer) favour() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prefer = true
}

func (a *answer) openLocked(beat bool) bool {
	if a.pump != nil {
		return true
	}
	if !a.accept.events || a.ready || a.closed {
		return false
	}
	a.init(a.out.budget, a.out.bound)
	if a.replay != nil {
		a.cursor = a.replay.newCursor(a)
		a.cursor.prime = a.prefer
	}
	a.pump = make(chan struct{})
	a.out.eventHeaders(a.w.Header())
	w := newEventSink(a.w, a.cursor, a.conn)
	a.out.spawn("writing a stream", func() {
		defer close(a.pump)
		a.read(a.attach(), w, a.gone, beat)
	})
	return true
}

// read writes the stream to a connection until it is done or the connection ends. beat begins with a sign of life.
func (a *answer) read(t *turn, w *eventSink, gone <-chan struct{}, beat bool) {
	err := context.Canceled // if writing panics
	defer func() {
		if err == errReplaced || err == nil && a.cursor == nil { // everything is written
			a.detach(t)
		} else {
			a.leave(t)
		}
	}()
	if beat {
		_ = w.beat() // a broken connection shows in what follows
	}
	err = a.run(t, gone, w, a.out.heartbeat)
}

// leave ends a turn that nobody takes over. What can be resumed is kept.
func (a *answer) leave(t *turn) {
	a.detach(t)
	if a.cursor == nil {
		a.abandon()
		return
	}
	a.mu.Lock()
	a.bound = replayBytes
	finished := a.closed
	a.mu.Unlock()
	if finished {
		a.keep()
	}
}

// keep leaves what was not read to a client that comes back for it.
func (a *answer) keep() {
	a.mu.Lock()
	unread, size, busy := a.stream.ready.len() > 0, a.bytes, a.turn != nil
	a.mu.Unlock()
	switch {
	case busy:
	case !unread:
		a.replay.forget(a.cursor.stream)
	case !a.replay.orphan(a.cursor.stream, size):
		a.abandon()
	}
}

// quiet opens the stream, and so shows a sign of life, when nothing was heard of the answer for long.
func (a *answer) quiet(now, heartbeat time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pump == nil && now-a.since >= heartbeat {
		a.openLocked(true)
	}
}

func (a *answer) lost() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream.lost
}

// send queues a message. The response of an undecided answer is kept for finish.
func (a *answer) send(l *lane, m message, last bool) bool {
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
	if m.paid == 0 && m.batch == nil && m.size() > smallMessage {
		m.paid = m.size()
		a.out.budget.Charge(m.payer, m.paid)
	}
	a.final, a.ready = m, true
	return true
}

// streaming reports whether the headers of the answer are gone.
func (a *answer) streaming() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pump != nil
}

// finish completes the answer once all handlers have returned. Without a response, which is so for
// cancelled requests, it just ends.
func (a *answer) finish() {
	a.mu.Lock()
	streaming := a.pump != nil
	a.closed = true
	if streaming {
		a.signal()
	}
	final := a.final
	a.final = message{} // a timer that was stopped may keep the request for a while: not its result, too
	a.mu.Unlock()
	defer settle(a.out.budget, final)
	switch {
	case streaming:
		<-a.pump
		if a.cursor != nil {
			a.keep()
		}
	case !a.ready && a.accept.events:
		a.out.eventHeaders(a.w.Header())
		a.w.WriteHeader(http.StatusOK)
	case !a.ready:
		a.w.WriteHeader(http.StatusNoContent)
	case a.accept.json && !(a.prefer && a.accept.events):
		a.out.writeMessage(a.w, a.httpStatus(final), final)
	default:
		a.finishAsStream(final)
	}
}

// finishAsStream writes the response of an undecided answer as an event stream of its own.
func (a *answer) finishAsStream(final message) {
	a.out.eventHeaders(a.w.Header())
	if a.replay != nil {
		a.cursor = a.replay.newCursor(a)
		a.cursor.prime, a.cursor.once = a.prefer, true
		defer a.replay.forget(a.cursor.stream)
	}
	w := newEventSink(a.w, a.cursor, nil)
	err := w.writeLast(final)
	if a.replay != nil && (err != nil || a.isGone()) {
		a.replay.keep(event{a.cursor.stream, a.cursor.seq, final})
	}
}

// isGone reports whether the connection has ended.
func (a *answer) isGone() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// httpStatus is the status of a plain response.
func (a *answer) httpStatus(final message) int {
	if a.status == nil || final.form != failure {
		return http.StatusOK
	}
	code, _ := strconv.Atoi(string(jsonrpc.Get(final.body, "code")))
	return a.status(code)
}
