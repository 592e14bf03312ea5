package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// outputs is what the outputs of one edge have in common. It never changes.
type outputs struct {
	budget    *limit.Budget
	bound     int // bytes that wait on the stream of one response, or on one shared by many
	heartbeat time.Duration
	now       func() time.Duration
	spawn     func(what string, f func()) // runs f on a goroutine that the edge waits for
	stopping  func() bool
}

// Header values that never change.
var (
	contentJSON   = []string{"application/json"}
	contentEvents = []string{"text/event-stream"}
	noCache       = []string{"no-cache"}
	keepAlive     = []string{"keep-alive"}
	closing       = []string{"close"}
	noBuffering   = []string{"no"}
)

// eventHeaders sets the headers of an event stream.
func (o *outputs) eventHeaders(h http.Header) {
	h["Content-Type"] = contentEvents
	h["Cache-Control"] = noCache
	h["Connection"] = keepAlive
	h["X-Accel-Buffering"] = noBuffering
	o.closeConnection(h)
}

// closeConnection has the connection closed after the response while the edge stops, so that the client sends its next
// request to another router.
func (o *outputs) closeConnection(h http.Header) {
	if o.stopping() {
		h["Connection"] = closing
	}
}

// writeMessage answers with one message as application/json.
func (o *outputs) writeMessage(w http.ResponseWriter, status int, m message) {
	h := w.Header()
	h["Content-Type"] = contentJSON
	o.closeConnection(h)
	if m.batch != nil {
		w.WriteHeader(status)
		b, err := m.put(nil, func(b []byte) error { return writePieces(w, b) })
		if err == nil {
			_, _ = w.Write(b)
		}
		return
	}
	if len(m.body) < largeBody {
		w.WriteHeader(status)
		b := make([]byte, 0, m.size())
		_, _ = w.Write(m.append(b))
		return
	}
	head := m.appendHead(nil)
	tail := m.tail()
	h["Content-Length"] = []string{strconv.Itoa(len(head) + len(m.body) + len(tail))}
	w.WriteHeader(status)
	_, _ = w.Write(head)
	if writePieces(w, m.body) == nil {
		_, _ = w.Write([]byte(tail))
	}
}
