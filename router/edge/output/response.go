package output

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// responseState is the state of a Response.
type responseState uint8

const (
	undecided responseState = iota // nothing has been sent
	streaming                      // an event stream; its headers have been sent
	held                           // the final message came first; Finish writes it in the form that suits it
	finished                       // Finish has begun; an event stream stays streaming
)

// Response is the HTTP response to one POST. It becomes an event stream as soon as a message precedes the final one;
// else Finish decides its form. It is an Outlet. The mutex of the stream guards the fields.
type Response struct {
	stream
	state  responseState
	out    *Outputs
	w      http.ResponseWriter
	gone   <-chan struct{} // closed when the connection ends
	conn   *conn           // see CoalesceWrites
	accept Accept
	status func(code int) int // HTTP status for an error code; nil = 200
	replay *replay
	began  time.Duration

	preferStream bool // prefer a stream if the client accepts both
	cursor       *cursor
	written      chan struct{} // of a stream: closed when this connection's writer ends
	final        Message       // while held
}

// Begin prepares the response to r. status returns the HTTP status of a JSON response for an error code; nil means
// 200.
func (resp *Response) Begin(out *Outputs, w http.ResponseWriter, r *http.Request, status func(code int) int) {
	resp.out = out
	resp.w = w
	resp.gone = r.Context().Done()
	resp.conn = connOf(r)
	resp.accept = ParseAccept(r.Header)
	resp.status = status
	resp.began = out.Now()
}

// Open implements Outlet.
func (resp *Response) Open() bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.openLocked(false)
}

// PreferStream implements Outlet.
func (resp *Response) PreferStream() {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	resp.preferStream = true
}

// openLocked makes an undecided response an event stream and reports whether it is one. With beat it sends a heartbeat
// first.
func (resp *Response) openLocked(beat bool) bool {
	if resp.state != undecided || !resp.accept.Events {
		return resp.state == streaming
	}
	resp.state = streaming
	resp.init(resp.out.Budget, resp.out.Bound)
	if resp.replay != nil {
		resp.cursor = resp.replay.newCursor(resp)
		resp.cursor.prime = resp.preferStream
	}
	resp.written = make(chan struct{})
	resp.out.SetEventHeaders(resp.w.Header())
	to := newEventSink(resp.w, resp.cursor, resp.conn)
	resp.out.Spawn("writing a stream", func() {
		defer close(resp.written)
		resp.serve(resp.attach(), to, resp.gone, beat)
	})
	return true
}

// serve writes the stream to a connection until one of them ends. With beat it sends a heartbeat first.
func (resp *Response) serve(w *writer, to *eventSink, gone <-chan struct{}, beat bool) {
	err := context.Canceled // if writing panics
	defer func() {
		if errors.Is(err, errReplaced) || err == nil && resp.cursor == nil { // everything has been written
			resp.detach(w)
		} else {
			resp.leave(w)
		}
	}()
	if beat {
		_ = to.heartbeat() // later writes report a broken connection
	}
	err = resp.run(w, gone, to, resp.out.Heartbeat)
}

// leave detaches a writer without a successor. Resumable messages are kept.
func (resp *Response) leave(w *writer) {
	resp.detach(w)
	if resp.cursor == nil {
		resp.Abandon()
		return
	}
	resp.mu.Lock()
	resp.bound = ReplayBytes
	finished := resp.closed
	resp.mu.Unlock()
	if finished {
		resp.keep()
	}
}

// keep keeps unread messages for a client that resumes the stream.
func (resp *Response) keep() {
	resp.mu.Lock()
	unread, size, attached := resp.order.Len() > 0, resp.bytes, resp.writer != nil
	resp.mu.Unlock()
	switch {
	case attached:
	case !unread:
		resp.replay.forget(resp.cursor.stream)
	case !resp.replay.orphan(resp.cursor.stream, size):
		resp.Abandon()
	}
}

// KeepAlive implements Outlet. It opens the stream, which sends a heartbeat, if nothing was sent for one interval.
func (resp *Response) KeepAlive(now, heartbeat time.Duration) {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	if resp.state == undecided && now-resp.began >= heartbeat {
		resp.openLocked(true)
	}
}

// Lost implements Outlet.
func (resp *Response) Lost() <-chan struct{} {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.lost
}

// Send implements Outlet. A final message that comes first is held for Finish.
func (resp *Response) Send(l *Lane, m Message, last bool) bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	switch {
	case l.closed:
		return false
	case resp.state == streaming, !last && resp.openLocked(false):
		return resp.putLocked(l, m, last)
	case !last || resp.state != undecided:
		return false
	}
	l.closed = true
	if m.Paid == 0 && m.batch == nil && m.Size() > SmallMessage {
		m.Paid = m.Size()
		resp.out.Budget.Charge(m.Payer, m.Paid)
	}
	resp.state, resp.final = held, m
	return true
}

// Streaming reports whether the response is an event stream whose headers have been sent.
func (resp *Response) Streaming() bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.state == streaming
}

// UseReplay makes the response resumable on the session of s. It must follow Begin.
func (resp *Response) UseReplay(s *SessionStream) { resp.replay = s.replay }

// Finish completes the response once all handlers have returned. Without a final message, as for cancelled requests,
// the response just ends.
func (resp *Response) Finish() {
	switch state, final := resp.finish(); {
	case state == streaming:
		<-resp.written
		if resp.cursor != nil {
			resp.keep()
		}
	case state == held:
		defer Settle(resp.out.Budget, final)
		if resp.accept.JSON && !(resp.preferStream && resp.accept.Named) {
			resp.out.WriteMessage(resp.w, resp.httpStatus(final), final)
		} else {
			resp.finishAsStream(final)
		}
	case resp.accept.Events:
		resp.out.SetEventHeaders(resp.w.Header())
		resp.w.WriteHeader(http.StatusOK)
	default:
		resp.w.WriteHeader(http.StatusNoContent)
	}
}

// finish refuses further messages. It returns the state before and takes the final message that was held.
func (resp *Response) finish() (before responseState, final Message) {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	before, final = resp.state, resp.final
	resp.final = Message{} // stopped timers may still refer to the request, but must not retain its result
	resp.closed = true
	if before == streaming {
		resp.signal()
	} else {
		resp.state = finished
	}
	return before, final
}

// finishAsStream writes the final message that was held as an event stream.
func (resp *Response) finishAsStream(final Message) {
	resp.out.SetEventHeaders(resp.w.Header())
	if resp.replay != nil {
		resp.cursor = resp.replay.newCursor(resp)
		resp.cursor.prime, resp.cursor.once = resp.preferStream, true
		defer resp.replay.forget(resp.cursor.stream)
	}
	err := newEventSink(resp.w, resp.cursor, nil).writeLast(final)
	if resp.replay != nil && (err != nil || resp.isGone()) {
		resp.replay.keep(event{resp.cursor.stream, resp.cursor.seq, final})
	}
}

// isGone reports whether the connection has ended.
func (resp *Response) isGone() bool {
	select {
	case <-resp.gone:
		return true
	default:
		return false
	}
}

// httpStatus returns the status of a JSON response.
func (resp *Response) httpStatus(final Message) int {
	if resp.status == nil || final.form != failure {
		return http.StatusOK
	}
	code, _ := strconv.Atoi(string(jsonrpc.Get(final.Body, "code")))
	return resp.status(code)
}
