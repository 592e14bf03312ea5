package output

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Relay writes the response of another router to a client, events in whole pieces. It knows which requests have been
// answered, so that a response that is cut off can be completed. It is used by one goroutine at a time.
type Relay struct {
	http.ResponseWriter
	out      *Outputs
	sink     *eventSink
	requests func() []jsonrpc.ID
	pending  []jsonrpc.ID // requests that have not been answered by events
	begun    bool
	events   bool   // the response is an event stream
	part     []byte // of an event that is not complete
	torn     bool   // the beginning of the event has been written
	head     []byte // the beginning of a torn event
}

const (
	wholeEvent = 64 << 10 // bytes up to which an event is written in one piece
	eventHead  = 128 + jsonrpc.MaxID
)

// NewRelay returns a Relay of the response to r. requests returns the ids of the requests in r.
func NewRelay(out *Outputs, w http.ResponseWriter, r *http.Request, requests func() []jsonrpc.ID) *Relay {
	return &Relay{ResponseWriter: w, out: out, sink: newEventSink(w, nil, connOf(r)), requests: requests}
}

// Unwrap is for [http.ResponseController].
func (p *Relay) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (p *Relay) WriteHeader(status int) {
	if p.begun = p.begun || status >= http.StatusOK; p.begun {
		h := p.Header()
		if p.events = strings.HasPrefix(h.Get("Content-Type"), contentEvents[0]); p.events {
			p.pending = p.requests()
			p.out.SetEventHeaders(h)
		} else {
			p.out.CloseConnection(h)
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter]. An incomplete event waits for its rest, up to a size.
func (p *Relay) Write(b []byte) (int, error) {
	if !p.events {
		return p.ResponseWriter.Write(b)
	}
	p.part = append(p.part, b...)
	end := bytes.LastIndex(p.part, eventEnd) + len(eventEnd)
	if end < len(eventEnd) {
		if end = 0; len(p.part) > wholeEvent {
			end = len(p.part) - 1 // a line break at the end may begin the end of the event
		}
	}
	if end == 0 {
		return len(b), nil
	}
	p.note(p.part[:end])
	p.sink.buf = p.part[:end]
	err := p.sink.flush()
	p.part = append(p.part[:0], p.part[end:]...)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

var eventEnd = []byte("\n\n")

// note looks for responses among events that are being written; the last one may be incomplete.
func (p *Relay) note(events []byte) {
	for len(events) > 0 {
		event, rest, whole := bytes.Cut(events, eventEnd)
		if !p.torn {
			p.head = append(p.head[:0], event[:min(len(event), eventHead)]...)
		}
		if p.torn = !whole; whole {
			p.answered(p.head)
		}
		events = rest
	}
}

// answered notes the response in an event that begins with head. The responses of a batch are one event.
func (p *Relay) answered(head []byte) {
	_, data, _ := bytes.Cut(head, []byte("data: "))
	if bytes.HasPrefix(data, []byte("[")) {
		p.pending = nil
		return
	}
	id, ok := bytes.CutPrefix(data, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return
	}
	p.pending = slices.DeleteFunc(p.pending, func(of jsonrpc.ID) bool {
		after, same := bytes.CutPrefix(id, []byte(of))
		return same && !bytes.HasPrefix(after, []byte(`,"method"`)) && bytes.HasPrefix(after, []byte(`,`))
	})
}

// Begun reports whether a part of the response has been written.
func (p *Relay) Begun() bool { return p.begun }

// Complete ends a response that was cut off, after Begun. Each request without a response gets the one that fail
// returns. It reports false if the client can only see that the response is incomplete.
func (p *Relay) Complete(fail func(jsonrpc.ID) Message) bool {
	if !p.events || p.torn {
		return false
	}
	ms := make([]Message, 0, len(p.pending))
	for _, id := range p.pending {
		ms = append(ms, fail(id))
	}
	return p.sink.write(ms) == nil
}
