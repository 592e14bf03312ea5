package output

import (
	"net/http"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// Outputs is the shared, immutable configuration of an edge's outputs.
type Outputs struct {
	Budget    *limit.Budget
	Bound     int // bytes queued on the stream of a response, or on a shared stream
	Heartbeat time.Duration
	Now       func() time.Duration
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
	if m.batch != nil {
		w.WriteHeader(status)
		b, err := m.put(nil, func(b []byte) error { return writePieces(w, b) })
		if err == nil {
			_, _ = w.Write(b)
		}
		return
	}
	if len(m.Body) < largeBody {
		w.WriteHeader(status)
		b := make([]byte, 0, m.Size())
		_, _ = w.Write(m.Append(b))
		return
	}
	head := m.appendHead(nil)
	tail := m.tail()
	h["Content-Length"] = []string{strconv.Itoa(len(head) + len(m.Body) + len(tail))}
	w.WriteHeader(status)
	_, _ = w.Write(head)
	if writePieces(w, m.Body) == nil {
		_, _ = w.Write([]byte(tail))
	}
}
