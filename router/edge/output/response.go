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

// Response is the HTTP response to one POST. It becomes an event stream as soon as a message precedes the final one, or
// when nothing was sent for one heartbeat; else Finish decides its form. It is a Sender. The mutex of the stream guards
// the fields.
type Response struct {
	stream
	queue  requestQueue
	state  responseState
	out    *Outputs
	w      http.ResponseWriter
	gone   <-chan struct{} // closed when the connection ends
	conn   *conn           // see CoalesceWrites
	accept Accept
	status func(code int) int // HTTP status for an error code; nil = 200
	quiet  *time.Timer        // opens the stream after one heartbeat
	replay *replay            // of the session; nil if the response is not resumable

	preferStream bool // prefer a stream if the client accepts both, except for an error with an HTTP status
	cursor       *cursor
	written      chan struct{} // of a stream: closed when the writer of this connection ends
	final        Message       // while held
}

// Begin prepares the response to r. status returns the HTTP status of a JSON response for an error code; nil means
// 200. The response is resumable if session is; session may be nil.
func (resp *Response) Begin(
	out *Outputs, w http.ResponseWriter, r *http.Request, status func(code int) int, session *SessionStream,
) {
	resp.out = out
	resp.w = w
	resp.gone = r.Context().Done()
	resp.conn = connOf(r)
	resp.accept = ParseAccept(r.Header)
	resp.status = status
	if session != nil {
		resp.replay = session.replay
	}
	resp.quiet = time.AfterFunc(out.Heartbeat, func() {
		resp.mu.Lock()
		defer resp.mu.Unlock()
		if resp.state == undecided {
			resp.openLocked(true)
		}
	})
}

// Open implements Sender.
func (resp *Response) Open() bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.openLocked(false)
}

// PreferStream implements Sender.
func (resp *Response) PreferStream() {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	resp.preferStream = true
}

// Lost implements Sender.
func (resp *Response) Lost() <-chan struct{} {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.lost
}

// Send implements Sender. A final message that comes first is held for Finish.
func (resp *Response) Send(m Message, last bool) bool { return resp.send(&resp.queue, m, last) }

// Sender returns a Sender to the response with a queue of its own, for one request of a batch.
func (resp *Response) Sender() Sender { return &responseSender{Response: resp} }

type responseSender struct {
	*Response
	queue requestQueue
}

// Send implements Sender.
func (s *responseSender) Send(m Message, last bool) bool { return s.send(&s.queue, m, last) }

func (resp *Response) send(q *requestQueue, m Message, last bool) bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	switch {
	case q.closed:
		return false
	case resp.state == streaming, !last && resp.openLocked(false):
		return resp.putLocked(q, m, last)
	case !last || resp.state != undecided:
		return false
	}
	q.closed = true
	if m.Size() > SmallMessage {
		m.forceCharge(resp.out.Budget)
	}
	resp.state, resp.final = held, m
	return true
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
		w := resp.attach()
		if beat {
			_ = to.heartbeat() // later writes report a broken connection
		}
		resp.serve(w, resp.gone, to, resp.out.Heartbeat)
	})
	return true
}

// serve writes the stream to a connection until one of them ends. After that, a resumable response is written to the
// replay log until its client resumes it.
func (resp *Response) serve(w *writer, gone <-chan struct{}, to sink, heartbeat time.Duration) {
	err := context.Canceled // if writing panics
	defer func() {
		switch {
		case resp.cursor != nil && err != nil && !errors.Is(err, errReplaced):
			resp.replay.noteUnread() // what was being written is kept, too
			resp.out.Spawn("keeping a stream", func() { resp.serve(w, nil, logSink{resp.cursor}, 0) })
			return
		case resp.cursor != nil && err == nil:
			resp.replay.forget(resp.cursor.stream)
		case resp.cursor == nil && err != nil:
			resp.Abandon()
		}
		resp.detach(w)
	}()
	err = resp.run(w, gone, to, heartbeat)
}

// Finish completes the response once all handlers have returned. Without a final message, as for cancelled requests,
// the response just ends.
func (resp *Response) Finish() {
	resp.quiet.Stop()
	switch state, final := resp.finish(); {
	case state == streaming:
		<-resp.written
	case state == held:
		defer Release(resp.out.Budget, final)
		status := resp.httpStatus(final) // that of a stream is always 200
		if resp.accept.JSON && (status != http.StatusOK || !resp.preferStream || !resp.accept.Named) {
			resp.out.WriteMessage(resp.w, status, final)
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
	resp.final = Message{} // a late handler may still refer to the response, but must not retain its result
	resp.closed = true
	if before == streaming {
		resp.signal()
	} else {
		resp.state = finished
	}
	return before, final
}

// Discard refuses further messages. The caller answers the request itself.
func (resp *Response) Discard() {
	resp.quiet.Stop()
	resp.finish()
}

// finishAsStream writes the final message that was held as an event stream. It is kept for replay only if writing it
// fails.
func (resp *Response) finishAsStream(final Message) {
	resp.out.SetEventHeaders(resp.w.Header())
	if resp.replay != nil {
		resp.cursor = resp.replay.newCursor(nil)
		resp.cursor.prime, resp.cursor.once = resp.preferStream, true
	}
	err := newEventSink(resp.w, resp.cursor, nil).writeLast(final)
	if resp.replay != nil && (err != nil || resp.isGone()) {
		resp.replay.keepUnread(event{resp.cursor.stream, resp.cursor.seq, final})
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

// Streaming reports whether the response is an event stream whose headers have been sent.
func (resp *Response) Streaming() bool {
	resp.mu.Lock()
	defer resp.mu.Unlock()
	return resp.state == streaming
}

// httpStatus returns the status of a JSON response.
func (resp *Response) httpStatus(final Message) int {
	if resp.status == nil || final.form != failure {
		return http.StatusOK
	}
	code, _ := strconv.Atoi(string(jsonrpc.Get(final.Body, "code")))
	return resp.status(code)
}
