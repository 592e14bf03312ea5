package edge

import "github.com/agenticnexus/agenticnexus/internal/jsonrpc"

type form uint8

const (
	whole   form = iota // body is the message
	result              // body is the result of a response
	failure             // body is the error of a response
)

// message is one outgoing message. Responses are kept in parts, so that a large result is never copied.
type message struct {
	form form
	keep bool // not to be dropped for newer ones
	id   jsonrpc.ID
	body []byte
}

func wholeMessage(b []byte) message { return message{body: b} }

func (m message) size() int { return len(m.body) + len(m.id) + 64 }

// appendHead appends what stands before the body.
func (m message) appendHead(b []byte) []byte {
	if m.form == whole {
		return b
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if m.id == "" {
		b = append(b, "null"...)
	}
	b = append(b, m.id...)
	if m.form == result {
		return append(b, `,"result":`...)
	}
	return append(b, `,"error":`...)
}

// tail is what stands after the body.
func (m message) tail() string {
	if m.form == whole {
		return ""
	}
	return "}"
}

// append appends the whole message.
func (m message) append(b []byte) []byte {
	return append(append(m.appendHead(b), m.body...), m.tail()...)
}

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	off   int
}

func (f *fifo[T]) len() int { return len(f.items) - f.off }

func (f *fifo[T]) push(v T) {
	if f.off > 0 && len(f.items) == cap(f.items) && f.off >= len(f.items)/2 {
		n := copy(f.items, f.items[f.off:])
		clear(f.items[n:])
		f.items, f.off = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.off]
	f.items[f.off] = zero
	if f.off++; f.off == len(f.items) {
		f.items, f.off = f.items[:0], 0
	}
	return v
}
