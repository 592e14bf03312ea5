// Package output writes messages to clients: as one JSON body, as server-sent events or as lines.
//
// A request sends its messages through a [Sender]. [Response] is the HTTP response to one POST, [SessionStream] the
// stream of a session, and [Batch] collects the responses to a batch. A [Message] waits in the queue of its request on
// a stream, which has one writer. [Outputs] is the shared configuration of an edge's outputs. [CoalesceWrites] makes an
// HTTP server send each event in one piece.
//
// Guarantees:
//
//   - Concurrency: all functions are safe for concurrent use, but one goroutine begins and finishes a Response.
//   - Ordering: messages leave a stream in order of arrival. Nothing follows the response to a request.
//   - Bounds: 1,000 messages wait for each request, and a stream bounds their bytes. Bytes queued, being written or
//     kept for replay are charged to their payer. A full queue drops its oldest droppable message.
//   - Ends: a stream ends once it is closed and written, or is abandoned when nobody can read it. Writing goroutines
//     are started with Outputs.Spawn and end with their stream or connection.
package output

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// Sender sends the messages of one request to its client.
type Sender interface {
	// Send queues a message and reports whether it will be written. Nothing is sent after the last one.
	Send(m Message, last bool) bool
	// Open makes the response an event stream, and reports whether the client accepts one.
	Open() bool
	// PreferStream makes the response an event stream once a message is sent, if the client accepts one.
	PreferStream()
	// Lost is closed when nobody can read the messages. It may be called only after Open has returned true.
	Lost() <-chan struct{}
}

// Outputs is the shared, immutable configuration of an edge's outputs.
type Outputs struct {
	Budget    *limit.Budget
	Bound     int                         // bytes queued on the stream of a response, or on a shared stream
	Heartbeat time.Duration               // quiet time before a comment is sent
	Spawn     func(what string, f func()) // runs f in a goroutine that the edge waits for
	Stopping  func() bool
}

// Shared values of headers; they must not be changed.
var (
	contentJSON   = []string{"application/json"}
	contentEvents = []string{"text/event-stream"}
	noCache       = []string{"no-cache"}
	keepAlive     = []string{"keep-alive"}
	closing       = []string{"close"}
	noBuffering   = []string{"no"}
)

// SetEventHeaders sets the headers of an event stream.
func (o *Outputs) SetEventHeaders(h http.Header) {
	h["Content-Type"] = contentEvents
	h["Cache-Control"] = noCache
	h["Connection"] = keepAlive
	h["X-Accel-Buffering"] = noBuffering
	o.CloseConnection(h)
}

// CloseConnection closes the connection after the response while the edge stops, so that the client's next request
// reaches another router.
func (o *Outputs) CloseConnection(h http.Header) {
	if o.Stopping() {
		h["Connection"] = closing
	}
}

// WriteMessage writes a response with one message as application/json.
func (o *Outputs) WriteMessage(w http.ResponseWriter, status int, m Message) {
	h := w.Header()
	h["Content-Type"] = contentJSON
	o.CloseConnection(h)
	if m.form == array {
		w.WriteHeader(status)
		if rest, err := m.put(nil, w); err == nil {
			_, _ = w.Write(rest)
		}
		return
	}
	if len(m.Body) < largeBody {
		w.WriteHeader(status)
		_, _ = w.Write(m.Append(make([]byte, 0, m.Size())))
		return
	}
	head, tail := m.appendHead(nil), m.tail()
	h["Content-Length"] = []string{strconv.Itoa(len(head) + len(m.Body) + len(tail))}
	w.WriteHeader(status)
	_, _ = w.Write(head)
	if writePieces(w, m.Body) == nil {
		_, _ = w.Write([]byte(tail))
	}
}

// Accept describes the kinds of response a client accepts.
type Accept struct {
	JSON, Events bool
	Named        bool // event streams are named explicitly, not by a wildcard
}

// ParseAccept reads the Accept header. A client without the header accepts both kinds; a client that names neither
// gets JSON.
func ParseAccept(h http.Header) Accept {
	values := h["Accept"]
	if len(values) == 0 {
		return Accept{JSON: true, Events: true}
	}
	var a Accept
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "", "*/*":
				a.JSON, a.Events = true, true
			case "application/json", "application/*":
				a.JSON = true
			case "text/event-stream":
				a.Events, a.Named = true, true
			case "text/*":
				a.Events = true
			}
		}
	}
	a.JSON = a.JSON || !a.Events
	return a
}
